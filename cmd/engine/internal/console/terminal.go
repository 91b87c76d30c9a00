package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/term"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/exit"
	"github.com/saga-engine/engine/cmd/engine/render"
)

// A terminal reads lines from a person. It keeps the typed lines in memory, so that the arrow keys
// can show them again. It writes them to no file, because a line may contain a secret.
type terminal struct {
	io.ReadWriter
	// raw switches the terminal to raw mode, in which the program reads each key. The returned
	// function `restore` ends this mode.
	raw  func() (restore func(), err error)
	size func() (columns, lines int, ok bool)
}

// terminalOf returns the terminal of the process. It returns nil if standard input or standard
// error is not a terminal, or if TERM is "dumb".
func terminalOf(a *cli.App) *terminal {
	in, ok := a.Stdin.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) || !a.Live(a.Stderr) {
		return nil
	}
	return &terminal{
		ReadWriter: struct {
			io.Reader
			io.Writer
		}{in, a.Stderr},
		raw: func() (func(), error) {
			before, err := term.MakeRaw(int(in.Fd()))
			if err != nil {
				return nil, err
			}
			// If Restore fails, the user sees it at the next key press.
			return func() { _ = term.Restore(int(in.Fd()), before) }, nil
		},
		size: func() (int, int, bool) { return cli.Size(a.Stderr) },
	}
}

// converse asks the user for lines and shows their values. It returns after Ctrl-D, Ctrl-C or
// the line "exit", and when the operating system asks the process to end. Before it returns,
// it gives the terminal its earlier settings.
func (t *terminal) converse(ctx context.Context, a *cli.App, c *names) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	a.Note("%s", c.about)
	a.Note("Type an expression. Tab completes names; Ctrl-D or exit leaves.")
	editor := term.NewTerminal(t, "> ")
	editor.AutoCompleteCallback = completer(editor, c)
	for n := 1; ; n++ {
		line, err := t.ask(ctx, editor)
		switch {
		case errors.Is(err, io.EOF):
			a.Note("")
			return nil
		case ctx.Err() != nil:
			a.Note("")
			return exit.Code(exit.Failed)
		case err != nil && !errors.Is(err, term.ErrPasteIndicator):
			return fmt.Errorf("read the terminal: %w", err)
		}
		text, leave := expression(line)
		if leave {
			return nil
		}
		if text == "" {
			continue
		}
		if err := show(a, c.evaluate(text, n)); err != nil {
			return err
		}
	}
}

// ask reads one line and returns it. The terminal is in raw mode only until ask returns. So Ctrl-C
// can interrupt a long evaluation, and results are printed as usual.
func (t *terminal) ask(ctx context.Context, editor *term.Terminal) (string, error) {
	if columns, lines, ok := t.size(); ok {
		if err := editor.SetSize(columns, lines); err != nil {
			return "", err
		}
	}
	restore, err := t.raw()
	if err != nil {
		return "", err
	}
	defer restore()
	type reading struct {
		line string
		err  error
	}
	done := make(chan reading, 1)
	go func() { // if ctx ends first, this goroutine stays until the process ends
		line, err := editor.ReadLine()
		done <- reading{line, err}
	}()
	select {
	case r := <-done:
		return r.line, r.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// maxOffered is the largest number of words that Tab shows.
const maxOffered = 60

// completer returns a function that the editor calls for each key that the user presses. For
// the Tab key, the function adds the letters with which all possible words continue. If the
// words differ in the next letter, it shows the words.
func completer(editor io.Writer, c *names) func(string, int, rune) (string, int, bool) {
	return func(line string, pos int, key rune) (string, int, bool) {
		if key != '\t' {
			return "", 0, false
		}
		from, words := c.flow.Complete(line[:pos], c.inRun())
		if len(words) == 0 {
			return line, pos, true
		}
		common := words[0]
		for _, w := range words[1:] {
			common = commonPrefix(common, w)
		}
		if len(words) > 1 && common == line[from:pos] {
			_, _ = io.WriteString(editor, offer(words)) // an error means that the terminal is gone
		}
		return line[:from] + common + line[pos:], from + len(common), true
	}
}

// offer returns one line of text with the words. If there are more than maxOffered words, the text
// says how many words are missing.
func offer(words []string) string {
	more := ""
	if len(words) > maxOffered {
		more = fmt.Sprintf(" … and %d more", len(words)-maxOffered)
		words = words[:maxOffered]
	}
	return render.Clean(strings.Join(words, "  ")+more) + "\n"
}

func commonPrefix(a, b string) string {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return a[:n]
}
