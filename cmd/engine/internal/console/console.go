package console

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/exit"
	"github.com/saga-engine/engine/dsl/diag"
)

// Run evaluates the lines of standard input until the input ends or a line is "exit". On a terminal
// it asks for each line, unless --json is given. If it does not ask and a line had an error, Run
// returns exit.Failed.
func Run(ctx context.Context, a *cli.App, path string, o Options) error {
	c, err := namesOf(ctx, a, path, o)
	if err != nil {
		return err
	}
	if t := terminalOf(a); t != nil && !a.JSON {
		return t.converse(ctx, a, c)
	}
	return c.readAll(a)
}

// maxLine is the length of the longest line that is read from a pipe, in bytes. It is more than the
// 1 MiB that an expression may have. So a line just above 1 MiB can be read, and its error says
// that the expression is too large.
const maxLine = 2 << 20

// readAll evaluates all lines of standard input. With --json it prints one object at the end.
func (c *names) readAll(a *cli.App) error {
	lines := bufio.NewScanner(a.Stdin)
	lines.Buffer(nil, maxLine)
	answers, found := []answer{}, diag.Diagnostics{}
	failed := false
	for n := 1; lines.Scan(); n++ {
		text, leave := expression(lines.Text())
		if leave {
			break
		}
		if text == "" {
			continue
		}
		got := c.evaluate(text, n)
		failed = failed || got.Failed
		if a.JSON {
			answers, found = append(answers, got), append(found, got.found...)
			continue
		}
		if err := show(a, got); err != nil {
			return err
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return cli.Failed("Line too long", "A line of standard input may have at most 2 MiB.")
	case err != nil && !errors.Is(err, io.EOF):
		return fmt.Errorf("read standard input: %w", err)
	}
	if a.JSON {
		out := map[string]any{"results": answers}
		if failed {
			out["diagnostics"] = found
		}
		if err := a.PrintJSON(out); err != nil {
			return err
		}
	}
	if failed {
		return exit.Code(exit.Failed)
	}
	return nil
}

// show prints a value to standard output, or errors to standard error.
func show(a *cli.App, got answer) error {
	if got.Failed {
		a.Show(got.found)
		return nil
	}
	return a.Print("%s\n", got.text())
}
