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

// A Reporter collects the findings of a check. Finish sorts the findings. It adds the source
// line and the enclosing blocks to each finding.
type Reporter struct {
	Sources map[string][]byte // source files by name
	Blocks  BlockRanges       // blocks of the source files
	List    diag.Diagnostics  // findings so far, in the order in which they were added
	errors  int               // number of errors found so far
	others  int               // number of other findings so far
	// true while the method Bounded runs a check. During this time, the method `full` ends the
	// check after MaxErrors errors.
	whole bool
	// Effort limits the total cost of all evaluations of a check. If it is nil, the method
	// Allowance sets it.
	Effort *metered.Allowance
}

// A check reports at most MaxErrors errors for a module, and at most MaxFindings other findings,
// such as warnings. So these numbers limit the time of the check, because an error can cause a
// search for a similar name. They also limit the memory, because each finding contains its source
// line. The numbers are separate, because a module with an error must never count as valid, however
// many warnings came before the error.
const (
	MaxErrors   = 200
	MaxFindings = 2_000
)

var errTooMany = errors.New("too many errors")

// full reports whether the Reporter accepts no more findings of this severity. If MaxErrors is
// reached while Bounded runs a check, full panics. This ends the check.
func (r *Reporter) full(sev diag.Severity) bool {
	if r.errors >= MaxErrors && r.whole {
		panic(errTooMany) // the method Bounded recovers from this panic
	}
	return r.errors >= MaxErrors || sev != diag.SeverityError && r.others >= MaxFindings
}

// Push adds a finding. It drops an error if there were already MaxErrors errors. It drops any other
// finding if there are already MaxFindings others. The method Finish adds the source line later.
func (r *Reporter) Push(d diag.Diagnostic) {
	if d.Severity == diag.SeverityError {
		if r.errors++; r.errors > MaxErrors {
			return
		}
	} else if r.others++; r.others > MaxFindings {
		return
	}
	r.List = append(r.List, d)
}

// Bounded runs the function `check`, but stops it after MaxErrors errors. Bounded returns true if
// `check` reached its end.
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

// checkCost is the largest total cost of all expressions in the check of one module. The check
// evaluates each expression with the values that are known before a run.
const checkCost = 4 * metered.MaxCost

// Allowance returns the limit for the total cost of all expressions in the check.
func (r *Reporter) Allowance() *metered.Allowance {
	if r.Effort == nil {
		r.Effort = metered.NewAllowance(checkCost)
	}
	return r.Effort
}

// Invalid adds an error: the value of the argument with this name cannot be used. The parameter
// `err` says why.
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

// Add adds a finding. If `args` is empty, Add uses `format` unchanged as the detail of the finding,
// even if `format` contains a percent sign.
func (r *Reporter) Add(sev diag.Severity, rng hcl.Range, summary, format string, args ...any) {
	if r.full(sev) {
		return
	}
	detail := format
	if len(args) > 0 {
		detail = fmt.Sprintf(format, args...)
	}
	r.Push(diag.Diagnostic{Severity: sev, Summary: summary, Detail: detail, Range: Range(rng)})
}

// HCL adds diagnostics of the hcl library. The library suggests nothing if an object does not have
// an attribute. In this case, the method HCL adds a suggestion to the diagnostic.
func (r *Reporter) HCL(diags hcl.Diagnostics) {
	for _, d := range diags {
		sev := diag.SeverityError
		if d.Severity == hcl.DiagWarning {
			sev = diag.SeverityWarning
		}
		if r.full(sev) {
			continue
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

// Finish returns the findings, sorted and without duplicates. It adds the enclosing blocks and
// the source line to each finding.
func (r *Reporter) Finish() diag.Diagnostics {
	out := r.List.Sorted()
	for i, d := range out {
		out[i].Context = r.Blocks.at(d.Range)
		d.Context = out[i].Context
		out[i].Snippet = snippet(r.Sources[d.Range.File], d)
	}
	return out
}

// snippet returns a Snippet with the source line in which the range of d begins. If d already has a
// Snippet, the result takes over the values of that Snippet. The result is nil if src does not
// contain the range.
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

// MaxLine limits the length of a shown source line. It is the largest number of bytes before the
// start of a finding, and also the largest number of bytes after this start.
const MaxLine = 500

// window shortens the line src[start:end], if it is long, to some bytes before and after the index
// `at`. It returns where these bytes begin and end in src.
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

// Range converts a range of the hcl library to a range of package diag.
func Range(r hcl.Range) diag.Range {
	return diag.Range{
		File:  r.Filename,
		Start: diag.Pos{Line: r.Start.Line, Column: r.Start.Column, Byte: r.Start.Byte},
		End:   diag.Pos{Line: r.End.Line, Column: r.End.Column, Byte: r.End.Byte},
	}
}

// BlockRanges lists the blocks of each file, to find the blocks that enclose a position. The blocks
// are sorted by their start. The key is the name of the file.
type BlockRanges map[string][]BlockRange

// A BlockRange holds where a block starts and ends, and its name in messages.
type BlockRange struct {
	Start, End int    // byte offsets in the file; End is exclusive
	Label      string // name of the block in messages, such as `step "book"`
}

// at returns a text that names the blocks that contain the start of a range, such as `in workflow
// "order", step "book"`. It returns "" if no block contains this start.
func (p BlockRanges) at(r diag.Range) string {
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
