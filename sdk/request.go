package sdk

import (
	"encoding/json"
	"time"

	"github.com/saga-engine/engine/sdk/internal/names"
)

// A Request holds what the engine sends to the agent process to call an action. The function
// of the action gets most of it as a Call.
type Request struct {
	Action  string
	Purpose Purpose
	// JSON object with the inputs of the action; sensitive values are in plain text. Do not
	// change the bytes, because other code may use the same slice.
	Input json.RawMessage
	// IdempotencyKey is the same for all attempts of a step, on all engines and after restarts
	// (S26). Two things give a step a new key: an undo with on_rerun = "undo_first", and
	// `engine retry --new-key`.
	IdempotencyKey string
	ForwardKey     string        // for an undo: the key of the call to undo; otherwise ""
	CompleteBy     time.Time     // after this time the agent must do nothing and send nothing (S28); never zero
	Remaining      time.Duration // time until CompleteBy, computed by the sender of the call; 0 = not given
	Run            string        // public id of the run
	Workflow       string
	Step           string      // name of the step, with ["key"] for an instance
	Attempt        int         // number of the attempt; the first attempt has 1
	Fence          int64       // fencing token; rises each time the run gets another owner (S29)
	Checkpoint     *Checkpoint // last checkpoint of an earlier attempt; nil = none
}

// TimeLeft returns how long the agent may work if it starts at the time in the parameter `now`. The
// result is the time until CompleteBy, or Remaining if Remaining is shorter and not 0.
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
	PurposeUndo            // the undo of an earlier call
	PurposeLookup          // the lookup of the outcome of the call with the same key
)

// A Reply is the answer of an agent: a result, a definite failure, or an unknown outcome.
// The zero Reply is invalid.
type Reply struct {
	Outcome   Outcome
	Output    json.RawMessage // for OutcomeResult: the outputs; for OutcomeFailed: Failure.Data
	Code      string          // for OutcomeFailed or OutcomeUnknown: error code
	Message   string          // text for people; the engine decides nothing because of this text
	Permanent bool            // for OutcomeFailed: the call must not be repeated
	// For OutcomeFailed or OutcomeUnknown: shortest pause before a repetition; 0 = no
	// minimum.
	RetryAfter time.Duration
}

// Outcome says how a call ended.
type Outcome uint8

// The outcomes. If the agent does not report how a call ended, the outcome is
// OutcomeUnknown.
const (
	OutcomeInvalid Outcome = iota
	OutcomeResult          // the call was done; Reply.Output contains the result
	OutcomeFailed          // a definite failure: the agent guarantees that nothing was done
	OutcomeUnknown         // the call may or may not have had its effect
	OutcomeNotDone         // only for PurposeLookup: the call with the same key never had an effect
)

// Error codes of the SDK and the engine. Agents may answer with the transient and permanent
// codes of this list, and with the codes that they declare. If a definite failure has a
// transient code, the engine repeats the call by default.
const (
	CodeTimeout     = names.Timeout   // unknown: the agent did not reply before complete-by
	CodeAgentLost   = names.AgentLost // unknown: the agent process died, or its connection was lost
	CodeInternal    = names.Internal  // unknown: the action panicked or returned a plain error
	CodeBadReply    = names.BadReply  // unknown: the reply was too large or did not fit the schema
	CodeUnavailable = "unavailable"   // transient: the service cannot be used now
	CodeRateLimited = "rate_limited"  // transient: the service accepts no more calls for now
	CodeAborted     = "aborted"       // transient: the work was stopped, for example by a cancel
	CodeInvalid     = "invalid"       // permanent: the agent refuses the input
	CodeDenied      = "denied"        // permanent: the call is not allowed
)
