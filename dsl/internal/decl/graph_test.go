package decl

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/functions"
	"github.com/saga-engine/engine/dsl/internal/report"
	"github.com/saga-engine/engine/dsl/internal/syntax"
)

// A drawing is a random graph of steps without a cycle, written as source.
type drawing struct {
	names []string
	after map[string][]string // steps to which a step refers, by name
	pivot string              // name of the pivot; "" = none
}

func draw(r *rand.Rand, n int) drawing {
	d := drawing{after: map[string][]string{}}
	for i := range n {
		name := fmt.Sprintf("s%d", i)
		for _, other := range d.names {
			if r.IntN(n) < 2 {
				d.after[name] = append(d.after[name], other)
			}
		}
		d.names = append(d.names, name)
	}
	if r.IntN(2) == 0 {
		d.pivot = d.names[r.IntN(n)]
	}
	return d
}

// source writes the steps in the order of names. Each dependency is written as a reference in the
// input, through a local value, or in depends_on.
func (d drawing) source(names []string) string {
	var b strings.Builder
	b.WriteString("workflow \"w\" {\n")
	for _, n := range names {
		fmt.Fprintf(&b, "  locals {\n    of_%s = step.%s.status\n  }\n  step %q {\n    action = agent.mock.call\n", n, n, n)
		var inputs, listed []string
		for i, on := range d.after[n] {
			switch i % 3 {
			case 0:
				inputs = append(inputs, fmt.Sprintf("a%d = step.%s.output", i, on))
			case 1:
				inputs = append(inputs, fmt.Sprintf("a%d = local.of_%s", i, on))
			default:
				listed = append(listed, "step."+on)
			}
		}
		if n == d.pivot {
			b.WriteString("    pivot = true\n")
		}
		fmt.Fprintf(&b, "    depends_on = [%s]\n    input {\n      %s\n    }\n  }\n", strings.Join(listed, ", "), strings.Join(inputs, "\n      "))
	}
	b.WriteString("}\n")
	return b.String()
}

func parse(t *testing.T, files map[string]string) (*Module, diag.Diagnostics) {
	t.Helper()
	fsys := fstest.MapFS{}
	for name, src := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(src)}
	}
	return ParseFiles(fsys, Options{})
}

func graphOf(t *testing.T, src string) *Workflow {
	t.Helper()
	m, diags := parse(t, map[string]string{"a.hcl": src})
	if diags.HasErrors() {
		t.Fatalf("%v\n%s", diags, src)
	}
	return m.Workflows[0]
}

// edges returns the dependencies of each step by name.
func edges(w *Workflow) string {
	var out []string
	for _, s := range w.Steps {
		for on := range s.After {
			out = append(out, s.Name+"<-"+w.Steps[on].Name)
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// The order of the steps puts each step after its dependencies. Of the steps that are ready, the
// one that is declared first comes first.
func TestOrderOfSteps(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 8))
	for range 30 {
		d := draw(r, 1+r.IntN(12))
		r.Shuffle(len(d.names), func(i, j int) { d.names[i], d.names[j] = d.names[j], d.names[i] })
		w := graphOf(t, d.source(d.names))
		done := map[int]bool{}
		for _, got := range w.Order {
			want := slices.IndexFunc(w.Steps, func(s *Step) bool {
				for on := range s.After {
					if !done[on] {
						return false
					}
				}
				return !done[s.Index]
			})
			if got != want {
				t.Fatalf("%q runs, and %q is the first that is ready:\n%s", w.Steps[got].Name, w.Steps[want].Name, d.source(d.names))
			}
			done[got] = true
		}
		if len(done) != len(w.Steps) {
			t.Fatalf("%d of %d steps are ordered", len(done), len(w.Steps))
		}
	}
}

// The order in which steps are declared changes no dependency. Without a pivot, the dependencies
// are exactly those that are written.
func TestDeclarationsInAnyOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 4))
	for range 40 {
		d := draw(r, 2+r.IntN(10))
		d.pivot = ""
		var want []string
		for n, list := range d.after {
			for _, on := range list {
				want = append(want, n+"<-"+on)
			}
		}
		slices.Sort(want)
		for range 3 {
			r.Shuffle(len(d.names), func(i, j int) { d.names[i], d.names[j] = d.names[j], d.names[i] })
			if got := edges(graphOf(t, d.source(d.names))); got != strings.Join(want, " ") {
				t.Fatalf("%s, want %s\n%s", got, strings.Join(want, " "), d.source(d.names))
			}
		}
	}
}

