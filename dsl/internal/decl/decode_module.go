package decl

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/noun"
	"github.com/saga-engine/engine/dsl/internal/syntax"
)

// module reads the blocks at the top level of all files. It begins with what other blocks
// need: first the results of file(), env() and similar functions, then variables, libraries
// and locals.
func (d *decoder) module(blocks []*syntax.Block) {
	for _, b := range blocks {
		readRecorder{d}.recordReads(b)
	}
	d.m.Agents = map[string]*Agent{}
	d.m.Variables = map[string]*Variable{}
	d.m.locals = map[string]*eval.Local{}
	d.m.Libraries = map[string]*Library{}
	for _, b := range blocks {
		switch b.Kind {
		case "variable":
			if twin := d.variable(b, d.m.Variables, true); twin != nil {
				d.m.TwinVariables = append(d.m.TwinVariables, twin)
			}
		case "library":
			libraryDecoder{d}.library(b)
		case "locals":
			d.m.ownLocals = append(d.m.ownLocals, d.localsBlock(b, d.m.locals, true)...)
		}
	}
	seen := map[string]hcl.Range{}
	var moves []*syntax.Block
	if d.tooMany(blocks) {
		return
	}
	for _, b := range blocks {
		switch b.Kind {
		case "engine":
			d.engine(b)
		case "agent":
			a := d.agent(b)
			actionDecoder{d}.actions(a)
			if first, dup := d.m.Agents[b.Label]; dup {
				d.duplicate(b, first.Where)
				d.m.TwinAgents = append(d.m.TwinAgents, a)
				continue
			}
			d.m.Agents[b.Label] = a
		case "workflow":
			w := d.workflow(b)
			first, dup := seen[b.Label]
			if dup {
				d.duplicate(b, first)
				w.Twin = true
			} else {
				seen[b.Label] = b.DefRange
			}
			d.m.Workflows = append(d.m.Workflows, w)
		case "moved":
			moves = append(moves, b)
		}
	}
	moveDecoder{d}.moves(moves)
}

// maxShared limits the product of two numbers. The first is the number of workflows, groups
// and steps with a child run. The second is the number of variables and locals outside of
// workflows. Without a limit the check would take too long: it repeats all these variables and
// locals for each workflow and group.
const maxShared = 1_000_000

// tooMany returns whether the module has too many workflows: more than maxWorkflows, or more than
// maxShared allows. If it returns true, it has also reported an error. If d.m.Older is true,
// tooMany returns false.
func (d *decoder) tooMany(blocks []*syntax.Block) bool {
	n, uses := 0, 0
	for _, b := range blocks {
		if b.Kind == "workflow" {
			n++
			uses += 1 + childStarts(b)
		}
	}
	shared := len(d.m.Variables) + len(d.m.locals)
	if d.m.Older || n <= maxWorkflows && uses*shared <= maxShared {
		return false
	}
	d.Errorf(hcl.Range{}, "Too many workflows",
		"The module declares %d workflows, %d groups and steps with child runs, and %d variables and local values for all of them. It may declare at most %d workflows. All three kinds together, times such variables and local values, may be at most %d. Split the module.",
		n, uses-n, shared, maxWorkflows, maxShared)
	return true
}

// childStarts returns the number of groups and of steps with a child run in a workflow or group.
func childStarts(b *syntax.Block) int {
	n := 0
	for _, c := range b.Blocks {
		switch {
		case c.Kind == "group":
			n += 1 + childStarts(c)
		case c.Kind == "step" && c.Attr("workflow") != nil:
			n++
		}
	}
	return n
}

const maxWorkflows = 10_000

func (d *decoder) workflow(b *syntax.Block) *Workflow {
	w := &Workflow{
		Name: b.Label, Where: b.DefRange, Block: b, Mode: noun.ModeAutomatic,
		Description: d.lit.text(b, "description"), Deadline: b.Attr("deadline"),
		Variables: map[string]*Variable{}, Locals: map[string]*eval.Local{}, Index: map[string]int{}, outputAt: map[string]hcl.Range{},
		Retry: b.One("retry"), Unique: b.One("unique").Attr("key"), Priority: b.Attr("priority"),
		Concurrency: b.One("concurrency"), RejectsWhenFull: d.lit.rejectsWhenFull(b.One("concurrency")),
	}
	readRetention(d, b, w)
	readUnique(d, b.One("unique"), w)
	for n, v := range d.m.Variables {
		w.Variables[n] = v
	}
	for n, l := range d.m.locals {
		w.Locals[n] = l
	}
	for _, c := range b.Blocks {
		switch c.Kind {
		case "variable":
			if twin := d.variable(c, w.Variables, false); twin != nil {
				w.TwinVariables = append(w.TwinVariables, twin)
			}
		case "schedule":
			scheduleDecoder{d}.schedule(w, c)
		case "on_event":
			eventDecoder{d}.read(w, c)
		case "admit":
			admitDecoder{d}.read(w, c)
		case "compensation":
			w.CompensationDeadline = c.Attr("deadline")
			w.Mode = d.mode(c.Attr("mode"))
		}
	}
	eventDecoder{d}.resets(w, b.One("unique"))
	d.content(w, b)
	for _, c := range b.All("notify") {
		notifyDecoder{d}.read(w, c)
	}
	return w
}

