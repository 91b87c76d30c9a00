package report

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"

	"github.com/saga-engine/engine/dsl/diag"
)

// at returns the range of the bytes from start to end in the file a.hcl.
func at(src string, start, end int) hcl.Range {
	pos := func(i int) hcl.Pos {
		before := src[:i]
		return hcl.Pos{Line: 1 + strings.Count(before, "\n"), Column: i - strings.LastIndexByte(before, '\n'), Byte: i}
	}
	return hcl.Range{Filename: "a.hcl", Start: pos(start), End: pos(end)}
}

// reported returns the only finding after an error at these bytes of a file.
func reported(t *testing.T, src string, start, end int, places ...BlockRange) diag.Diagnostic {
	t.Helper()
	r := &Reporter{Sources: map[string][]byte{"a.hcl": []byte(src)}, Blocks: BlockRanges{"a.hcl": places}}
	r.Errorf(at(src, start, end), "Wrong", "why")
	out := r.Finish()
	if len(out) != 1 {
		t.Fatalf("%d findings, want one", len(out))
	}
	return out[0]
}

// A check reports at most MaxErrors errors, and at most MaxFindings other findings. Neither uses up
// the number of the other. So the first error is never lost, even after MaxFindings warnings.
func TestFindingsAreBounded(t *testing.T) {
	count := func(r *Reporter) string {
		n := map[diag.Severity]int{}
		for _, d := range r.List {
			n[d.Severity]++
		}
		return fmt.Sprintf("%d errors, %d warnings", n[diag.SeverityError], n[diag.SeverityWarning])
	}
	most := fmt.Sprintf("%d errors, %d warnings", MaxErrors, MaxFindings)
	warn := func(r *Reporter) {
		r.Warnf(hcl.Range{}, "w", "d")
		r.Push(diag.Diagnostic{Severity: diag.SeverityWarning})
		r.HCL(hcl.Diagnostics{{Severity: hcl.DiagWarning}})
	}
	fail := func(r *Reporter) {
		r.Errorf(hcl.Range{}, "e", "d")
		r.Push(diag.Diagnostic{Severity: diag.SeverityError})
		r.HCL(hcl.Diagnostics{{Severity: hcl.DiagError}})
	}
	for name, rounds := range map[string][]func(*Reporter){
		"warnings first": {warn, fail}, "errors first": {fail, warn},
	} {
		r := &Reporter{}
		for _, add := range rounds {
			for range MaxFindings {
				add(r)
			}
		}
		if got := count(r); got != most {
			t.Errorf("%s: %s, want %s", name, got, most)
		}
	}
	for name, add := range map[string]func(*Reporter){
		"Errorf": func(r *Reporter) { r.Errorf(hcl.Range{}, "e", "d") },
		"HCL":    func(r *Reporter) { r.HCL(hcl.Diagnostics{{Severity: hcl.DiagWarning}, {Severity: hcl.DiagError}}) },
	} {
		r := &Reporter{}
		for range MaxFindings {
			r.Warnf(hcl.Range{}, "w", "d")
		}
		if add(r); !r.Finish().HasErrors() {
			t.Errorf("%s: the error after %d warnings is lost", name, MaxFindings)
		}
	}
}

// Bounded ends a check at the error after the last one that is reported, and says so.
func TestBoundedEndsTheCheck(t *testing.T) {
	for _, c := range []struct {
		errors int
		whole  bool
	}{{MaxErrors, true}, {MaxErrors + 1, false}} {
		r, reached := &Reporter{}, false
		whole := r.Bounded(func() {
			for i := range c.errors {
				r.Errorf(hcl.Range{}, "e", "%d", i)
			}
			reached = true
		})
		if whole != c.whole || reached != c.whole {
			t.Errorf("%d errors: whole %t, the end reached %t", c.errors, whole, reached)
		}
		last := r.List[len(r.List)-1].Summary
		if (last == "Too many errors") == c.whole {
			t.Errorf("%d errors: the last finding is %q", c.errors, last)
		}
		// Afterwards the Reporter drops errors, and does not panic.
		r.Errorf(hcl.Range{}, "e", "late")
	}
}

// A panic in a check that is not about the number of errors stays a panic.
func TestBoundedKeepsOtherPanics(t *testing.T) {
	mistake := errors.New("a mistake in the engine")
	defer func() {
		if p := recover(); p != any(mistake) {
			t.Errorf("the panic is %v, want the one of the check", p)
		}
	}()
	whole := (&Reporter{}).Bounded(func() { panic(mistake) })
	t.Errorf("Bounded returned %t", whole)
}

// A block encloses its first byte, and does not enclose the byte after its last one.
func TestContextOfAFinding(t *testing.T) {
	src := "workflow { step {} } x"
	outer, inner := BlockRange{0, 20, "workflow"}, BlockRange{11, 18, "step"}
	for _, c := range []struct {
		start int
		want  string
	}{{0, "in workflow"}, {10, "in workflow"}, {11, "in workflow, step"}, {17, "in workflow, step"}, {18, "in workflow"}, {19, "in workflow"}, {20, ""}, {21, ""}} {
		d := reported(t, src, c.start, c.start+1, outer, inner)
		if d.Context != c.want || d.Snippet.Context != c.want {
			t.Errorf("byte %d: %q and %q, want %q", c.start, d.Context, d.Snippet.Context, c.want)
		}
	}
}

