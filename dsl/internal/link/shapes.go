package link

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/decl"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// shapes finds the action of every step that has a call, and the workflow of every group. It sets
// l.steps, and the types of the arguments and the output of each step.
func (l *workflowLinker) shapes() {
	for _, s := range l.decl.Steps {
		if s.Kind != decl.StepCalls && s.Kind != decl.StepChild {
			l.shapeWithoutCall(s)
			continue
		}
		a := l.called(s)
		l.steps = append(l.steps, &linkedStep{decl: s})
		l.ev.Steps = append(l.ev.Steps, eval.StepShape{})
		l.world.Steps = append(l.world.Steps, cty.NilVal)
		l.shape(len(l.steps)-1, a)
	}
	l.valueShapes()
}

// shape sets the action of step i to the action a, and sets the types of the arguments and the
// output of the step. If the action is not known, a is nil.
func (l *workflowLinker) shape(i int, a *linkedAction) {
	ls := l.steps[i]
	s := ls.decl
	ls.action = a
	shape := eval.StepShape{Name: s.Name, Each: s.Each(), Out: cty.DynamicPseudoType, In: cty.DynamicPseudoType}
	output := cty.DynamicVal
	if a != nil {
		shape.Out = l.outputType(s, a)
		if shape.In = argType(a.in); a.child != nil {
			shape.In = a.childIn
		} else {
			l.out.Agents[a.agent.decl.Name] = a.agent.noun
		}
		if a.form != nil {
			shape.Given = func(s *eval.Scope) (value.Value, error) { return ls.given(s) }
		}
		output = value.MarkFields(value.UnknownOf(shape.Out), a.schema.Outputs)
	}
	l.ev.Steps[i] = shape
	l.world.Steps[i] = unknownStep(shape, output)
}

// valueShapes links the workflows of all groups, and sets the output types of all groups and value
// steps. It handles each step after the steps to which the step refers. This is impossible if the
// steps have a cycle. Then valueShapes links the groups in any order, and the types of value steps
// remain unknown.
func (l *workflowLinker) valueShapes() {
	for _, i := range l.decl.Order {
		s := l.decl.Steps[i]
		if s.Child != nil && s.Child.Group {
			l.shape(i, childLinker{l}.group(s))
		}
		if s.Kind != decl.StepValue {
			continue
		}
		l.world.Each = eachBefore(l.quietly(s.Attr("for_each")))
		output := unknownLike(l.quietly(s.Attr("value")))
		raw, _ := output.UnmarkDeep()
		l.ev.Steps[i].Out = raw.Type()
		l.world.Steps[i] = unknownStep(l.ev.Steps[i], output)
	}
	l.world.Each = cty.NilVal
	for i, s := range l.decl.Steps { // if the steps have a cycle, the loop above did nothing
		if s.Child != nil && s.Child.Group && l.steps[i].action == nil {
			l.shape(i, childLinker{l}.group(s))
		}
	}
}

// called returns the action that a step calls. If there is no such action, called returns nil,
// and the error was reported. It also returns nil for a group: valueShapes links a group
// later, after the steps to which the group refers.
func (l *workflowLinker) called(s *decl.Step) *linkedAction {
	switch {
	case s.Kind != decl.StepChild:
		return l.action(s.Agent, s.Action, s.ActionAt)
	case s.Child.Group:
		return nil
	}
	return childLinker{l}.action(s.Child)
}
