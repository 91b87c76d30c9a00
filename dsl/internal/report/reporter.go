package report

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/metered"
)

// A Reporter collects findings and, in the end, adds to each what it takes to
// show it.
type Reporter struct {
	Sources map[string][]byte
	Places  Places
	List    diag.Diagnostics
	errors  int // in list
	// whole is set where many errors end the check: see bounded.
	whole bool
	// effort bounds what the evaluations of a check cost together.
	Effort *metered.Allowance
}

// MaxErrors and MaxFindings bound what is reported of a module. To look for
// the name that was meant takes time for each error, and each finding shows
// the line that it is about.
const (
	MaxErrors   = 200
	MaxFindings = 2_000
)

var errTooMany = errors.New("too many errors")

// full reports whether no further finding is wanted.
func (r *Reporter) full() bool {
	if r.errors >= MaxErrors && r.whole {
		panic(errTooMany) // bounded says so
	}
	return r.errors >= MaxErrors || len(r.List) >= MaxFindings
}

// Push adds a finding that is complete but for its source line. It drops what is over the limits.
func (r *Reporter) Push(d diag.Diagnostic) {
	if d.Severity == diag.SeverityError {
		if r.errors++; r.errors > MaxErrors {
			return
		}
	} else if len(r.List) >= MaxFindings {
		return
	}
	r.List = append(r.List, d)
}

// Bounded runs a check, which ends with the error that is one too many.
func (r *Reporter) Bounded(check func()) (whole bool) {
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
		r.List = append(r.List, diag.Diagnostic{
			Severity: diag.SeverityError, Summary: "Too many errors",
			Detail: fmt.Sprintf("The check ended after %d errors. There may be more: mend these first.", MaxErrors),
		})
	}()
	check()
	return true
}

// checkCost bounds what the expressions of a module cost while it is checked:
// each of them is evaluated with what is known of it.
const checkCost = 4 * metered.MaxCost

// Allowance returns the account of all evaluations of the check.
func (r *Reporter) Allowance() *metered.Allowance {
	if r.Effort == nil {
		r.Effort = metered.NewAllowance(checkCost)
	}
	return r.Effort
}

// Invalid reports that the value of an argument cannot be used.
func (r *Reporter) Invalid(rng hcl.Range, name string, err error) {
	text := err.Error()
	if !strings.HasSuffix(text, "?") {
		text += "."
	}
	r.Errorf(rng, "Invalid value for "+name, "%s: %s", name, text)
}

// Errorf adds an error.
func (r *Reporter) Errorf(rng hcl.Range, summary, format string, args ...any) {
	r.Add(diag.SeverityError, rng, summary, format, args...)
}

// Warnf adds a warning.
func (r *Reporter) Warnf(rng hcl.Range, summary, format string, args ...any) {
	r.Add(diag.SeverityWarning, rng, summary, format, args...)
}

// Add adds a finding. The format is not used as one if there are no args.
func (r *Reporter) Add(sev diag.Severity, rng hcl.Range, summary, format string, args ...any) {
	if r.full() {
		return
	}
	detail := format
	if len(args) > 0 {
		detail = fmt.Sprintf(format, args...)
	}
	r.Push(diag.Diagnostic{Severity: sev, Summary: summary, Detail: detail, Range: Range(rng)})
}

// HCL adds diagnostics of the hcl library, with suggestions for attributes of
// objects, which the library does not make.
func (r *Reporter) HCL(diags hcl.Diagnostics) {
	for _, d := range diags {
		if r.full() {
			return
		}
		sev := diag.SeverityError
		if d.Severity == hcl.DiagWarning {
			sev = diag.SeverityWarning
		}
		out := diag.Diagnostic{Severity: sev, Summary: d.Summary, Detail: d.Detail}
		if d.Subject != nil {
			out.Range = Range(*d.Subject)
		}
		if s := suggestAttribute(d); s != "" {
			out.Detail += " " + s
		}
		if values := snippetValues(d); len(values) > 0 {
			out.Snippet = &diag.Snippet{Values: values}
		}
		r.Push(out)
	}
}

// Finish sorts the findings, drops repeated ones and adds context and source
// text.
func (r *Reporter) Finish() diag.Diagnostics {
	out := r.List.Sorted()
	for i, d := range out {
		out[i].Context = r.Places.at(d.Range)
		d.Context = out[i].Context
		out[i].Snippet = snippet(r.Sources[d.Range.File], d)
	}
	return out
}

// snippet cuts the first line of the range out of src; it keeps the values
// that d.Snippet already holds. It returns nil where there is no source.
func snippet(src []byte, d diag.Diagnostic) *diag.Snippet {
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
	s := &diag.Snippet{
		Context: d.Context, Code: code, StartLine: d.Range.Start.Line,
		HighlightStart: min(from-start, len(code)),
		HighlightEnd:   min(to-start, len(code)),
	}
	if d.HideSource {
		s.Code = s.Code[:s.HighlightEnd] + " …"
	}
	if d.Snippet != nil {
		s.Values = d.Snippet.Values
	}
	return s
}

// MaxLine is how much of a line is shown before and after the place.
const MaxLine = 500

// window cuts a long line around a place.
func window(src []byte, start, at, end int) (int, int) {
	if at-start > MaxLine {
		for start = at - MaxLine; start < at && !utf8.RuneStart(src[start]); start++ {
		}
	}
	if end-at > MaxLine {
		for end = at + MaxLine; end > at && !utf8.RuneStart(src[end]); end-- {
		}
	}
	return start, end
}

// Range converts a place of the hcl library.
func Range(r hcl.Range) diag.Range {
	return diag.Range{
		File:  r.Filename,
		Start: diag.Pos{Line: r.Start.Line, Column: r.Start.Column, Byte: r.Start.Byte},
		End:   diag.Pos{Line: r.End.Line, Column: r.End.Column, Byte: r.End.Byte},
	}
}

// Places knows, for each file, which blocks enclose a position.
type Places map[string][]Place

// A Place is the extent of one block, and how messages name it.
type Place struct {
	Start, End int // bytes
	Label      string
}

// at returns the enclosing blocks of a range, outermost first; "" if none.
func (p Places) at(r diag.Range) string {
	var labels []string
	for _, pl := range p[r.File] { // in order of start, so outer before inner
		if pl.Start <= r.Start.Byte && r.Start.Byte < pl.End {
			labels = append(labels, pl.Label)
		}
	}
	if len(labels) == 0 {
		return ""
	}
	return "in " + strings.Join(labels, ", ")
}
