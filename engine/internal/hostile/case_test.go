//go:build unix

package hostile

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/rogpeppe/go-internal/txtar"
)

// A hostileCase is one file of the corpus.
type hostileCase struct {
	why   string
	runs  [][]string
	exits []int
	says  []string
	stdin string
	env   []string
	lays  [][]string // files that an archive cannot hold, and commands to run first
	files []txtar.File
}

func (c *hostileCase) right(exit int) bool { return slices.Contains(c.exits, exit) }

// functions are what the files of a case may call.
var functions = template.FuncMap{
	"rep":  func(n int, s string) string { return strings.Repeat(s, n) },
	"each": eachOf,
	"hex": func(s string) (string, error) {
		b, err := hex.DecodeString(s)
		return string(b), err
	},
}

// eachOf writes a format n times, each with its index for every verb in it.
func eachOf(n int, format string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.ReplaceAll(format, "%d", strconv.Itoa(i)))
	}
	return b.String()
}

func expand(name, text string) (string, error) {
	t, err := template.New(name).Delims("{%", "%}").Funcs(functions).Parse(text)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = t.Execute(&b, nil)
	return b.String(), err
}

// readCase reads a file of the corpus.
func readCase(path string) (*hostileCase, error) {
	a, err := txtar.ParseFile(path)
	if err != nil {
		return nil, err
	}
	c := &hostileCase{files: a.Files}
	for n, line := range strings.Split(strings.TrimSpace(string(a.Comment)), "\n") {
		line, err := expand(path, line)
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", path, n+1, err)
		}
		if why, ok := strings.CutPrefix(line, "# "); n == 0 && ok {
			c.why = why
			continue
		}
		if err := c.line(line); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", path, n+1, err)
		}
	}
	if c.why == "" || len(c.runs) == 0 {
		return nil, fmt.Errorf("%s: the first line says why, and there is a run", path)
	}
	return c, nil
}

// line reads one line of a case's script.
func (c *hostileCase) line(line string) error {
	verb, rest, _ := strings.Cut(line, " ")
	words := quoted(rest)
	switch verb {
	case "run":
		c.runs = append(c.runs, words)
	case "exit":
		for _, w := range words {
			n, err := strconv.Atoi(w)
			if err != nil {
				return err
			}
			c.exits = append(c.exits, n)
		}
	case "says":
		c.says = append(c.says, rest)
	case "stdin":
		c.stdin = rest
	case "env":
		c.env = append(c.env, rest)
	case "first", "mkdir", "link", "fifo", "remove", "chmod", "cut":
		c.lays = append(c.lays, append([]string{verb}, words...))
	default:
		return fmt.Errorf("%w: %q", errSyntax, verb)
	}
	return nil
}

// quoted splits a line into words; single quotes keep one together.
func quoted(line string) []string {
	var words []string
	var word strings.Builder
	in, any := false, false
	for _, r := range line {
		switch {
		case r == '\'':
			in, any = !in, true
		case r == ' ' && !in:
			if any {
				words = append(words, word.String())
			}
			word.Reset()
			any = false
		default:
			word.WriteRune(r)
			any = true
		}
	}
	if any {
		words = append(words, word.String())
	}
	return words
}

// lay writes the case's files into a directory, then runs the case's lines of lays.
func (c *hostileCase) lay(dir string, run func([]string) error) error {
	for _, f := range c.files {
		text, err := expand(f.Name, string(f.Data))
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		// The last line break belongs to the archive.
		if strings.HasSuffix(f.Name, ".bin") {
			text = strings.TrimSuffix(text, "\n")
		}
		path := filepath.Join(dir, strings.TrimSuffix(f.Name, ".bin"))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	for _, l := range c.lays {
		if err := lay(dir, l, run); err != nil {
			return fmt.Errorf("%s: %w", strings.Join(l, " "), err)
		}
	}
	return nil
}

func lay(dir string, words []string, run func([]string) error) error {
	last := filepath.Join(dir, words[len(words)-1])
	switch words[0] {
	case "first":
		return run(words[1:])
	case "mkdir":
		return os.MkdirAll(last, 0o755)
	case "remove":
		return os.RemoveAll(last)
	case "link":
		return os.Symlink(words[1], last)
	case "fifo":
		return makeFIFO(last)
	case "chmod":
		mode, err := strconv.ParseUint(words[1], 8, 32)
		if err != nil {
			return err
		}
		return os.Chmod(last, os.FileMode(mode))
	case "cut":
		size, err := strconv.ParseInt(words[1], 10, 64)
		if err != nil {
			return err
		}
		return os.Truncate(last, size)
	}
	return fmt.Errorf("%w: %q", errSyntax, words[0])
}
