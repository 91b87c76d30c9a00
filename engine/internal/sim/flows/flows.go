package flows

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// A Module is a generated module.
type Module struct {
	Files map[string]string // source text of each file, by path
	Flows map[string]*Flow  // by the name of the workflow; a group has the name WORKFLOW.GROUP
	// MaxConcurrency and Rate are the limits of the agent `far`: calls in flight, and calls that
	// start in any second. 0 = no limit.
	MaxConcurrency, Rate int
	// Idempotent is true if the agent block promises that every action is idempotent.
	Idempotent bool
	// Changes lists the changes that Variant has made, by their names in the variable Changes; nil
	// = the module comes from New.
	Changes []string

	moves []move // renamed steps, oldest first
}

// A Flow is a generated workflow.
type Flow struct {
	Steps []Step
	Uses  []string // constructs of the workflow itself
	// Limit is the largest number of open runs with the same key of the concurrency block;
	// 0 = no limit.
	Limit  int
	Reject bool // a run for which there is no place is refused
	// Bells has the number of each notify block, in order. A notification has this number in its
	// text.
	Bells []int

	at scope // scope in which the method Variant adds steps
}

// A Step is a generated step or group.
type Step struct {
	Name     string
	After    []int    // steps on which this step depends, as indexes into Flow.Steps
	Keys     []string // keys of the instances; nil = the step has no for_each
	Child    string   // workflow of the child run; "" = the step starts none
	Own      bool     // the step's compensate block undoes the effects; the child run is not undone
	None     bool     // compensation = "none"
	Loops    bool     // the step has a repeat block
	Declared bool     // the step calls the declared action `order`, which uses the action `pay`
	Restarts bool     // on_rerun = "undo_first": a failed attempt is undone before the next one
	Tells    bool     // the attribute `id` of catch.output is "caught CODE", with the code of the failure
	Uses     []string // constructs that the step uses
}

// Names returns the names of the step's instances as agents and people see them.
func (s *Step) Names() []string {
	if s.Keys == nil {
		return []string{s.Name}
	}
	var all []string
	for _, k := range s.Keys {
		all = append(all, fmt.Sprintf("%s[%q]", s.Name, k))
	}
	return all
}

// Step returns the step with an instance of the given name; nil = there is none.
func (f *Flow) Step(name string) *Step {
	base, _, _ := strings.Cut(name, "[")
	for i := range f.Steps {
		if f.Steps[i].Name == base {
			return &f.Steps[i]
		}
	}
	return nil
}

// A writer generates one module.
type writer struct {
	rng  *rand.Rand
	m    *Module
	b    strings.Builder
	next int // number of the next step; names are unique in the module
}

// New generates a module. Its workflow "w" is for submissions. The runs of the workflows `kid` and
// `deep`, and of the workflow `lib` of the library `kit`, are child runs.
func New(rng *rand.Rand) *Module {
	w := &writer{rng: rng, m: &Module{Files: map[string]string{}, Flows: map[string]*Flow{}}}
	w.b.WriteString("locals { tag = \"module\" }\n")
	w.agent("far")
	w.b.WriteString("library \"kit\" { source = \"./kit\" }\n")
	w.workflow("deep", nil)
	w.workflow("kid", []string{"deep"})
	w.workflow("w", []string{"kid", "kid", "kit.lib"})
	w.m.Files["main.hcl"] = w.b.String()
	w.b.Reset()
	w.b.WriteString("agent \"far\" {}\nlocals { tag = \"library\" }\n")
	w.workflow("kit.lib", nil)
	w.m.Files["kit/kit.hcl"] = w.b.String()
	return w.m
}

// Source returns all files as one text.
func (m *Module) Source() string {
	var b strings.Builder
	for _, path := range slices.Sorted(func(yield func(string) bool) {
		for p := range m.Files {
			if !yield(p) {
				return
			}
		}
	}) {
		fmt.Fprintf(&b, "-- %s --\n%s", path, m.Files[path])
	}
	return b.String()
}

// chance reports true in n of 100 calls on average.
func (w *writer) chance(n int) bool { return w.rng.IntN(100) < n }

// pick returns one of the texts.
func (w *writer) pick(from ...string) string { return from[w.rng.IntN(len(from))] }

// f writes text.
func (w *writer) f(format string, args ...any) { fmt.Fprintf(&w.b, format, args...) }

