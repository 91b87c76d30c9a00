package link

import (
	"fmt"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/decl"
	"github.com/saga-engine/engine/dsl/internal/noun"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// codeMaxIterations is the error code of a step whose loop reached max_iterations before until was
// true.
const codeMaxIterations = "max_iterations"

// repeatOf links the repeat block of a step. It returns nil if the step has no such block.
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

// constantSpan returns the duration v. It returns 0 if the duration is not known before a run.
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

// checkLoopedRerun checks that a step with a repeat block does not say on_rerun = "undo_first".
func checkLoopedRerun(l stepLinker, d *decl.Step) {
	if d.Repeat != nil && d.OnRerun == noun.RerunUndoFirst {
		l.Errorf(d.Attr("on_rerun").Range, "Not allowed with repeat",
			"on_rerun = \"undo_first\" would undo all iterations of step %q before another attempt of one. Remove it, or remove the repeat block.", d.Name)
	}
}

// noLoopUndo reports that a step with a repeat block has an effect in each iteration, and no
// compensate block. The undo of such a step is called once for all iterations, so the author must
// write what it undoes.
func (l undoLinker) noLoopUndo(s *linkedStep) {
	declared := ""
	if undo := s.action.schema.CompensatedBy; undo != "" {
		declared = fmt.Sprintf(" The undo that the action declares, %s, would undo only the last iteration.", undo)
	}
	l.Errorf(s.decl.Repeat.DefRange, "No undo for all iterations",
		"%s changes things in every iteration, and an undo is called once for the whole step.%s Write a compensate block that undoes all of them, for example with self.collected, or state compensation = \"none\".",
		s.action.short(), declared)
}

// undoneByKey returns whether the undo u finds the effect of the step by the key of its call; nil
// means that the schema of the agent says this. In a step with a repeat block, each iteration has
// its own key, so the key of one of them does not find the effects of the others.
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

// previousBefore returns self.previous for the checks before a run. output is self.output. In the
// first iteration self.previous is null, so the result may be null, too.
func previousBefore(output cty.Value) cty.Value {
	raw, marks := output.UnmarkDeep()
	out := cty.UnknownVal(raw.Type())
	if len(marks) > 0 {
		return out.Mark(value.SensitiveMark{})
	}
	return out
}
