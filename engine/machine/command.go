package machine

import (
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/sdk"
)

// A Command is what the shell must do after the record that holds it has been
// committed, and only then. Commands are derived from a record; a process that
// did not land the record itself never executes them.
type Command interface{ command() }

// Invoke calls an agent.
type Invoke struct {
	Attempt        AttemptID
	Purpose        sdk.Purpose
	Step           int    // index in Workflow.Steps
	Key            string // each.key, or ""
	Agent          string // key of Workflow.Agents
	Action         string
	Input          dsl.Value // may hold references to secrets
	IdempotencyKey string
	ForwardKey     string
	Number         int // attempt number for people, from 1, within its purpose and round
	CompleteBy     time.Time
	Checkpoint     *sdk.Checkpoint // what an earlier attempt recorded last; nil = none
}

// Stop tells the agent that a running call is not wanted any more. It does not
// close the attempt. Two cases exist: the run turned back and the action is
// read-only or may be interrupted; or the agent was silent for too long, and the
// attempt is closed already.
type Stop struct {
	Attempt AttemptID
}

// Alert tells an operator (S59).
type Alert struct {
	Kind    string // parked, compensation_failed, overdue, late_reply; an engine adds set_aside and slow_decision
	Step    string // step name, or ""
	Code    string
	Message string
}

func (Invoke) command() {}
func (Stop) command()   {}
func (Alert) command()  {}
