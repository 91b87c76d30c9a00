package call

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/sdk"
)

// event turns an agent's reply into the event that reports it. Only a valid
// reply completes a step (S35): everything else leaves the outcome unknown.
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
		if err != nil {
			return bad("the reply does not fit the schema: %v", err)
		}
		return machine.AttemptOK{Attempt: id, Output: markEchoes(out, redact.secrets)}
	case sdk.OutcomeFailed:
		if reply.Code == "" {
			return bad("the agent reports a failure without a code")
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

// failureData is what an agent sent with a failure. Data that are no JSON are left out:
// the failure counts all the same.
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

// output checks a result against the schema of the action that was called.
func (e *Spec) output(data json.RawMessage) (dsl.Value, error) {
	step := e.Flow.Steps[e.Invoke.Step]
	action := step.Do
	undoing := e.Invoke.Purpose == sdk.PurposeUndo || e.Invoke.Purpose == sdk.PurposeLookup && e.Invoke.ForwardKey != ""
	if undoing && step.Undo != nil {
		action = step.Undo.Do
	}
	if action == nil || action.Output == nil {
		return dsl.Value{}, errors.New("the action has no schema")
	}
	if len(data) == 0 {
		if e.Invoke.Purpose != sdk.PurposeDo {
			return dsl.Value{}, nil // whether it was done is all that was asked
		}
		data = json.RawMessage("{}")
	}
	return action.Output(data)
}

// A redactor takes sensitive strings out of texts that people will read. It is
// safe for concurrent use.
type redactor struct {
	secrets []string
	once    sync.Once
	replace func(string) string // made when first needed: most calls say nothing
}

// text returns s without what is sensitive, as valid UTF-8.
func (r *redactor) text(s string) string {
	if s == "" {
		return ""
	}
	if len(r.secrets) == 0 {
		return strings.ToValidUTF8(s, "\ufffd")
	}
	r.once.Do(func() { r.replace = dsl.Redactor(r.secrets) })
	return r.replace(strings.ToValidUTF8(s, "�"))
}

// input returns the call's input with its secrets filled in, and notes for the
// redactor everything sensitive that the agent was told or may know of the run.
// A secret of the agent's configuration that does not resolve is left to
// the start of the agent: without the secret the agent gets no call.
func (c *Call) input() (json.RawMessage, error) {
	cfg, config := &c.w.cfg, c.Agent.Config
	secrets := slices.Concat(c.Sensitive, c.Invoke.Input.SensitiveStrings(), config.SensitiveStrings())
	data, err := dsl.ResolveSecrets(c.Invoke.Input, func(ref string) (string, error) {
		s, err := cfg.Secrets(ref)
		secrets = append(secrets, s)
		return s, err
	})
	for _, s := range config.Secrets() {
		for _, part := range s.Parts {
			if part.Ref == "" {
				continue
			}
			if known, err := cfg.Secrets(part.Ref); err == nil {
				secrets = append(secrets, known)
			}
		}
	}
	c.redact.secrets = secrets
	if err != nil {
		return nil, errors.New(c.redact.text(err.Error()))
	}
	return data, nil
}
