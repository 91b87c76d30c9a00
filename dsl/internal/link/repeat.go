package link

import (
	"fmt"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/argument"
	"github.com/saga-engine/engine/dsl/internal/decl"
	"github.com/saga-engine/engine/dsl/internal/noun"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// codeMaxIterations is the error code of a step whose loop reached max_iterations before the
// condition `until` was true.
const codeMaxIterations = "max_iterations"

// repeatOf links the repeat block of a step and returns the result. It returns nil if the step has
// no such block.
func repeatOf(l stepLinker, d *decl.Step, ls *linkedStep) *noun.Repeat {
	b := d.Repeat
	if b == nil {
		return nil
	}
	out := &noun.Repeat{
		Until:    exprFunc(l.workflowLinker, b.Attr("until"), "until", cty.Bool, value.BoolOf),
		Interval: exprFunc(l.workflowLinker, b.Attr("interval"), "interval", cty.String, value.SpanOf),
	}
	if e := b.Attr("collect"); e != nil {
		out.Collect = argumentLinker(l).valueFunc(e, "collect", false, nil)
	}
	if e := b.Attr("interval"); e != nil {
		ls.interval = constantSpan(e.Bad, e.Compiled.Constant)
	}
	return out
}

// loopGiven returns the function for the field Given of noun.Step: the parameter `given` computes
// the arguments of the step d. It returns nil if the run need not store these arguments.
func loopGiven(d *decl.Step, a *linkedAction, given *argument.List) noun.ValueFunc {
	if d.Repeat == nil || a.form == nil || !d.UsesSelfInput() {
		return nil
	}
	for _, x := range d.Input {
		if c := x.Expr.Compiled; c != nil && c.Self {
			return given.Eval
		}
	}
	return nil
}

// constantSpan returns v as a duration. It returns 0 if v is nil, because then the duration is not
// known before a run. It also returns 0 if the parameter `bad` is true, or if v is no valid
// duration.
func constantSpan(bad bool, v *cty.Value) time.Duration {
	if bad || v == nil {
		return 0
	}
	span, err := value.SpanOf(*v)
	if err != nil {
		return 0
	}
	return span
}

// checkLoopedRerun reports an error if a step with a repeat block has on_rerun = "undo_first".
func checkLoopedRerun(l stepLinker, d *decl.Step) {
	if d.Repeat != nil && d.OnRerun == noun.RerunUndoFirst {
		l.Errorf(d.Attr("on_rerun").Range, "Not allowed with repeat",
			"on_rerun = \"undo_first\" would undo all iterations of step %q before another attempt of one. Remove it, or remove the repeat block.", d.Name)
	}
}

// noLoopUndo reports an error for the step s: it has a repeat block, but no compensate block, and
// each iteration has an effect. The undo of such a step is called once for all iterations, so the
// author must write a compensate block that undoes the effects of all iterations.
func (l undoLinker) noLoopUndo(s *linkedStep) {
	declared := ""
	if undo := s.action.schema.CompensatedBy; undo != "" {
		declared = fmt.Sprintf(" The undo that the action declares, %s, would undo only the last iteration.", undo)
	}
	l.Errorf(s.decl.Repeat.DefRange, "No undo for all iterations",
		"%s changes things in every iteration, and an undo is called once for the whole step.%s Write a compensate block that undoes all of them, for example with self.collected, or state compensation = \"none\".",
		s.action.short(), declared)
}

// undoneByKey returns whether the undo u can find the effect of the step by the idempotency key of
// the call. If it returns nil, the schema of the agent decides. It returns false for a step with a
// repeat block: there each iteration has its own key, so one key finds only the effect of one
// iteration.
func undoneByKey(d *decl.Step, u *decl.Undo) *bool {
	if d.Repeat == nil {
		return u.ByKey
	}
	return new(bool)
}

// loopCodes returns the error codes with which only a step with a repeat block can fail.
func loopCodes(d *decl.Step) []string {
	if d.Repeat.Attr("until") == nil || d.Repeat.Attr("max_iterations") == nil {
		return nil
	}
	return []string{codeMaxIterations}
}

// previousBefore returns the value of self.previous for the checks before a run. The parameter
// `output` is the value of self.output. The returned value is unknown and may be null, because
// self.previous is null in the first iteration.
func previousBefore(output cty.Value) cty.Value {
	raw, marks := output.UnmarkDeep()
	out := cty.UnknownVal(raw.Type())
	if len(marks) > 0 {
		return out.Mark(value.SensitiveMark{})
	}
	return out
}
