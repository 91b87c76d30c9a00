package link

import (
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/argument"
	"github.com/saga-engine/engine/dsl/internal/decl"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/noun"
	"github.com/saga-engine/engine/dsl/internal/sorted"
	"github.com/saga-engine/engine/dsl/internal/value"
	"github.com/saga-engine/engine/dsl/span"
)

// undo links the undo of a step, and sets out.Undo. The undo is the compensate block of the step.
// Without this block, the undo of a child run is the undo of its steps, and the undo of any other
// call is the action that the schema names in compensated_by. A read-only step, a step with a
// repeat block, and a step that says compensation = "none" have no undo without this block.
func (l undoLinker) undo(d *decl.Step, ls *linkedStep, out *noun.Step) {
	switch {
	case d.Undo != nil:
		out.Undo, ls.undoStatic = l.writtenUndo(d, d.Undo)
		if out.Undo != nil {
			ls.undoAction = l.agents[l.prefix+d.Undo.Agent].linked(d.Undo.Action)
		}
	case d.NoUndo || ls.action == nil || out.Do.ReadOnly || ls.action.schema.CompensatedBy == "":
		return
	case d.Repeat != nil:
		// The action's undo from the schema would undo only one iteration of the step. So the step
		// needs a compensate block, and the method `undoable` reports that this block is missing.
		return
	case ls.action.child != nil:
		out.Undo, ls.undoStatic = childLinker(l).undo(ls.action)
	default:
		out.Undo, ls.undoStatic = l.declaredUndo(d, ls)
	}
	u := out.Undo
	if u == nil {
		return
	}
	if !u.Do.Idempotent {
		at := d.Where
		if d.Undo != nil {
			at = d.Undo.ActionAt
		}
		l.Warnf(at, "Undo is not idempotent", "%s.%s does not say that it may be called twice. If its outcome is not known it cannot be repeated, and the run ends compensation_failed.",
			u.Do.Agent, u.Do.Name)
	}
}

// writtenUndo links a compensate block. The second result is the settings of the undo; nil if the
// settings depend on the run or have errors. Both results are nil if the action of the undo is
// invalid.
func (l undoLinker) writtenUndo(d *decl.Step, u *decl.Undo) (*noun.Undo, *noun.Settings) {
	a := l.action(u.Agent, u.Action, u.ActionAt)
	settings, static := settingsOf(l.workflowLinker, a.limits(undoDefaults()), undoSettings(u.Block))
	if a == nil {
		for _, x := range u.Input {
			l.check(x.Expr)
		}
		return nil, nil
	}
	l.out.Agents[u.Agent] = a.agent.noun
	codes := codeLinker(l).codesOf(a, u.Input)
	codeLinker(l).codes(u.Block.One("retry").Attr("on"), codes)
	codeLinker(l).codes(u.Block.One("retry").Attr("not_on"), codes)
	do := actionNoun(a, u.Idempotent, nil, undoneByKey(d, u), a.out)
	args := argumentLinker(l).arguments(a.in, u.Input, u.InputAt, "action "+a.title(), do.ByKey)
	byKey := do.ByKey
	given := func(s *eval.Scope) (value.Value, error) { return args.Build(s, byKey && !outputKnown(s)) }
	a.askWith(do, given)
	return &noun.Undo{
		Do: do, UsesSelf: args.UsesSelf, Retryable: retryable(a.schema.Errors), Settings: settings, Input: a.sent(given),
	}, static
}

func outputKnown(s *eval.Scope) bool { return s != nil && s.Self != nil && s.Self.OutputKnown }

// declaredUndo links the undo that the schema names in compensated_by. An argument of the undo gets
// the value of the step's output that has the same name as the argument. If the step has no such
// output, the argument gets the value of the step's input with this name. The second result is the
// settings of the undo. Both results are nil after an error.
func (l undoLinker) declaredUndo(d *decl.Step, ls *linkedStep) (*noun.Undo, *noun.Settings) {
	fwd := ls.action
	a := l.action(d.Agent, fwd.schema.CompensatedBy, d.ActionAt)
	if a == nil {
		return nil, nil
	}
	settings, static := settingsOf(l.workflowLinker, a.limits(undoDefaults()), nil)
	f := &argument.Filler{Evaluator: l.ev, Self: d.Index, ByKey: a.schema.ByKey}
	ok := true
	for _, name := range sorted.Keys(a.in) {
		spec := a.in[name]
		from, ty := "", cty.NilType
		switch shape := l.ev.Steps[d.Index]; {
		case shape.Out.IsObjectType() && shape.Out.HasAttribute(name):
			from, ty = "output", shape.Out.AttributeType(name)
		case shape.In.IsObjectType() && shape.In.HasAttribute(name):
			from, ty = "input", shape.In.AttributeType(name)
		case spec.Required():
			ok = false
			l.Errorf(d.Where, fmt.Sprintf("No way to undo step %q", d.Name),
				"%s is compensated by %s, which requires argument %q; neither the output nor the input of the step has it. Write a compensate block.",
				fwd.short(), a.short(), name)
			continue
		}
		if from != "" && !value.Assignable(ty, spec.Type) {
			ok = false
			l.Errorf(d.Where, fmt.Sprintf("No way to undo step %q", d.Name),
				"%s is compensated by %s, whose argument %q is %s; the step's %s %q is %s. Write a compensate block.",
				fwd.short(), a.short(), name, value.TypeText(spec.Type), from, name, value.TypeText(ty))
			continue
		}
		f.Fields = append(f.Fields, argument.Fill{Spec: spec, From: from})
		f.UsesSelf = f.UsesSelf || from == "output"
	}
	if !ok {
		return nil, nil
	}
	do := actionNoun(a, nil, nil, nil, a.out)
	a.askWith(do, f.Eval)
	return &noun.Undo{
		Do: do, Input: a.sent(f.Eval), UsesSelf: f.UsesSelf,
		Retryable: retryable(a.schema.Errors), Settings: settings, Declared: true,
	}, static
}

