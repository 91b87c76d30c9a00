package sdk

import (
	"encoding/json"
	"time"

	"github.com/saga-engine/engine/sdk/internal/names"
)

// A Request is one call of an action as it crosses the process boundary.
// Authors of agents see it as a Call.
type Request struct {
	Action         string
	Purpose        Purpose
	Input          json.RawMessage // object of the action's inputs, secrets resolved; not to be changed: others may have it, too
	IdempotencyKey string          // equal over all attempts of a step, engines and restarts (S26)
	ForwardKey     string          // for an undo: the key of the call it undoes; else ""
	CompleteBy     time.Time       // past it the agent says nothing and tries nothing (S28); never zero
	Remaining      time.Duration   // time left when sent, for hosts whose clocks differ
	Run            string          // public run id
	Workflow       string
	Step           string      // step name, with ["key"] for an instance
	Attempt        int         // counts from 1
	Fence          int64       // fencing token of the engine that calls; rises with every change of owner (S29)
	Checkpoint     *Checkpoint // last one an earlier attempt recorded; nil = none
}

// TimeLeft returns how long the agent may work when it starts at now: until the
// earlier of CompleteBy and Remaining from now. Remaining 0 is no statement.
func (r Request) TimeLeft(now time.Time) time.Duration {
	left := r.CompleteBy.Sub(now)
	if r.Remaining != 0 && r.Remaining < left {
		left = r.Remaining
	}
	return left
}

// Purpose says why an action is called.
type Purpose uint8

// The purposes. The zero Purpose is invalid.
const (
	PurposeInvalid Purpose = iota
	PurposeDo              // the step's own work
	PurposeUndo            // compensation of an earlier call
	PurposeLookup          // ask what became of the key; do nothing
)

// A Reply is the answer of an agent: a result, a definite failure, or that the outcome is
// unknown. The zero Reply is invalid.
type Reply struct {
	Outcome    Outcome
	Output     json.RawMessage // Outcome Result: object of the action's outputs; Failed: the failure's data, any JSON
	Code       string          // Outcome Failed or Unknown: error code
	Message    string          // for people; never decides anything
	Permanent  bool            // Failed: not to be repeated
	RetryAfter time.Duration   // Failed or Unknown: not before this long; 0 = no wish
}

// Outcome is the three-valued result of a call.
type Outcome uint8

// The outcomes. Everything an agent does not say is OutcomeUnknown.
const (
	OutcomeInvalid Outcome = iota
	OutcomeResult          // done; Output holds the result
	OutcomeFailed          // definitely not done: the agent vouches for it
	OutcomeUnknown         // may or may not have been done
	OutcomeNotDone         // only for PurposeLookup: the key never had an effect
)

// Codes of the SDK and the engine. Agents may answer with the transient and permanent ones
// of this list, and with the codes that they declare.
const (
	CodeTimeout     = names.Timeout   // unknown: no reply by complete-by
	CodeAgentLost   = names.AgentLost // unknown: the agent process died
	CodeInternal    = names.Internal  // unknown: panic or plain error
	CodeBadReply    = names.BadReply  // unknown: reply too large or against the schema
	CodeUnavailable = "unavailable"   // transient
	CodeRateLimited = "rate_limited"  // transient
	CodeAborted     = "aborted"       // transient
	CodeInvalid     = "invalid"       // permanent: the input makes no sense to the agent
	CodeDenied      = "denied"        // permanent: not allowed
)
