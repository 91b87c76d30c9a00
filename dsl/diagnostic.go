package dsl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
)

// Severity says how bad a finding is.
type Severity uint8

// The severities. Only SeverityError keeps a definition from being used;
// SeverityInfo is for what is right but perhaps not what was wanted, and does
// not fail even a strict check.
const (
	SeverityInvalid Severity = iota
	SeverityError
	SeverityWarning
	SeverityInfo
)

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

// A Pos is a place in a file. Line and Column count from 1, Byte from 0;
// Column counts grapheme clusters.
type Pos struct {
	Line   int `json:"line"`
	Column int `json:"column"`
	Byte   int `json:"byte"`
}

// A Range is a part of a file; End is exclusive. The zero Range is no place.
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
	Range    Range    // where; zero = nowhere in particular
	Context  string   // enclosing blocks, such as `in workflow "order", step "book"`; may be ""
	Snippet  *Snippet // source text at Range; nil = not available

	hideSource bool // the source after Range is not shown
}

// A Snippet is the source text a diagnostic is about.
type Snippet struct {
	Context        string // same as Diagnostic.Context
	Code           string // the first line of the range
	StartLine      int    // number of that line
	HighlightStart int    // byte offset into Code
	HighlightEnd   int    // byte offset into Code, exclusive
	Values         []SnippetValue
}

// A SnippetValue is the value of one reference of the expression at fault.
type SnippetValue struct {
	Traversal string `json:"traversal"` // as written, such as var.plan
	Statement string `json:"statement"` // such as `is "gold"`
}

// Error returns the diagnostic as one line: place, summary and detail.
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

// MarshalJSON writes the diagnostic in the shape of Terraform's validate
// command.
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

// Diagnostics is a list of findings, ordered by file and position.
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

// Sorted returns the findings in order of file and position, each once. It is
// for lists put together from several.
func (ds Diagnostics) Sorted() Diagnostics {
	r := &reporter{list: append(Diagnostics(nil), ds...)}
	r.sort()
	return r.unique()
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
	Diagnostics Diagnostics // at least one
}

// Error returns one line for each diagnostic.
func (e *DiagnosticsError) Error() string {
	lines := make([]string, len(e.Diagnostics))
	for i, d := range e.Diagnostics {
		lines[i] = d.Error()
	}
	return strings.Join(lines, "\n")
}

// A reporter collects findings and, in the end, adds to each what it takes to
// show it.
type reporter struct {
	sources map[string][]byte
	places  places
	list    Diagnostics
	errors  int // in list
	// whole is set where many errors end the check: see bounded.
	whole bool
	// effort bounds what the evaluations of a check cost together.
	effort *Allowance
}

// The parts of reading that only report: of expressions, and of values of variables.

func (r *reporter) syntaxReader() syntaxReader     { return syntaxReader{r} }
func (r *reporter) variableReader() variableReader { return variableReader{r} }

// maxErrors and maxFindings bound what is reported of a module. To look for
// the name that was meant takes time for each error, and each finding shows
// the line that it is about.
const (
	maxErrors   = 200
	maxFindings = 2_000
)

var errTooMany = errors.New("too many errors")

// full reports whether no further finding is wanted.
func (r *reporter) full() bool {
	if r.errors >= maxErrors && r.whole {
		panic(errTooMany) // bounded says so
	}
	return r.errors >= maxErrors || len(r.list) >= maxFindings
}

func (r *reporter) push(d Diagnostic) {
	if d.Severity == SeverityError {
		if r.errors++; r.errors > maxErrors {
			return
		}
	} else if len(r.list) >= maxFindings {
		return
	}
	r.list = append(r.list, d)
}

// bounded runs a check, which ends with the error that is one too many.
func (r *reporter) bounded(check func()) (whole bool) {
	r.whole = true
	defer func() {
		r.whole = false
		p := recover()
		if p == nil {
			return
		}
		if p != errTooMany {
			panic(p)
		}
		whole = false
		r.list = append(r.list, Diagnostic{
			Severity: SeverityError, Summary: "Too many errors",
			Detail: fmt.Sprintf("The check ended after %d errors. There may be more: mend these first.", maxErrors),
		})
	}()
	check()
	return true
}

// checkCost bounds what the expressions of a module cost while it is checked:
// each of them is evaluated with what is known of it.
const checkCost = 4 * maxCost

func (r *reporter) allowance() *Allowance {
	if r.effort == nil {
		r.effort = NewAllowance(checkCost)
	}
	return r.effort
}

// invalid reports that the value of an argument cannot be used.
func (r *reporter) invalid(rng hcl.Range, name string, err error) {
	text := err.Error()
	if !strings.HasSuffix(text, "?") {
		text += "."
	}
	r.errorf(rng, "Invalid value for "+name, "%s: %s", name, text)
}

func (r *reporter) errorf(rng hcl.Range, summary, format string, args ...any) {
	r.add(SeverityError, rng, summary, format, args...)
}