// soundness checks the rules that concern more than one step: deadline, pivot, undo, retries and
// outputs that may be null. It also sets the field Before of all steps.
func (l undoLinker) soundness() {
	d := l.decl
	if d.Deadline == nil && d.Outer == nil {
		l.Warnf(d.Where, "Workflow without deadline", "Workflow %q may take any time. Write deadline = \"...\" to have it undone when it takes longer.", d.Name)
	}
	l.before()
	effects := false
	for _, s := range l.steps {
		effects = effects || s.calls() && (s.action == nil || !s.readOnly)
	}
	if !effects && d.Outer == nil {
		l.Add(diag.SeverityInfo, d.Where, "No step changes anything", "Workflow %q has no step with an effect on the outside, so nothing in it ever needs to be undone.", d.Name)
	}
	later := map[int]bool{}
	if p := l.out.Pivot; p >= 0 && d.Order != nil {
		later = d.Downstream(p)
		l.pivot(p, later)
	}
	for i, s := range l.steps {
		l.undoable(i, s, later)
		childLinker(l).undoable(s, later[i])
		l.fits(s)
		l.timerFits(s)
		l.promisedRetries(i, s)
	}
	nullChecker(l).nullReads()
	codeLinker(l).workflowCodes()
}

// before sets the field Before of each step: the indexes of the steps that depend directly on this
// step. The method `before` finds these dependencies in the field After of all steps.
func (l undoLinker) before() {
	for _, s := range l.out.Steps {
		for _, on := range s.After {
			l.out.Steps[on].Before = append(l.out.Steps[on].Before, s.Index)
		}
	}
}

// undoable reports an error if the step s with the index i has an effect, but has no undo and does
// not say compensation = "none". Three kinds of steps need no undo: the pivot, a step after the
// pivot, and the only step of a workflow. But the only step needs an undo if it has a repeat block,
// or if it is in a group. The keys of the map named `later` are the indexes of the steps after the
// pivot.
func (l undoLinker) undoable(i int, s *linkedStep, later map[int]bool) {
	d, out := s.decl, l.out.Steps[i]
	if s.action == nil || s.readOnly || d.NoUndo || d.Undo != nil || d.Repeat == nil && s.action.schema.CompensatedBy != "" {
		return
	}
	if d.Pivot || later[i] {
		return
	}
	if d.Repeat != nil {
		l.noLoopUndo(s)
		return
	}
	if len(l.decl.Index) == 1 && l.decl.Outer == nil { // steps with the same name count as one step
		out.NoUndo = true
		return
	}
	l.Errorf(d.Where, fmt.Sprintf("No way to undo step %q", d.Name),
		"%s changes things and declares no compensation. Add a compensate block, or state compensation = \"none\".", s.action.short())
}

// promisedRetries warns if a step sets max_attempts to another value than 1, but its action is
// neither idempotent nor read-only. The engine repeats such an action only after a failure that
// certainly had no effect. promisedRetries does not warn if the settings of the step depend on the
// run, or if the step has on_rerun = "undo_first".
func (l undoLinker) promisedRetries(i int, s *linkedStep) {
	out, asked := l.out.Steps[i], s.decl.Block.One("retry").Attr("max_attempts")
	if asked == nil || out.Do == nil || out.Do.Idempotent || out.Do.ReadOnly || s.static == nil ||
		s.static.Retry.MaxAttempts == 1 || out.OnRerun == noun.RerunUndoFirst {
		return
	}
	l.Warnf(asked.Range, "Unknown outcomes are not repeated",
		"%s is not idempotent, so it is repeated only after a failure that surely did nothing. Where the outcome is not known (a timeout, a lost agent, an answer the agent is not sure of) no second attempt is made. If a repetition under the same key does no harm, write idempotent = true.",
		s.action.short())
}

