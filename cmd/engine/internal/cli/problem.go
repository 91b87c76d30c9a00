package cli

import (
	"fmt"
	"strings"

	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl/diag"
)

// A Problem is an error that holds diagnostics. In contrast to *diag.DiagnosticsError, it may hold
// warnings, too.
type Problem struct{ Diags diag.Diagnostics }

// Error returns the diagnostics, each on its own line.
func (p *Problem) Error() string {
	lines := make([]string, len(p.Diags))
	for i, d := range p.Diags {
		lines[i] = d.Error()
	}
	return strings.Join(lines, "\n")
}

// Problems returns diagnostics as an error.
func Problems(diags diag.Diagnostics) error { return &Problem{diags} }

// Failed returns an error with one diagnostic.
func Failed(summary, format string, args ...any) error {
	return &Problem{diag.Diagnostics{{Severity: diag.SeverityError, Summary: summary, Detail: fmt.Sprintf(format, args...)}}}
}

// A StoreError is an error of the store. The field Doing names the operation that failed.
type StoreError struct {
	Doing string
	Shown string // name of the store in messages
	Err   error
}

// Error returns the failed operation, the name of the store and the cause.
func (e *StoreError) Error() string {
	return fmt.Sprintf("%s (%s): %v", e.Doing, e.Shown, e.Err)
}

// Unwrap returns the cause.
func (e *StoreError) Unwrap() error { return e.Err }

// An UnsureError says that the command has submitted a run, and that the state did not answer.
// So it is not known whether the run was accepted.
type UnsureError struct {
	Run   string
	Show  string // the command that shows whether the run was accepted
	Safe  bool   // true = if the user repeats the command, no second run is made
	State string // name of the state in messages
	Err   error
}

// Error says that the run may have been accepted.
func (e *UnsureError) Error() string {
	return fmt.Sprintf("run %s may have been accepted: %v", e.Run, e.Err)
}

// Unwrap returns the cause.
func (e *UnsureError) Unwrap() error { return e.Err }

func (e *UnsureError) explain() (summary, detail string) {
	again := "Applying again is safe: it finds the run if it is there."
	if !e.Safe {
		again = "Look before you apply again: without a unique key or --run-id that would make a second run."
	}
	return "Run may have been accepted", fmt.Sprintf("%s did not answer when run %s was recorded there (%s). `%s` shows whether it was recorded. %s",
		e.State, render.Clean(e.Run), strings.TrimSuffix(render.Clean(e.Err.Error()), "."), e.Show, again)
}