// agent writes the agent block with its limits and its declared actions.
func (w *writer) agent(name string) {
	w.f("agent %q {\n", name)
	if w.chance(60) {
		w.m.MaxConcurrency = 1 + w.rng.IntN(4)
		w.f("  max_concurrency = %d\n", w.m.MaxConcurrency)
	}
	if w.chance(35) {
		w.m.Rate = 2 + w.rng.IntN(4)
		w.f("  rate_limit      = \"%d/s\"\n", w.m.Rate)
	}
	if w.m.Idempotent = w.chance(40); w.m.Idempotent {
		w.f("  idempotent      = true\n")
	}
	w.b.WriteString(`  action "book" {
    uses           = "once"
    arguments      = object({ what = string, note = optional(string) })
    output         = object({ id = string, n = number, ok = bool })
    result         = { id = self.output.id, n = self.output.n, ok = self.output.ok }
    errors         = ["refused"]
    compensated_by = "unbook"
    lookup         = "find"
    idempotent     = false
    input {
      name = args.what
      note = self.key
    }
    fail_when {
      condition  = !self.output.ok
      error_code = "sold_out"
      error_message = "sold out"
`)
	w.f("      permanent  = %t\n", w.chance(50))
	w.b.WriteString(`    }
  }
  action "order" {
    uses      = "pay"
    arguments = object({ what = string, note = optional(string), seen = optional(number, 0), before = optional(string) })
    input {
      name = args.what
      note = args.note
    }
  }
  action "unbook" {
    uses    = "undo"
    by_key  = true
    timeout = "8s"
    input { id = self.key }
  }
  action "find" {
    uses      = "get"
    read_only = true
    output    = object({ id = string, n = number, ok = bool })
    input { key = self.key }
  }
}
`)
}

// A scope describes the block for which steps are generated: a workflow or a group.
type scope struct {
	flow   *Flow
	name   string   // name of the workflow
	indent string   // indentation of the blocks
	kids   []string // workflows that a step may start
	groups int      // how deep groups may still be nested
	item   bool     // the scope is in a group with for_each, so that each.key is known
	most   int      // largest number of steps
}

// workflow writes a workflow with its steps.
func (w *writer) workflow(name string, kids []string) {
	f := &Flow{}
	w.m.Flows[name] = f
	short := name[strings.LastIndex(name, ".")+1:]
	w.f("workflow %q {\n", short)
	head := &writer{rng: w.rng, m: w.m}
	head.settings(f, name)
	w.b.WriteString(head.b.String())
	s := scope{flow: f, name: name, indent: "  ", kids: kids, groups: 2, most: 2}
	switch name {
	case "w":
		s.most = 4
	case "deep", "kit.lib":
		s.groups = 0
	}
	pivot := name == "w" && w.chance(20)
	w.steps(s, pivot)
	w.outputs(s)
	w.notify(s)
	w.b.WriteString("}\n")
}

// settings writes the arguments and blocks that come before the steps of a workflow.
func (w *writer) settings(f *Flow, name string) {
	use := func(names ...string) { f.Uses = append(f.Uses, names...) }
	use("deadline", "variable", "locals")
	w.f("  deadline = %q\n", w.pick("2m", "10m", "10m"))
	w.f("  variable \"tag\" { default = \"none\" }\n  locals { both = \"${local.tag}-${var.tag}\" }\n")
	if w.chance(40) {
		use("priority")
		w.f("  priority = length(var.tag) + %d\n", w.rng.IntN(60))
	}
	if w.chance(25) {
		use("workflow retry")
		w.f("  retry { max_interval = \"3s\" }\n")
	}
	if name == "kid" && w.chance(25) {
		use("unique", "child unique")
		w.f("  unique { key = var.tag }\n")
	}
	if (name == "w" || name == "kid") && w.chance(45) {
		key := ""
		if w.chance(30) {
			key = firstCharacter
		}
		w.limit(f, "", "  ", key)
		if name == "kid" {
			use("child concurrency")
		}
	}
	mode, deadline := w.chance(20), w.chance(25)
	if mode || deadline {
		w.f("  compensation {\n")
		if mode {
			use("mode manual")
			w.f("    mode     = \"manual\"\n")
		}
		if deadline {
			use("compensation deadline")
			w.f("    deadline = \"%dm\"\n", 1+w.rng.IntN(5))
		}
		w.f("  }\n")
	}
}

// firstCharacter is the key of a concurrency limit. It has few values, so that runs compete for
// places.
const firstCharacter = "substr(var.tag, 0, 1)"

// limit writes a concurrency block for the given workflow or group. The parameter `kind` is a
// prefix for the names of the constructs: "group " or "". The parameter `key` is the source text of
// the argument `key`; "" = all runs share one limit.
func (w *writer) limit(f *Flow, kind, indent, key string) {
	f.Limit = 1 + w.rng.IntN(2)
	f.Reject = w.chance(25)
	full := "queue"
	if f.Reject {
		full = "reject"
	}
	f.Uses = append(f.Uses, kind+"concurrency "+full)
	w.f("%sconcurrency {\n%s  limit     = %d\n", indent, indent, f.Limit)
	if key != "" {
		f.Uses = append(f.Uses, kind+"concurrency key")
		w.f("%s  key       = %s\n", indent, key)
	}
	w.f("%s  when_full = %q\n%s}\n", indent, full, indent)
}

// steps writes the steps and groups of a scope.
func (w *writer) steps(s scope, pivot bool) {
	s.flow.at = s
	n := 1 + w.rng.IntN(s.most)
	for range n {
		w.one(s)
	}
	if pivot {
		w.pivot(s)
	}
}

