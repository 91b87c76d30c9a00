package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/engine/story"
)

// FormatVersion is the version of the JSON that commands print.
const FormatVersion = "1.0"

// report writes diagnostics as text to stderr. With --json it writes them as JSON to stdout.
// If the command has set a.Stream, report writes them to a.Stream instead.
func (a *App) report(diags diag.Diagnostics) {
	switch {
	case a.Stream != nil:
		a.Stream.Diagnostics(diags)
	case a.JSON:
		_ = a.PrintJSON(map[string]any{"diagnostics": diags}) // fails only if stdout is closed
	default:
		a.Show(diags)
	}
}

// Show writes diagnostics as text to stderr.
func (a *App) Show(diags diag.Diagnostics) {
	if len(diags) == 0 {
		return
	}
	o := diag.RenderOptions{Color: a.Color(a.Stderr)}
	if columns, _, ok := Size(a.Stderr); ok {
		o.Width = columns
	}
	_ = diag.Render(a.Stderr, diags, o) // fails only if stderr is closed
}

// PrintJSON adds format_version to the map `fields`, and writes the map to stdout as a JSON object.
func (a *App) PrintJSON(fields map[string]any) error {
	fields["format_version"] = FormatVersion
	var text strings.Builder
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(fields)
	if err == nil {
		_, err = io.WriteString(a.Stdout, render.EscapeJSON(text.String()))
	}
	if err != nil {
		return fmt.Errorf("write to stdout: %w", err)
	}
	return nil
}

// Print writes a result to stdout.
func (a *App) Print(format string, args ...any) error {
	if _, err := fmt.Fprintf(a.Stdout, format, args...); err != nil {
		return fmt.Errorf("write to stdout: %w", err)
	}
	return nil
}

// Note writes one line to stderr about what the command does or has found.
func (a *App) Note(format string, args ...any) {
	// This fails only if stderr is closed.
	_, _ = fmt.Fprintln(a.Stderr, render.Clean(fmt.Sprintf(format, args...)))
}

// Live reports whether w is a terminal on which the command may overwrite lines. It ignores
// --no-color, because progress is useful without colours too.
func (a *App) Live(w io.Writer) bool {
	if a.Env("TERM") == "dumb" {
		return false
	}
	_, _, ok := Size(w)
	return ok
}

// Color reports whether to write colours to w.
func (a *App) Color(w io.Writer) bool {
	if a.NoColor || a.Env("NO_COLOR") != "" {
		return false
	}
	if v := a.Env("CLICOLOR_FORCE"); v != "" && v != "0" {
		return true
	}
	return a.Live(w)
}

// Size returns the size of the terminal w. The result `ok` is false if w is not a terminal. If a
// terminal does not report its size, the result is 80 columns and 24 lines.
func Size(w io.Writer) (columns, lines int, ok bool) {
	f, isFile := w.(*os.File)
	if !isFile || !term.IsTerminal(int(f.Fd())) {
		return 0, 0, false
	}
	columns, lines, err := term.GetSize(int(f.Fd()))
	if err != nil || columns <= 0 || lines <= 0 {
		return 80, 24, true
	}
	return columns, lines, true
}

// PrintOutputs writes a run's outputs to stdout.
func (a *App) PrintOutputs(values []story.NamedValue) error {
	if len(values) == 0 {
		return nil
	}
	width := 0
	for _, v := range values {
		width = max(width, len(v.Name))
	}
	var b strings.Builder
	b.WriteString("Outputs:\n")
	for _, v := range values {
		text := render.SensitiveText
		if !v.Sensitive && len(v.Value.Sensitive()) == 0 {
			text = render.Literal(v.Value.JSON(), "  ")
		}
		fmt.Fprintf(&b, "  %-*s = %s\n", width, v.Name, text)
	}
	return a.Print("%s", b.String())
}