// Every step runs before the pivot or after it, and a dependency that follows from others is not
// added.
func TestPivotSeparatesTheSteps(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 7))
	pivots := 0
	for range 120 {
		d := draw(r, 2+r.IntN(10))
		if d.pivot == "" {
			continue
		}
		pivots++
		w := graphOf(t, d.source(d.names))
		p := w.Index[d.pivot]
		before, after := w.upstream(p), w.Downstream(p)
		for i, s := range w.Steps {
			if i != p && before[i] == after[i] {
				t.Errorf("%s is before the pivot: %t, and after it: %t", s.Name, before[i], after[i])
			}
		}
		for on := range w.Steps[p].After {
			if slices.Contains(d.after[d.pivot], w.Steps[on].Name) {
				continue
			}
			for other := range w.Steps[p].After {
				if other != on && w.waitsFor(other, on) {
					t.Errorf("the pivot waits for %s, and waits for %s, which waits for it already\n%s", w.Steps[on].Name, w.Steps[other].Name, d.source(d.names))
				}
			}
		}
	}
	if pivots < 30 {
		t.Errorf("only %d graphs have a pivot", pivots)
	}
}

// A cycle is reported once, and its text is a closed walk along written dependencies.
func TestCycleIsAWalk(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for range 40 {
		n := 2 + r.IntN(8)
		d := draw(r, n)
		d.pivot = ""
		from, to := r.IntN(n), r.IntN(n)
		if from == to {
			continue
		}
		first, last := d.names[min(from, to)], d.names[max(from, to)]
		d.after[last] = append(d.after[last], first)
		d.after[first] = append(d.after[first], last)
		_, diags := parse(t, map[string]string{"a.hcl": d.source(d.names)})
		if len(diags) != 1 || diags[0].Summary != "Cycle in steps" {
			t.Fatalf("%v", diags)
		}
		walk, _, _ := strings.Cut(strings.TrimPrefix(diags[0].Detail, "Steps wait for each other: "), ".\n")
		steps := strings.Split(strings.ReplaceAll(walk, `"`, ""), " → ")
		if steps[0] != steps[len(steps)-1] || len(steps) < 3 {
			t.Errorf("the walk %s is not closed", walk)
		}
		for i := 1; i < len(steps); i++ {
			if !slices.Contains(d.after[steps[i]], steps[i-1]) {
				t.Errorf("%s: %s does not wait for %s", walk, steps[i], steps[i-1])
			}
		}
	}
}

// A workflow has at most 10,000 steps.
func TestNumberOfSteps(t *testing.T) {
	for n, want := range map[int]int{maxSteps: 0, maxSteps + 1: 1} {
		m, r := newModule(""), &report.Reporter{}
		b := &syntax.Block{Kind: "workflow", Label: "w"}
		for i := range n {
			// A broken block may lack its action without a finding.
			b.Blocks = append(b.Blocks, &syntax.Block{Kind: "step", Label: fmt.Sprint("s", i), Broken: true})
		}
		(&decoder{Reporter: r, lit: literalDecoder{r, m}, m: m}).workflow(b)
		if diags := r.Finish(); len(diags) != want || want > 0 && diags[0].Summary != "Too many steps" {
			t.Errorf("%d steps: %v", n, diags)
		}
	}
}

// file() follows links inside of the module, also through directories, and none out of it.
func TestLinksOfFiles(t *testing.T) {
	link := func(to string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte(to), Mode: fs.ModeSymlink | 0o777}
	}
	fsys := fstest.MapFS{
		"dir/text": {Data: []byte("inside")}, "dir/sub/x": {Data: []byte("deep")}, ".engine/key": {Data: []byte("key")},
		"to_file": link("dir/text"), "to_dir": link("dir"), "dir/up": link("../dir/sub"), "out": link("../secret"), "abs": link("/etc/passwd"),
		"dir/out": link("../../secret"), "loop": link("loop"), "state": link(".engine"), "chain0": link("dir/text"),
	}
	for i := 1; i <= 41; i++ {
		fsys[fmt.Sprintf("chain%d", i)] = link(fmt.Sprintf("chain%d", i-1))
	}
	for name, want := range map[string]string{
		"dir/text": "inside", "to_file": "inside", "to_dir/text": "inside", "to_dir/sub/x": "deep", "to_dir/up/x": "deep", "./dir/../dir/text": "inside", "chain39": "inside",
		"chain40": "-", "out": "-", "abs": "-", "dir/out": "-", "to_dir/out": "-", "loop": "-", "state/key": "-", ".engine/key": "-", ".ENGINE/key": "-", "../x": "-", "/dir/text": "-", "": "-", `dir\text`: "-", "dir": "-", "none": "-",
	} {
		reads := functions.Reads{Files: map[string]string{}, Env: map[string]*string{}}
		got := "-"
		if err := (liveSource{fsys: fsys, reads: &reads, use: &readUse{}}).readFile(name, true); err == nil {
			got = reads.Files[name]
		}
		if got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
