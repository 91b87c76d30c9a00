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

// A Reporter collects the findings of a check. Finish sorts them, and adds the source line and
// the enclosing blocks of each.
type Reporter struct {
	Sources map[string][]byte
	Places  Places
	List    diag.Diagnostics
	errors  int // number of errors found so far
	// whole is true while Bounded runs a check. Then the check ends after MaxErrors errors.
	whole bool
	// Effort limits the cost of all evaluations of a check together. If it is nil, the method
	// Allowance sets it.
	Effort *metered.Allowance
}

// MaxErrors and MaxFindings limit how many errors and findings are reported for a module. They
// limit time and memory, too: for many errors the check searches a similar name, and each finding
// contains its source line.
const (
	MaxErrors   = 200
	MaxFindings = 2_000
)

var errTooMany = errors.New("too many errors")

// full reports whether a limit is reached. Then no further finding is stored. If there are too
// many errors inside of Bounded, full ends the check instead.
func (r *Reporter) full() bool {
	if r.errors >= MaxErrors && r.whole {
		panic(errTooMany) // Bounded recovers and reports it
	}
	return r.errors >= MaxErrors || len(r.List) >= MaxFindings
}

// Push adds a finding; Finish adds its source line. Push drops findings that are over the limits.
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

// Bounded runs a check, but ends it after MaxErrors errors. It returns false if it ended the
// check.
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

// checkCost limits the cost of a check of a module: the cost of all its expressions together. The
// check evaluates each expression with the values that are known before a run.
const checkCost = 4 * metered.MaxCost

// Allowance returns the allowance that all evaluations of the check share.
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

// Add adds a finding. Without args, format is the text itself.
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

// HCL adds diagnostics of the hcl library. For an unknown attribute of an object it adds a
// suggestion, because the library makes none.
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

// snippet returns the first line of the range of d, and the values that d.Snippet already
// holds. It returns nil if there is no source.
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

// MaxLine is the largest number of bytes of a line that are shown before the start of a finding,
// and also after it.
const MaxLine = 500

// window shortens a long line to the bytes around a position. It returns their start and end.
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

// Places lists the blocks of each file, to find those that enclose a position.
type Places map[string][]Place

// A Place holds where a block starts and ends, and its name in messages.
type Place struct {
	Start, End int // offsets in bytes
	Label      string
}

// at names the blocks that enclose the start of a range, outermost first; "" if there is none.
func (p Places) at(r diag.Range) string {
	var labels []string
	for _, pl := range p[r.File] { // sorted by start, so an outer block comes first
		if pl.Start <= r.Start.Byte && r.Start.Byte < pl.End {
			labels = append(labels, pl.Label)
		}
	}
	if len(labels) == 0 {
		return ""
	}
	return "in " + strings.Join(labels, ", ")
}