// pivot reports errors in the pivot and in the steps after the pivot. The parameter `p` is the
// index of the pivot. The keys of the map named `later` are the indexes of the steps after the
// pivot.
func (l undoLinker) pivot(p int, later map[int]bool) {
	d := l.steps[p].decl
	for _, x := range []struct {
		name string
		bad  bool
		at   func() hcl.Range
	}{
		{"for_each", d.Each(), func() hcl.Range { return d.Attr("for_each").Range }},
		{"catch", d.Catch != nil, func() hcl.Range { return d.Catch.DefRange }},
		{"postcondition", len(d.Post) > 0, func() hcl.Range { return d.Post[0].Where }},
	} {
		if x.bad {
			l.Errorf(x.at(), "Not allowed on a pivot", "The pivot is one call that succeeds or not, so it cannot have %s.", x.name)
		}
	}
	if d.Undo != nil && !l.m.Older {
		l.Errorf(d.Undo.Where, "Not allowed on a pivot",
			"A pivot that failed has done nothing, and once it has succeeded nothing is undone, so compensate can never run. Remove it, or remove pivot = true.")
	}
	for _, i := range sorted.Ints(later) {
		s := l.steps[i]
		if w := s.decl.Wait; w != nil && !w.Continue && !l.catchesAll(s.decl) {
			l.Errorf(s.decl.Where, "Step after the pivot can fail",
				"After the pivot %q nothing is undone. The wait %q must have a deadline and on_timeout = \"continue\", or catch { errors = [\"*\"] }.",
				d.Name, s.decl.Name)
		}
		if s.action == nil || s.readOnly || l.catchesAll(s.decl) {
			continue
		}
		out := l.out.Steps[i]
		if st := s.static; st != nil && st.Retry.MaxAttempts == noun.Unbounded && out.Do.Idempotent && s.decl.Attr("deadline") == nil && len(loopCodes(s.decl)) == 0 {
			continue
		}
		why := ""
		switch {
		case !out.Do.Idempotent:
			why = fmt.Sprintf(" %s is not idempotent, so it cannot be repeated without end.", s.action.short())
		case s.decl.Attr("deadline") != nil:
			why = " Its deadline would make it fail."
		case len(loopCodes(s.decl)) > 0:
			why = " Its max_iterations would make it fail."
		}
		l.Errorf(s.decl.Where, "Step after the pivot can fail",
			"After the pivot %q nothing is undone. Step %q must be read-only, have catch { errors = [\"*\"] }, or be an idempotent action with retry { max_attempts = \"unbounded\" } and no deadline.%s",
			d.Name, s.decl.Name, why)
	}
}

// catchesAll reports whether the catch block of a step certainly catches every error code, as
// catch { errors = ["*"] } does. If it depends on the run whether "*" is in the list, catchesAll
// returns false. In a stored definition, a literal "*" anywhere in the expression is enough, because
// a stored definition stays valid.
func (l undoLinker) catchesAll(d *decl.Step) bool {
	e := d.Catch.Attr("errors")
	if e == nil || e.Bad {
		return false
	}
	if l.m.Older {
		return slices.Contains(literals(e), noun.AllCodes)
	}
	return slices.ContainsFunc(codeLinker(l).writtenCodes(e), func(c writtenCode) bool { return c.code == noun.AllCodes })
}

// fits warns if the deadline of a step is too early for some of its attempts. To find this out, it
// assumes that each attempt takes its full timeout and that each pause has its full length. It does
// not warn about defaults: the step must have timeout or max_attempts. It looks only at settings
// that are known before a run, with 2 to 10,000 attempts and a duration as the deadline.
func (l undoLinker) fits(s *linkedStep) {
	st := s.static
	d := s.decl
	written := d.Attr("timeout") != nil || d.Block.One("retry").Attr("max_attempts") != nil
	if st == nil || st.Deadline.After <= 0 || st.Retry.MaxAttempts < 2 || !written || st.Retry.MaxAttempts > 10_000 {
		return
	}
	total, lost := st.Timeout, 0
	for k := 1; k < st.Retry.MaxAttempts; k++ {
		total += longestPause(&st.Retry, k)
		if total >= st.Deadline.After && lost == 0 {
			lost = k + 1
		}
		total += st.Timeout
	}
	if lost == 0 {
		return
	}
	which := fmt.Sprintf("attempts %d to %d", lost, st.Retry.MaxAttempts)
	switch st.Retry.MaxAttempts - lost {
	case 0:
		which = fmt.Sprintf("attempt %d", lost)
	case 1:
		which = fmt.Sprintf("attempts %d and %d", lost, st.Retry.MaxAttempts)
	}
	l.Warnf(d.Attr("deadline").Range, "Retries cannot fit the step deadline",
		"%d attempts of %s plus backoff take up to %s; if each takes its full time, %s can never start.",
		st.Retry.MaxAttempts, span.Text(st.Timeout), span.Text(total), which)
}