// The snippet is the line in which a range begins. The highlight is the part of the range in it.
func TestSnippetIsTheLine(t *testing.T) {
	for _, src := range []string{"one\ntwo three\nfour\n", "one\r\ntwo three\r\nfour", "é\nü ö ä\n", "\n\nx"} {
		for start := range len(src) + 1 {
			for end := start; end <= len(src); end++ {
				d := reported(t, src, start, end)
				line := strings.TrimRight(strings.Split(src, "\n")[strings.Count(src[:start], "\n")], "\r")
				s := d.Snippet
				if s.Code != line {
					t.Fatalf("%q[%d:%d]: the line is %q, want %q", src, start, end, s.Code, line)
				}
				want := src[start:end]
				if i := strings.IndexAny(want, "\r\n"); i >= 0 {
					want = want[:i]
				}
				if got := s.Code[s.HighlightStart:s.HighlightEnd]; got != want {
					t.Fatalf("%q[%d:%d]: %q is highlighted, want %q", src, start, end, got, want)
				}
			}
		}
	}
}

// Of a long line only the bytes around the finding are shown. No character is cut in two.
func TestSnippetOfALongLine(t *testing.T) {
	for shift := range 4 {
		src := strings.Repeat("x", shift) + strings.Repeat("€", 600) + "HERE" + strings.Repeat("€", 600) + strings.Repeat("x", shift)
		start := strings.Index(src, "HERE")
		s := reported(t, src, start, start+4).Snippet
		if !utf8.ValidString(s.Code) {
			t.Errorf("shift %d: the snippet is no valid text: %q", shift, s.Code)
		}
		if got := s.Code[s.HighlightStart:s.HighlightEnd]; got != "HERE" {
			t.Errorf("shift %d: %q is highlighted", shift, got)
		}
		if n := len(s.Code); n > 2*MaxLine || n < 2*MaxLine-6 {
			t.Errorf("shift %d: %d bytes are shown, want about %d", shift, n, 2*MaxLine)
		}
		whole := strings.Repeat("é", MaxLine/2) + "€" // 250 characters before the finding still fit
		if got := reported(t, whole, MaxLine, MaxLine+3).Snippet.Code; got != whole {
			t.Errorf("a line that fits is cut: %d of %d bytes", len(got), len(whole))
		}
	}
}

// A finding that hides its source shows nothing after its own range.
func TestHiddenSource(t *testing.T) {
	src := `password = "hunter2"`
	r := &Reporter{Sources: map[string][]byte{"a.hcl": []byte(src)}}
	r.Push(diag.Diagnostic{Severity: diag.SeverityWarning, Range: Range(at(src, 0, 8)), HideSource: true})
	if got := r.Finish()[0].Snippet.Code; got != "password …" {
		t.Errorf("the snippet is %q", got)
	}
}

// A finding without a file, or behind the end of its file, has no snippet.
func TestNoSnippet(t *testing.T) {
	r := &Reporter{Sources: map[string][]byte{"a.hcl": []byte("abc"), "empty.hcl": nil}}
	for i, rng := range []hcl.Range{{}, {Filename: "other.hcl"}, {Filename: "empty.hcl"}, {Filename: "a.hcl", Start: hcl.Pos{Byte: 4}, End: hcl.Pos{Byte: 5}}} {
		r.Errorf(rng, fmt.Sprint(i), "d")
	}
	for _, d := range r.Finish() {
		if d.Snippet != nil {
			t.Errorf("%s has the snippet %+v", d.Summary, d.Snippet)
		}
	}
}

// A warning of the library stays a warning, and a text without arguments keeps its percent signs.
func TestFindingsKeepTheirMeaning(t *testing.T) {
	r := &Reporter{}
	r.HCL(hcl.Diagnostics{{Severity: hcl.DiagWarning, Summary: "w"}, {Severity: hcl.DiagError, Summary: "e"}})
	add := r.Errorf // go vet would refuse the percent sign in a direct call
	add(hcl.Range{}, "p", "100%d")
	r.Errorf(hcl.Range{}, "q", "%d%%", 5)
	r.Invalid(hcl.Range{}, "timeout", errors.New("it is short"))
	r.Invalid(hcl.Range{}, "mode", errors.New("did you mean that?"))
	want := []diag.Diagnostic{
		{Severity: diag.SeverityWarning, Summary: "w"},
		{Severity: diag.SeverityError, Summary: "e"},
		{Severity: diag.SeverityError, Summary: "p", Detail: "100%d"},
		{Severity: diag.SeverityError, Summary: "q", Detail: "5%"},
		{Severity: diag.SeverityError, Summary: "Invalid value for timeout", Detail: "timeout: it is short."},
		{Severity: diag.SeverityError, Summary: "Invalid value for mode", Detail: "mode: did you mean that?"},
	}
	for i, d := range r.List {
		if d.Severity != want[i].Severity || d.Summary != want[i].Summary || d.Detail != want[i].Detail {
			t.Errorf("%d: %v %q %q", i, d.Severity, d.Summary, d.Detail)
		}
	}
}
