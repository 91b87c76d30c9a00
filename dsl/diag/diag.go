package diag

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Severity says how bad a finding is.
type Severity uint8

// The severities. Only SeverityError prevents the use of a definition.
// SeverityInfo is for text that is correct but perhaps not what the author
// wanted. A strict check fails because of warnings, but not because of infos.
const (
	SeverityInvalid Severity = iota
	SeverityError
	SeverityWarning
	SeverityInfo
)

// NotInGroup is the summary of an error about a line of the console: the line refers to a value
// that the run of a group does not have. The parent of this run, or a parent further up, has the
// value.
const NotInGroup = "No value in the run of a group"

// String returns "error", "warning", "info" or "invalid".
func (s Severity) String() string {
	switch s {
	case SeverityError:
		return "error"
	case SeverityWarning:
		return "warning"
	case SeverityInfo:
		return "info"
	}
	return "invalid"
}

// A Pos is a position in a file. Line and Column count from 1, Byte from 0. Column counts visible
// characters (grapheme clusters).
type Pos struct {
	Line   int `json:"line"`
	Column int `json:"column"`
	Byte   int `json:"byte"`
}

// A Range is a part of a file; End is exclusive. The zero Range means that the position is not
// known, or that the finding belongs to no file.
type Range struct {
	File  string `json:"filename"`
	Start Pos    `json:"start"`
	End   Pos    `json:"end"`
}

// String returns "FILE:LINE", or "" for the zero Range.
func (r Range) String() string {
	if r.File == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d", r.File, r.Start.Line)
}

// A Diagnostic is one finding about a definition or about values given to it.
type Diagnostic struct {
	Severity Severity
	Summary  string   // one line, no full stop
	Detail   string   // sentences; may be ""
	Range    Range    // position of the finding; zero = no particular position
	Context  string   // enclosing blocks, such as `in workflow "order", step "book"`; may be ""
	Snippet  *Snippet // source text at Range; nil = not available

	HideSource bool // true = the snippet does not show the rest of the line after Range
}

// A Snippet is the source line to which a diagnostic belongs.
type Snippet struct {
	Context        string // same as Diagnostic.Context
	Code           string // source line in which the range begins
	StartLine      int    // line number of Code in the file, from 1
	HighlightStart int    // byte offset in Code at which the wrong text begins
	HighlightEnd   int    // byte offset in Code after the wrong text
	Values         []SnippetValue
}

// A SnippetValue describes the value of one reference in the expression that caused the
// diagnostic.
type SnippetValue struct {
	Traversal string `json:"traversal"` // the reference as it is written, such as var.plan
	Statement string `json:"statement"` // what the value of the reference is, such as `is "gold"`
}

// Error returns the diagnostic as one line: position, summary and detail.
func (d Diagnostic) Error() string {
	var b strings.Builder
	if at := d.Range.String(); at != "" {
		b.WriteString(at + ": ")
	}
	b.WriteString(d.Summary)
	if d.Detail != "" {
		b.WriteString(": " + strings.ReplaceAll(d.Detail, "\n", " "))
	}
	return b.String()
}

// MarshalJSON encodes the diagnostic in the same form as Terraform's validate command.
func (d Diagnostic) MarshalJSON() ([]byte, error) {
	type snippet struct {
		Context   *string        `json:"context"`
		Code      string         `json:"code"`
		StartLine int            `json:"start_line"`
		From      int            `json:"highlight_start_offset"`
		To        int            `json:"highlight_end_offset"`
		Values    []SnippetValue `json:"values"`
	}
	out := struct {
		Severity string   `json:"severity"`
		Summary  string   `json:"summary"`
		Detail   string   `json:"detail"`
		Range    *Range   `json:"range,omitempty"`
		Snippet  *snippet `json:"snippet,omitempty"`
	}{Severity: d.Severity.String(), Summary: d.Summary, Detail: d.Detail}
	if d.Range.File != "" {
		out.Range = &d.Range
	}
	if s := d.Snippet; s != nil {
		out.Snippet = &snippet{
			Code: s.Code, StartLine: s.StartLine,
			From: s.HighlightStart, To: s.HighlightEnd, Values: s.Values,
		}
		if s.Context != "" {
			out.Snippet.Context = &s.Context
		}
		if out.Snippet.Values == nil {
			out.Snippet.Values = []SnippetValue{}
		}
	}
	return json.Marshal(out)
}

// Diagnostics is a list of findings. A check returns the list ordered by file and position.
type Diagnostics []Diagnostic

// HasErrors reports whether any finding is an error.
func (ds Diagnostics) HasErrors() bool {
	for _, d := range ds {
		if d.Severity == SeverityError {
			return true
		}
	}
	return false
}

// Errors returns the findings that are errors.
func (ds Diagnostics) Errors() Diagnostics { return ds.only(SeverityError) }

// Warnings returns the findings that are warnings.
func (ds Diagnostics) Warnings() Diagnostics { return ds.only(SeverityWarning) }

// Sorted returns the findings sorted by file and position, without duplicates. Use Sorted after
// you appended several lists of findings.
func (ds Diagnostics) Sorted() Diagnostics {
	all := slices.Clone(ds)
	slices.SortStableFunc(all, func(a, b Diagnostic) int {
		return cmp.Or(cmp.Compare(a.Range.File, b.Range.File), cmp.Compare(a.Range.Start.Byte, b.Range.Start.Byte),
			cmp.Compare(a.Severity, b.Severity), cmp.Compare(a.Summary, b.Summary), cmp.Compare(a.Detail, b.Detail))
	})
	var out Diagnostics
	for i, d := range all {
		if i > 0 {
			p := all[i-1]
			if p.Range == d.Range && p.Summary == d.Summary && p.Detail == d.Detail {
				continue
			}
		}
		out = append(out, d)
	}
	return out
}

func (ds Diagnostics) only(s Severity) Diagnostics {
	var out Diagnostics
	for _, d := range ds {
		if d.Severity == s {
			out = append(out, d)
		}
	}
	return out
}

// Err returns the errors as one error, or nil if there are none. The error's
// type is *DiagnosticsError.
func (ds Diagnostics) Err() error {
	errs := ds.Errors()
	if len(errs) == 0 {
		return nil
	}
	return &DiagnosticsError{Diagnostics: errs}
}

// A DiagnosticsError is an error made of diagnostics of SeverityError.
type DiagnosticsError struct {
	Diagnostics Diagnostics // the errors; the list is never empty
}

// Error returns one line for each diagnostic.
func (e *DiagnosticsError) Error() string {
	lines := make([]string, len(e.Diagnostics))
	for i, d := range e.Diagnostics {
		lines[i] = d.Error()
	}
	return strings.Join(lines, "\n")
}
