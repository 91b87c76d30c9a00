package noun

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// A Notify is a notify block of a workflow: which states of a run it announces, and how. The
// engine announces a state with a separate run, the notification. So the call of the
// notification has its own attempts and history, and its failure cannot change the announced
// run.
type Notify struct {
	On []string // states that the block announces: words of NotifyStates
	// Flow is the workflow of a notification. Its only step makes the call. The variables of a
	// notification are the result of the method Variables. A person cannot start this workflow.
	Flow *Workflow
}

// NotifyStates lists the states that a notify block can announce. All of them are states of a run,
// except overdue: the deadline of the run has passed, but the run is not undone.
var NotifyStates = []string{"succeeded", "failed", "compensated", "cancelled", "parked", "compensation_failed", "overdue"}

// personStates are the states of NotifyStates in which a run needs a person.
var personStates = []string{"parked", "compensation_failed", "overdue"}

// AnnounceGroups gives the notify blocks of a workflow to its groups, at any depth. For the run of
// a group, a block announces only the states in which the run needs a person. The author of the
// block asked for states of the run of the workflow. If the run of a group is in any other state,
// such as succeeded, this says nothing about the state of the run of the workflow.
func (w *Workflow) AnnounceGroups() {
	var all []*Notify
	for _, n := range w.Notify {
		on := slices.DeleteFunc(slices.Clone(n.On), func(state string) bool { return !slices.Contains(personStates, state) })
		if len(on) > 0 {
			all = append(all, &Notify{On: on, Flow: n.Flow})
		}
	}
	w.announceGroups(all)
}

func (w *Workflow) announceGroups(all []*Notify) {
	for _, s := range w.Steps {
		if s.Child != nil && s.Child.Group {
			s.Child.Workflow.NotifyAround = all
			s.Child.Workflow.announceGroups(all)
		}
	}
}

// NotifyStep is the name of the only step of a notification.
const NotifyStep = "notify"

// NotifyName returns the name of the workflow that sends the notifications of the n-th notify block
// of a workflow; the first block has the number 0. No workflow in a file can have this name,
// because a name in a file holds no dot.
func NotifyName(workflow string, n int) string {
	if n == 0 {
		return workflow + ".notify"
	}
	return fmt.Sprintf("%s.notify.%d", workflow, n+1)
}

// noticeName is the name of a variable that each notification has. Its value describes the
// announced run. No variable in a file can have this name.
const noticeName = ".notice"

// A notice holds the values of run.* and failure.* of an announced run.
type notice struct {
	Run       string `json:"run"`
	Workflow  string `json:"workflow"`
	Key       string `json:"key"`
	StartedAt string `json:"started_at"`
	Trigger   string `json:"trigger"`
	Status    string `json:"status"`
	Step      string `json:"step"`
	Code      string `json:"code"`
	Message   string `json:"message"`
}

// Variables returns the variables of a notification: the variables of the announced run, which are
// in the parameter `vars`, and one more variable for the run.* and failure.* of that run.
func (n *Notify) Variables(vars value.Value, run eval.RunInfo, failure eval.Failure) (value.Value, error) {
	return value.WithMember(vars, noticeName, map[string]string{
		"run": run.ID, "workflow": run.Workflow, "key": run.Key, "status": run.Status, "trigger": run.Trigger,
		"started_at": run.StartedAt.UTC().Format(time.RFC3339Nano),
		"step":       failure.Step, "code": failure.Code, "message": failure.Message,
	})
}

// Announced returns the scope in which the expressions of a notify block are evaluated. The
// parameter `s` is the scope of the notification. In the result, run.* and failure.* describe the
// announced run. If the variables of s hold no announced run, Announced returns s unchanged.
func Announced(s *eval.Scope) *eval.Scope {
	if s == nil {
		return nil
	}
	var n notice
	raw, ok := value.PartOf(s.Vars, []value.PathStep{{Name: noticeName, Index: -1}})
	if !ok || json.Unmarshal(raw, &n) != nil {
		return s
	}
	out := *s
	out.Run = eval.RunInfo{ID: n.Run, Workflow: n.Workflow, Key: n.Key, Trigger: n.Trigger, Status: n.Status}
	if at, err := time.Parse(time.RFC3339Nano, n.StartedAt); err == nil {
		out.Run.StartedAt = at
	}
	out.Failure = &eval.Failure{Step: n.Step, Code: n.Code, Message: n.Message}
	return &out
}
