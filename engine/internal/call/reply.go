package call

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/dsl/secret"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/sdk"
)

// A Spec holds everything that one call needs, copied from the run.
type Spec struct {
	Run    status.RunID
	Name   string        // public id of the run
	Flow   *dsl.Workflow // workflow of the run
	Fence  int32         // number of the journal row that made this engine the owner
	Agent  invoke.AgentSpec
	Invoke machine.Invoke
	// Priority is the priority of the run. The child run of a group gets the same priority.
	Priority int
	// Sensitive holds the sensitive strings in the run's variables and outputs.
	Sensitive []string
	// Refusals is how many times in a row a call of this step or instance could not be sent.
	Refusals int
	// Silence is how long the call may give no sign of life (heartbeat_timeout); 0 = no limit.
	Silence time.Duration
	// Capacity is where the slot of the call was reserved; nil = the call needs no slot.
	Capacity invoke.Capacity
	// StartBy is the last time, by this process's clock, at which the call may be sent (see
	// invoke.Call); zero = the complete-by of the call.
	StartBy time.Time
}

// Step returns the name of the step or instance, as agents and people see it.
func (e *Spec) Step() string {
	name := e.Flow.Steps[e.Invoke.Step].Name
	if e.Invoke.Key == "" && e.Flow.Steps[e.Invoke.Step].ForEach == nil {
		return name
	}
	return fmt.Sprintf("%s[%q]", name, e.Invoke.Key)
}

// An Answer is an event of a call, with the facts that its run needs to decide it. The event is
// the answer to the call, a sign of life, or the fact that the call was not sent.
type Answer struct {
	Event      machine.Event
	Arrived    time.Time // store time at which the event reached this engine
	CompleteBy time.Time // complete-by of the attempt that the event answers; zero = none
	Attempt    machine.AttemptID
	Slot       *Reservation // slot of the call that the event answers; nil = none
}

// ErrNotOwner says that this membership does not own the run: another engine or no engine owns it,
// or this membership has ended.
var ErrNotOwner = errors.New("engine: another engine owns the run")

// event returns the event for an agent's reply. Only a valid reply completes a step (S35). For an
// invalid reply, the result is an event which says that the outcome is unknown. The parameter
// `maxValue` is the largest size of a valid reply, in bytes.
func (e *Spec) event(reply sdk.Reply, redact *redactor, maxValue int) machine.Event {
	id := e.Invoke.Attempt
	bad := func(format string, args ...any) machine.Event {
		return machine.AttemptUnknown{Attempt: id, Code: sdk.CodeBadReply, Message: redact.text(fmt.Sprintf(format, args...))}
	}
	if n := len(reply.Output) + len(reply.Message) + len(reply.Code); n > maxValue {
		return bad("the reply has %d bytes, more than the %d allowed", n, maxValue)
	}
	switch reply.Outcome {
	case sdk.OutcomeResult:
		out, err := e.output(reply.Output)
		var refused refusal
		if errors.As(err, &refused) {
			return e.refused(refused, redact)
		}
		if err != nil {
			return bad("the reply does not fit the schema: %v", err)
		}
		return machine.AttemptOK{Attempt: id, Output: markEchoes(out, redact.secrets)}
	case sdk.OutcomeFailed:
		if reply.Code == "" {
			return bad("the agent reports a failure without a code")
		}
		if e.asks() != nil {
			return e.askedFailed(reply, redact)
		}
		return machine.AttemptFailed{
			Attempt: id, Code: redact.text(reply.Code), Message: redact.text(reply.Message),
			Permanent: reply.Permanent, RetryAfter: max(0, reply.RetryAfter), Data: failureData(reply.Output, redact),
		}
	case sdk.OutcomeUnknown:
		code := reply.Code
		if code == "" {
			code = sdk.CodeInternal
		}
		return machine.AttemptUnknown{
			Attempt: id, Code: redact.text(code), Message: redact.text(reply.Message), RetryAfter: max(0, reply.RetryAfter),
		}
	case sdk.OutcomeNotDone:
		if e.Invoke.Purpose == sdk.PurposeLookup {
			return machine.AttemptNotDone{Attempt: id}
		}
		return bad("the agent answers a lookup that was not asked for")
	}
	return bad("the agent answers outcome %d, which does not exist", reply.Outcome)
}

// A refusal is an error of dsl.Action.Output. It says that a fail_when block of a declared action
// refuses the reply. The method Failure returns the code and message from this block, and the reply
// as data.
type refusal interface {
	error
	Failure() (code, message string, permanent bool, data dsl.Value)
}

// refused returns the event for a reply that a fail_when block of a declared action refuses. Such a
// reply means that the call has certainly failed. But a lookup asks about the effect of an earlier
// call. If the reply to a lookup is refused, this means that the earlier call had no effect.
func (e *Spec) refused(r refusal, redact *redactor) machine.Event {
	id := e.Invoke.Attempt
	code, message, permanent, data := r.Failure()
	if e.Invoke.Purpose == sdk.PurposeLookup {
		return machine.AttemptNotDone{Attempt: id}
	}
	return machine.AttemptFailed{
		Attempt: id, Code: redact.text(code), Message: redact.text(message), Permanent: permanent,
		Data: markEchoes(data, redact.secrets),
	}
}