const maxSteps = 10_000

// group reads a group block of the workflow w. It returns the step that starts the group.
func (d *decoder) group(w *Workflow, b *syntax.Block) *Step {
	inner := &Workflow{
		Name: w.Name + "." + b.Label, Where: b.DefRange, Block: b, Mode: w.Mode, Retention: w.Retention,
		Variables: map[string]*Variable{}, Locals: map[string]*eval.Local{}, Index: map[string]int{}, outputAt: map[string]hcl.Range{},
		Outer: w, taken: map[string]*taken{},
		Concurrency: b.One("concurrency"), RejectsWhenFull: d.lit.rejectsWhenFull(b.One("concurrency")),
	}
	for n, v := range d.m.Variables {
		inner.Variables[n] = v
	}
	for n, l := range d.m.locals {
		inner.Locals[n] = l
	}
	s := &Step{
		Name: b.Label, Where: b.DefRange, Block: b, Kind: StepChild, After: map[int]hcl.Range{}, OutputType: cty.NilType,
		InputAt: b.DefRange, ActionAt: b.DefRange, Catch: b.One("catch"),
		Child: &Child{Name: inner.Name, Where: b.DefRange, Workflow: inner, Group: true},
	}
	inner.Holder = s
	groupDecoder{d}.reserved(b)
	d.content(inner, b)
	if len(inner.Steps) == 0 && !b.Broken {
		d.Errorf(b.DefRange, "Group without steps", "Group %q has no step, so it does nothing. Write a step block in it, or remove it.", b.Label)
	}
	return s
}

// content reads the steps, groups, locals and outputs in a workflow block or group block.
func (d *decoder) content(w *Workflow, b *syntax.Block) {
	for _, c := range b.Blocks {
		var s *Step
		switch c.Kind {
		case "locals":
			w.OwnLocals = append(w.OwnLocals, d.localsBlock(c, w.Locals, false)...)
			continue
		case "output":
			d.output(w, c)
			continue
		case "step":
			s = d.step(c)
		case "group":
			s = d.group(w, c)
		default:
			continue
		}
		s.Index = len(w.Steps)
		w.Steps = append(w.Steps, s)
		if first, dup := w.Index[c.Label]; dup {
			d.duplicate(c, w.Steps[first].Where)
			// A duplicate of the pivot is reported only as a duplicate, not as a second pivot.
			s.Pivot = s.Pivot && !w.Steps[first].Pivot
			continue
		}
		w.Index[s.Name] = s.Index
	}
	if len(w.Steps) > maxSteps {
		d.Errorf(b.DefRange, "Too many steps", "A workflow may hold at most %d steps.", maxSteps)
	}
}

func (d *decoder) output(w *Workflow, b *syntax.Block) {
	if first, dup := w.outputAt[b.Label]; dup {
		d.duplicate(b, first)
	} else {
		w.outputAt[b.Label] = b.DefRange
	}
	w.Outputs = append(w.Outputs, &Output{
		Name: b.Label, where: b.DefRange, Value: b.Attr("value"),
		Description: d.lit.text(b, "description"), Sensitive: d.lit.flag(b, "sensitive", false),
	})
}

func (d *decoder) mode(e *eval.Expr) noun.Mode {
	if e == nil {
		return noun.ModeAutomatic
	}
	v, ok := d.lit.constant(e, "compensation.mode must be known before a run.")
	if ok && v.Type() == cty.String && !v.IsNull() {
		switch v.AsString() {
		case "automatic":
			return noun.ModeAutomatic
		case "manual":
			return noun.ModeManual
		}
		d.Errorf(e.Range, "Invalid value for mode", "mode is \"automatic\" or \"manual\".%s",
			diag.DidYouMean(v.AsString(), []string{"automatic", "manual"}))
	} else if ok {
		d.Errorf(e.Range, "Invalid value for mode", "mode is \"automatic\" or \"manual\".")
	}
	return noun.ModeAutomatic
}
