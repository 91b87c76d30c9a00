package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/postgres"
	"github.com/saga-engine/engine/engine/store/sqlite"
)

// formatVersion is the version of the JSON that commands print.
const formatVersion = "1.0"

// A problem is diagnostics as an error. Unlike *diag.DiagnosticsError it may
// carry warnings in addition to the errors.
type problem struct{ diags diag.Diagnostics }

// Error returns the diagnostics, one a line.
func (p *problem) Error() string {
	lines := make([]string, len(p.diags))
	for i, d := range p.diags {
		lines[i] = d.Error()
	}
	return strings.Join(lines, "\n")
}

// problems returns diagnostics as an error.
func problems(diags diag.Diagnostics) error { return &problem{diags} }

// failed returns an error of one diagnostic.
func failed(summary, format string, args ...any) error {
	return &problem{diag.Diagnostics{{Severity: diag.SeverityError, Summary: summary, Detail: fmt.Sprintf(format, args...)}}}
}

// diagnose turns any error into diagnostics for people: what, where, and what
// to do.
func diagnose(err error) diag.Diagnostics {
	var p *problem
	var list *diag.DiagnosticsError
	switch {
	case errors.As(err, &p):
		return p.diags
	case errors.As(err, &list):
		return list.Diagnostics
	}
	summary, detail := explain(err)
	return diag.Diagnostics{{Severity: diag.SeverityError, Summary: summary, Detail: detail}}
}

// wrongKey is the title where there is a key, but another one is needed.
const wrongKey = "Wrong encryption key"

func explain(err error) (summary, detail string) {
	var locked *sqlite.LockedError
	var schema *store.SchemaError
	var st *storeError
	var unsure *unsureError
	var key *crypt.KeyError
	var loss *store.LossError
	var other *postgres.WrongServerError
	var history *journal.HistoryError
	switch {
	case errors.As(err, &unsure):
		return unsure.explain()
	case errors.As(err, &loss):
		return "Committed work is lost", upperFirst(loss.Error()) + ". The engine has stopped: what it knows and what the database holds " +
			"are two histories now. Compare the runs with what was really done before an engine is started again."
	case errors.As(err, &other):
		return "Not the server that holds the state", upperFirst(other.Error()) + "."
	case errors.As(err, &history):
		return "History does not verify", fmt.Sprintf("Run %s: row %d of its journal %s. No engine goes on with the run. "+
			"`engine db verify %s` checks it again, `engine db verify` all runs. Compare the run with a backup of the state, and look who can write to the state.",
			history.Name, history.Seq, history.Reason, quoteArg(history.Name))
	case errors.As(err, &key) && key.Given != "":
		return wrongKey, upperFirst(key.Error()) + "."
	case errors.As(err, &key):
		return "Encryption key needed", upperFirst(key.Error()) + "."
	case errors.As(err, &st):
		text := strings.TrimSuffix(st.err.Error(), ".")
		text = strings.TrimPrefix(strings.TrimPrefix(text, "sqlite: "), "postgres: ")
		if !strings.HasSuffix(text, "?") {
			text += "."
		}
		return "Cannot " + st.doing, upperFirst(text)
	case errors.As(err, &locked):
		return "State file is in use", fmt.Sprintf("%s is held by %s. Wait until that command ends, or stop it; "+
			"Commands that look at runs or say something to them (`engine list`, `show`, `cancel`, …) and `engine apply --detach` work beside it.", locked.Path, locked.Holder)
	case errors.As(err, &schema):
		return explainSchema(schema)
	case errors.Is(err, fs.ErrNotExist):
		return "No such file or directory", upperFirst(err.Error()) + "."
	case errors.Is(err, fs.ErrPermission):
		return "Permission denied", upperFirst(err.Error()) + "."
	}
	return upperFirst(err.Error()), ""
}

func explainSchema(e *store.SchemaError) (summary, detail string) {
	switch {
	case e.Have == 0:
		summary = "Database has no engine schema"
	case e.Have > e.Want:
		summary = "Database is newer than this engine"
		detail = fmt.Sprintf("Its schema has version %d, this engine knows %d. ", e.Have, e.Want)
	default:
		summary = "Database must be migrated"
		detail = fmt.Sprintf("Its schema has version %d, this engine needs %d. ", e.Have, e.Want)
	}
	return summary, detail + upperFirst(strings.TrimSuffix(e.Hint, ".")) + "."
}

// report writes diagnostics: for people to stderr, for programs to stdout.
func (a *app) report(diags diag.Diagnostics) {
	switch {
	case a.stream != nil:
		a.stream.Diagnostics(diags)
	case a.json:
		_ = a.printJSON(map[string]any{"diagnostics": diags}) // nobody is left to be told
	default:
		a.show(diags)
	}
}

// show writes diagnostics for people.
func (a *app) show(diags diag.Diagnostics) {
	if len(diags) == 0 {
		return
	}
	o := diag.RenderOptions{Color: a.color(a.stderr)}
	if columns, _, ok := size(a.stderr); ok {
		o.Width = columns
	}
	_ = diag.Render(a.stderr, diags, o) // stderr is gone: there is nobody to tell
}

// printJSON writes an object with format_version to stdout.
func (a *app) printJSON(fields map[string]any) error {
	fields["format_version"] = formatVersion
	var text strings.Builder
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(fields)
	if err == nil {
		_, err = io.WriteString(a.stdout, render.EscapeJSON(text.String()))
	}
	if err != nil {
		return fmt.Errorf("write to stdout: %w", err)
	}
	return nil
}

// print writes a result to stdout.
func (a *app) print(format string, args ...any) error {
	if _, err := fmt.Fprintf(a.stdout, format, args...); err != nil {
		return fmt.Errorf("write to stdout: %w", err)
	}
	return nil
}

// note writes one line about what is going on to stderr.
func (a *app) note(format string, args ...any) {
	_, _ = fmt.Fprintln(a.stderr, render.Clean(fmt.Sprintf(format, args...))) // stderr is gone: nobody to tell
}

// live reports whether w is a screen that may be redrawn. Colours are another
// matter: who wants none still wants to see progress.
func (a *app) live(w io.Writer) bool {
	if a.env("TERM") == "dumb" {
		return false
	}
	_, _, ok := size(w)
	return ok
}

// color reports whether to write colours to w.
func (a *app) color(w io.Writer) bool {
	if a.noColor || a.env("NO_COLOR") != "" {
		return false
	}
	if v := a.env("CLICOLOR_FORCE"); v != "" && v != "0" {
		return true
	}
	return a.live(w)
}

func (a *app) env(name string) string {
	v, _ := a.lookup(name)
	return v
}

// size returns the size of the screen that w is, if it is one. One that does
// not tell is taken for 80 by 24.
func size(w io.Writer) (columns, lines int, ok bool) {
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

func upperFirst(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}