// failureData returns the data that an agent sent with a failure. If the data is larger than
// sdk.MaxData or is not valid JSON, failureData returns null, and the failure counts without data.
func failureData(raw json.RawMessage, redact *redactor) dsl.Value {
	if len(raw) == 0 || len(raw) > sdk.MaxData {
		return dsl.Value{}
	}
	data, err := dsl.Document(raw)
	if err != nil {
		return dsl.Value{}
	}
	return markEchoes(data, redact.secrets)
}

// output checks an agent's output against the schema of the called action, and returns the output
// as a value. The output of an undo or a lookup may be missing; then the value is zero.
func (e *Spec) output(data json.RawMessage) (dsl.Value, error) {
	step := e.Flow.Steps[e.Invoke.Step]
	action := step.Do
	undoing := e.Invoke.Purpose == sdk.PurposeUndo || e.Invoke.Purpose == sdk.PurposeLookup && e.Invoke.ForwardKey != ""
	if undoing && step.Undo != nil {
		action = step.Undo.Do
	}
	if other := e.asks(); other != nil {
		action = other
	}
	if action == nil || action.Output == nil {
		return dsl.Value{}, errors.New("the action has no schema")
	}
	if len(data) == 0 {
		if e.Invoke.Purpose != sdk.PurposeDo {
			return dsl.Value{}, nil // an undo or a lookup may have no output: only the outcome matters
		}
		data = json.RawMessage("{}")
	}
	return action.Output(data)
}

// A redactor removes sensitive strings from texts that people will read. It is safe for
// concurrent use.
type redactor struct {
	secrets []string // the strings to remove
	once    sync.Once
	replace func(string) string // removes secrets from a text; nil until the first use
}

// text returns s as valid UTF-8, with the sensitive strings removed.
func (r *redactor) text(s string) string {
	if s == "" {
		return ""
	}
	if len(r.secrets) == 0 {
		return strings.ToValidUTF8(s, "\ufffd")
	}
	r.once.Do(func() { r.replace = secret.Redactor(r.secrets) })
	return r.replace(strings.ToValidUTF8(s, "�"))
}

// OutcomeOf returns the outcome and the code of an answer. The code is "" if the answer has none.
// ok is false if the event is not an answer.
func OutcomeOf(e machine.Event) (outcome, code string, ok bool) {
	switch e := e.(type) {
	case machine.AttemptOK:
		return "ok", "", true
	case machine.AttemptFailed:
		return "failed", e.Code, true
	case machine.AttemptUnknown:
		return "unknown", e.Code, true
	case machine.AttemptNotDone:
		return "not_done", "", true
	}
	return "", "", false
}

// A lookup that invokes another action fails with the error code codeNotFound if the earlier call
// had no effect.
const codeNotFound = "not_found"

// asks returns the action that a lookup invokes. It returns nil if the lookup invokes the action of
// the earlier call, or if the call is no lookup.
func (e *Spec) asks() *dsl.Action {
	if e.Invoke.Purpose != sdk.PurposeLookup {
		return nil
	}
	step := e.Flow.Steps[e.Invoke.Step]
	action := step.Do
	if e.Invoke.ForwardKey != "" && step.Undo != nil {
		action = step.Undo.Do
	}
	if action == nil {
		return nil
	}
	return action.Asks
}

// asAgentSees returns the purpose and the keys of the request. If a lookup invokes another action,
// the agent sees an ordinary call of that action. The request then has an idempotency key of its
// own, because an agent may treat two calls with the same key as one call. Its forward key is the
// idempotency key of the earlier call.
func (e *Spec) asAgentSees() (purpose sdk.Purpose, key, forwardKey string) {
	inv := e.Invoke
	if e.asks() == nil {
		return inv.Purpose, inv.IdempotencyKey, inv.ForwardKey
	}
	return sdk.PurposeDo, inv.IdempotencyKey + ":lookup", inv.IdempotencyKey
}

// askedFailed returns the event for a definite failure of a lookup that invokes another action. The
// code not_found means that the earlier call had no effect. After any other failure, the outcome of
// the earlier call is still unknown.
func (e *Spec) askedFailed(reply sdk.Reply, redact *redactor) machine.Event {
	id := e.Invoke.Attempt
	if reply.Code == codeNotFound {
		return machine.AttemptNotDone{Attempt: id}
	}
	return machine.AttemptUnknown{
		Attempt: id, Code: redact.text(reply.Code), Message: redact.text(reply.Message), RetryAfter: max(0, reply.RetryAfter),
	}
}

// withKept returns a copy of an answer, with the field Kept set to what remains of the effects of a
// child run. It changes only AttemptOK and AttemptFailed, because only these two have the field
// Kept. It returns every other event unchanged.
func withKept(event machine.Event, kept status.Kept) machine.Event {
	switch ev := event.(type) {
	case machine.AttemptOK:
		ev.Kept = kept
		return ev
	case machine.AttemptFailed:
		ev.Kept = kept
		return ev
	}
	return event
}