func (r *reporter) warnf(rng hcl.Range, summary, format string, args ...any) {
	r.add(SeverityWarning, rng, summary, format, args...)
}

func (r *reporter) add(sev Severity, rng hcl.Range, summary, format string, args ...any) {
	if r.full() {
		return
	}
	detail := format
	if len(args) > 0 {
		detail = fmt.Sprintf(format, args...)
	}
	r.push(Diagnostic{Severity: sev, Summary: summary, Detail: detail, Range: toRange(rng)})
}

// hcl adds diagnostics of the hcl library, with suggestions for attributes of
// objects, which the library does not make.
func (r *reporter) hcl(diags hcl.Diagnostics) {
	for _, d := range diags {
		if r.full() {
			return
		}
		sev := SeverityError
		if d.Severity == hcl.DiagWarning {
			sev = SeverityWarning
		}
		out := Diagnostic{Severity: sev, Summary: d.Summary, Detail: d.Detail}
		if d.Subject != nil {
			out.Range = toRange(*d.Subject)
		}
		if s := suggestAttribute(d); s != "" {
			out.Detail += " " + s
		}
		if values := snippetValues(d); len(values) > 0 {
			out.Snippet = &Snippet{Values: values}
		}
		r.push(out)
	}
}

// finish sorts the findings, drops repeated ones and adds context and source
// text.
func (r *reporter) finish() Diagnostics {
	r.sort()
	out := r.unique()
	for i, d := range out {
		out[i].Context = r.places.at(d.Range)
		d.Context = out[i].Context
		out[i].Snippet = snippet(r.sources[d.Range.File], d)
	}
	return out
}

func (r *reporter) sort() {
	sort.SliceStable(r.list, func(i, j int) bool {
		a, b := r.list[i], r.list[j]
		switch {
		case a.Range.File != b.Range.File:
			return a.Range.File < b.Range.File
		case a.Range.Start.Byte != b.Range.Start.Byte:
			return a.Range.Start.Byte < b.Range.Start.Byte
		case a.Severity != b.Severity:
			return a.Severity < b.Severity
		case a.Summary != b.Summary:
			return a.Summary < b.Summary
		}
		return a.Detail < b.Detail
	})
}

// unique returns the sorted findings without repetitions.
func (r *reporter) unique() Diagnostics {
	var out Diagnostics
	for i, d := range r.list {
		if i > 0 {
			p := r.list[i-1]
			if p.Range == d.Range && p.Summary == d.Summary && p.Detail == d.Detail {
				continue
			}
		}
		out = append(out, d)
	}
	return out
}

// snippet cuts the first line of the range out of src; it keeps the values
// that d.Snippet already holds. It returns nil where there is no source.
func snippet(src []byte, d Diagnostic) *Snippet {
	from, to := d.Range.Start.Byte, d.Range.End.Byte
	if d.Range.File == "" || from > len(src) || len(src) == 0 {
		return nil
	}
	to = min(max(to, from), len(src))
	start := bytes.LastIndexByte(src[:from], '\n') + 1
	end := len(src)
	if i := bytes.IndexByte(src[from:], '\n'); i >= 0 {
		end = from + i
	}
	start, end = window(src, start, from, end)
	code := strings.TrimRight(string(src[start:end]), "\r")
	s := &Snippet{
		Context: d.Context, Code: code, StartLine: d.Range.Start.Line,
		HighlightStart: min(from-start, len(code)),
		HighlightEnd:   min(to-start, len(code)),
	}
	if d.hideSource {
		s.Code = s.Code[:s.HighlightEnd] + " …"
	}
	if d.Snippet != nil {
		s.Values = d.Snippet.Values
	}
	return s
}

// maxLine is how much of a line is shown before and after the place.
const maxLine = 500

// window cuts a long line around a place.
func window(src []byte, start, at, end int) (int, int) {
	if at-start > maxLine {
		for start = at - maxLine; start < at && !utf8.RuneStart(src[start]); start++ {
		}
	}
	if end-at > maxLine {
		for end = at + maxLine; end > at && !utf8.RuneStart(src[end]); end-- {
		}
	}
	return start, end
}

func toRange(r hcl.Range) Range {
	return Range{
		File:  r.Filename,
		Start: Pos{Line: r.Start.Line, Column: r.Start.Column, Byte: r.Start.Byte},
		End:   Pos{Line: r.End.Line, Column: r.End.Column, Byte: r.End.Byte},
	}
}

// places knows, for each file, which blocks enclose a position.
type places map[string][]place

type place struct {
	start, end int // bytes
	label      string
}

// at returns the enclosing blocks of a range, outermost first; "" if none.
func (p places) at(r Range) string {
	var labels []string
	for _, pl := range p[r.File] { // in order of start, so outer before inner
		if pl.start <= r.Start.Byte && r.Start.Byte < pl.end {
			labels = append(labels, pl.label)
		}
	}
	if len(labels) == 0 {
		return ""
	}
	return "in " + strings.Join(labels, ", ")
}
