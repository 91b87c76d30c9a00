package link

import (
	"fmt"

	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/argument"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/noun"
	"github.com/saga-engine/engine/dsl/internal/report"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// notifications links the notify blocks of a workflow. For each block it makes a workflow whose
// runs are the notifications, and adds this workflow to l.out.Notify. In a stored definition, the
// agent of a notify block in a library may be missing. Then notifications leaves this block out,
// because its notifications could not be sent. At the end, notifications gives the notify blocks of
// the workflow to the groups of the workflow, too. These groups are already linked.
func notifications(l *workflowLinker) {
	wf := l.out
	for _, n := range l.decl.Notifies {
		if l.m.Older && l.agents[l.prefix+n.Flow.Steps[0].Agent] == nil {
			continue
		}
		wl := l.newWorkflow(n.Flow)
		wl.out.Notifies, wl.out.Inner = wf.Name, false
		wl.instead = ownText(report.Range(n.Flow.Where).String())
		wl.shapes()
		stepLinker{wl}.step(0)
		announces(wl, wl.out.Steps[0])
		wl.out.Shortest = stepLinker{wl}.shortest()
		wl.out.Confidential = wf.Confidential || confidential(wl)
		wl.bindings()
		wf.Notify = append(wf.Notify, &noun.Notify{On: n.On, Flow: wl.out})
	}
	if l.decl.Outer == nil {
		wf.AnnounceGroups()
	}
}

// announces changes the step of a notification: the expressions of the step get the values of the
// announced run. If timeout or retry cannot be evaluated, the step has the default settings,
// because such an error must not stop a notification.
func announces(l *workflowLinker, s *noun.Step) {
	ls := l.steps[0]
	if given := ls.given; given != nil {
		ls.given = func(s *eval.Scope) (value.Value, error) { return given(noun.Announced(s)) }
	}
	settings, defaults := s.Settings, defaultsOf(l, true)
	if ls.static != nil {
		return
	}
	s.Settings = func(s *eval.Scope) (*noun.Settings, error) {
		if out, err := settings(noun.Announced(s)); err == nil {
			return out, nil
		}
		out := defaults
		return &out, nil
	}
}

// ownText returns a function for the field argument.List.Instead. The function is called if the
// value of an argument in a notify block cannot be evaluated. It returns the text of the function
// `announcement` in place of this value. If the argument cannot hold a text, it gets its default.
// If it has no default either, Build leaves an optional argument out, and returns the error for a
// required argument. The parameter `at` is the position of the block.
func ownText(at string) func(*argument.Argument, *eval.Scope) (cty.Value, bool) {
	return func(x *argument.Argument, s *eval.Scope) (cty.Value, bool) {
		if x.Spec.Type == cty.String || x.Spec.Type == cty.DynamicPseudoType {
			if v, err := x.Spec.Accept(cty.StringVal(announcement(s, at))); err == nil {
				return v, true
			}
		}
		v, err := x.Spec.Accept(cty.NullVal(cty.DynamicPseudoType))
		return v, err == nil
	}
}

// announcement returns a text that the engine writes itself: it names the run, its state and
// the code of its failure. The text has no values of variables and no messages of failures,
// because these may be sensitive.
func announcement(s *eval.Scope, at string) string {
	text := fmt.Sprintf("Run %s of workflow %s: %s.", s.Run.ID, s.Run.Workflow, s.Run.Status)
	if f := s.Failure; f != nil && f.Code != "" {
		if f.Step != "" {
			text += fmt.Sprintf(" Step %s failed with %s.", f.Step, f.Code)
		} else {
			text += fmt.Sprintf(" The reason is %s.", f.Code)
		}
	}
	return text + fmt.Sprintf(" The engine wrote this text, because the input of notify (%s) cannot be evaluated.", at)
}