// one writes a step or a group after the other steps of the scope.
func (w *writer) one(s scope) {
	st := Step{}
	for j := range s.flow.Steps {
		if w.chance(45) {
			st.After = append(st.After, j)
		}
	}
	w.next++
	switch {
	case s.groups > 0 && w.chance(25):
		st.Name = fmt.Sprintf("g%d", w.next)
		w.group(s, &st)
	case len(s.kids) > 0 && w.chance(40):
		st.Name = fmt.Sprintf("c%d", w.next)
		w.child(s, &st)
	case w.chance(25):
		st.Name = fmt.Sprintf("q%d", w.next)
		w.uncalled(s, &st)
	default:
		st.Name = fmt.Sprintf("s%d", w.next)
		w.action(s, &st)
	}
	s.flow.Steps = append(s.flow.Steps, st)
}

// pivot writes a pivot, which waits for all other steps, and a step after it.
func (w *writer) pivot(s scope) {
	all := make([]int, len(s.flow.Steps))
	for i := range all {
		all[i] = i
	}
	w.next++
	p := Step{Name: fmt.Sprintf("p%d", w.next), After: all, Uses: []string{"action", "pivot", "depends_on", "timeout"}}
	w.f("  step %q {\n    action     = agent.far.do\n    pivot      = true\n    timeout    = \"5s\"\n    depends_on = [%s]\n    input { name = %q }\n  }\n", p.Name, w.depends(s, p.After), p.Name)
	s.flow.Steps = append(s.flow.Steps, p)
	w.last(s, len(all))
}

// last writes a step that comes after the pivot. The parameter `pivot` is the index of the pivot.
func (w *writer) last(s scope, pivot int) {
	w.next++
	l := Step{Name: fmt.Sprintf("l%d", w.next), After: []int{pivot}, None: true, Uses: []string{"action", "after the pivot", "retry unbounded", "retry max_attempts", "compensation none"}}
	w.f("  step %q {\n    action       = agent.far.keep\n    compensation = \"none\"\n    depends_on   = [step.%s]\n    retry { max_attempts = \"unbounded\" }\n    input { name = %q }\n  }\n", l.Name, s.flow.Steps[pivot].Name, l.Name)
	s.flow.Steps = append(s.flow.Steps, l)
}

// depends returns the elements of depends_on for the given steps.
func (w *writer) depends(s scope, after []int) string {
	var names []string
	for _, j := range after {
		names = append(names, ref(&s.flow.Steps[j]))
	}
	return strings.Join(names, ", ")
}

// ref returns how an expression names a step or a group.
func ref(s *Step) string {
	if s.Name[0] == 'g' {
		return "group." + s.Name
	}
	return "step." + s.Name
}

// outputs writes the outputs of a workflow or a group.
func (w *writer) outputs(s scope) {
	s.flow.Uses = append(s.flow.Uses, "output")
	w.f("%s", s.output())
}

// output returns the source text of the output of a workflow or a group. The output refers to the
// last step.
func (s scope) output() string {
	last := &s.flow.Steps[len(s.flow.Steps)-1]
	of := ref(last) + ".output"
	if last.Keys != nil {
		of = ref(last) + "[\"a\"].output"
	}
	return fmt.Sprintf("%soutput \"id\" { value = try(tostring(%s.id), \"none\") }\n", s.indent, of)
}

// states are the states that a notify block can announce.
var states = []string{"succeeded", "failed", "compensated", "cancelled", "parked", "compensation_failed", "overdue"}

// notify may write one or two notify blocks.
func (w *writer) notify(s scope) {
	if !w.chance(50) {
		return
	}
	blocks := 1 + w.rng.IntN(2)
	if blocks == 2 {
		s.flow.Uses = append(s.flow.Uses, "two notify blocks")
	}
	for k := range blocks {
		s.flow.Bells = append(s.flow.Bells, k)
		w.bell(s, k)
	}
}

// bell writes a notify block with the given number.
func (w *writer) bell(s scope, number int) {
	var on []string
	for _, state := range states {
		if w.chance(60) {
			on = append(on, state)
		}
	}
	if on == nil {
		on = []string{"succeeded"}
	}
	for _, state := range on {
		s.flow.Uses = append(s.flow.Uses, "notify "+state)
	}
	s.flow.Uses = append(s.flow.Uses, "failure", "run")
	w.f("  notify {\n    on     = [\"%s\"]\n    action = agent.far.ring\n", strings.Join(on, `", "`))
	if w.chance(30) {
		s.flow.Uses = append(s.flow.Uses, "notify retry")
		w.f("    timeout = \"4s\"\n    retry { max_interval = \"5s\" }\n")
	}
	w.f("    input { text = \"${run.id} ${run.status} %d ${failure.step} ${failure.code} ${failure.message}\" }\n  }\n", number)
}
