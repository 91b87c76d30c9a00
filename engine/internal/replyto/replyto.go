// Package replyto calls actions of agents with replies of runs.
//
// In: a reply whose sink is agent:NAME.ACTION. Out: one call of the action, and whether the agent
// has taken the reply. The Invoker of the engine sends the call, unless the circuit of the agent is
// open. The call uses a slot of the agent and counts against the agent's rate_limit, as every call
// does. All calls for one reply have the same idempotency key. Package outbox repeats failed calls
// and keeps the replies; this package does neither.
package replyto

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/dsl/secret"
	"github.com/saga-engine/engine/engine/internal/clock"
	"github.com/saga-engine/engine/engine/internal/outbox"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store/replies"
	"github.com/saga-engine/engine/sdk"
)

const (
	fullPause = time.Second // pause if all slots of the agent are in use
	// For how long an engine leaves a sink to other engines, if it cannot call the agent of the
	// sink.
	elsewherePause = time.Minute
	maxPause       = 5 * time.Minute
	maxText        = 1000    // largest length of an agent's answer in an error, in bytes
	step           = "reply" // name of the step in the requests, as agents and log lines see it
)

// Config holds what a Caller needs. All fields are required.
type Config struct {
	Invoker invoke.Invoker
	Clock   *clock.Clock
	// Load returns the workflow and the variables of a run. An error that is a *Lasting means that
	// this engine cannot read the run.
	Load func(ctx context.Context, run status.RunID) (*dsl.Workflow, dsl.Value, error)
	// Spec returns the agent with its configuration.
	Spec func(agent *dsl.Agent, vars dsl.Value) (invoke.AgentSpec, error)
	// Check returns an error if this engine cannot call the agent.
	Check func(ctx context.Context, spec invoke.AgentSpec) error
	// Present returns the number of the engine's membership, and the Slots of this membership. The
	// Slots are nil if calls have no limit. The number is 0 if the engine has no membership now.
	Present func() (engine int64, slots Slots)
	Secrets func(ref string) (string, error) // returns the secret for a reference such as "env:X"
}

// Slots are the limits of the agents in this engine.
type Slots interface {
	// Prepare asks for parts of the limits that engines share, if the engine has none yet.
	Prepare(ctx context.Context, specs map[string]invoke.AgentSpec)
	Reserve(spec invoke.AgentSpec, n int) bool
	Release(spec invoke.AgentSpec, n int)
	// Start takes the right to start one call. The parameter `completeBy` is a store time. The
	// result `startBy` is the last time, by this process's clock, at which the call may be sent. If
	// it is zero, the call may be sent until `completeBy`.
	Start(spec invoke.AgentSpec, completeBy time.Time) (startBy time.Time, ok bool)
}

// A Lasting is the error of Config.Load if this engine cannot read the run, and another try would
// not help.
type Lasting struct{ Err error }

// Error says why the run cannot be read.
func (e *Lasting) Error() string { return e.Err.Error() }

// A Caller calls agents. Several goroutines may use it.
type Caller struct{ cfg Config }

// New returns a Caller.
func New(cfg Config) *Caller { return &Caller{cfg} }

// Send calls the action that the sink of the reply names. It returns nil if the agent has answered
// with a result. It returns an *outbox.NotNow if nothing was sent because this engine cannot call
// the agent now. Any other error may come from the agent, or from the run or the input of the call.
// ctx must have a deadline, which is the complete-by of the call.
func (c *Caller) Send(ctx context.Context, r replies.Reply) error {
	flow, vars, err := c.cfg.Load(ctx, r.Run)
	var lasting *Lasting
	if errors.As(err, &lasting) {
		return elsewhere("this engine cannot read the run: %v", lasting)
	}
	if err != nil {
		return fmt.Errorf("read the run of a reply: %w", err)
	}
	sink, err := flow.ReplySinks.Find(strings.TrimPrefix(r.Sink, replies.Agent))
	if err != nil {
		return err
	}
	spec, err := c.cfg.Spec(sink.Agent, vars)
	if err != nil {
		return err
	}
	if err := c.cfg.Check(ctx, spec); err != nil {
		return elsewhere("this engine cannot call agent %q: %v", spec.Name, err)
	}
	key := Key(r.ID)
	input, err := sink.Input(&dsl.Scope{
		Run:  dsl.RunInfo{ID: r.Name, Workflow: r.Workflow, Key: r.Key, Status: r.State},
		Vars: vars, Self: &dsl.Self{Key: key},
	}, map[string]any{
		"run": r.Name, "workflow": r.Workflow, "key": r.Key, "correlation": r.Correlation,
		"seq": int(r.N), "status": r.State, "at": r.At.UTC().Format(time.RFC3339Nano),
	})
	if err != nil {
		return fmt.Errorf("make the input of a call with a reply: %w", err)
	}
	secrets := c.secrets(spec, input)
	scrub := secret.Redactor(secrets)
	data, err := secret.Resolve(input, c.cfg.Secrets)
	if err != nil {
		return elsewhere("%s", scrub(err.Error()))
	}
	until, _ := ctx.Deadline()
	err = c.call(ctx, invoke.Call{
		Agent: spec, Run: r.Run, Scrub: scrub, Secrets: secrets,
		Request: sdk.Request{
			Action: sink.Action, Purpose: sdk.PurposeDo, Input: json.RawMessage(data), IdempotencyKey: key, CompleteBy: until.UTC(), Remaining: time.Until(until),
			Run: r.Name, Workflow: r.Workflow, Step: step, Attempt: r.Tries,
		},
	}, sink.Output)
	var notNow *outbox.NotNow
	if err == nil || errors.As(err, &notNow) {
		return err
	}
	return errors.New(scrub(err.Error()))
}

// Key returns the idempotency key of the calls for a reply. No step of a run has the same key.
func Key(id replies.ID) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "reply %d %d", id.Run, id.N))
	return hex.EncodeToString(sum[:16])
}

// elsewhere returns the error of a reply that another engine may be able to deliver.
func elsewhere(format string, args ...any) error {
	return &outbox.NotNow{Why: fmt.Sprintf(format, args...), Here: elsewherePause}
}

// call sends the call, if there is a slot for it. It returns nil if the call has succeeded, and
// otherwise an error. The parameter `accept` checks the output of a result.
func (c *Caller) call(ctx context.Context, call invoke.Call, accept func([]byte) (dsl.Value, error)) error {
	member, slots := c.cfg.Present()
	if member == 0 {
		return &outbox.NotNow{Why: "the engine has not joined the store", Pause: fullPause, Here: fullPause}
	}
	call.Request.Fence = member
	if slots != nil {
		slots.Prepare(ctx, map[string]invoke.AgentSpec{call.Agent.Name: call.Agent})
		full := &outbox.NotNow{Why: fmt.Sprintf("the limits of agent %q let no call start now", call.Agent.Name), Pause: fullPause, Here: fullPause}
		if !slots.Reserve(call.Agent, 1) {
			return full
		}
		defer slots.Release(call.Agent, 1)
		var ok bool
		if call.StartBy, ok = slots.Start(call.Agent, c.cfg.Clock.Now().Add(call.Request.Remaining)); !ok {
			return full
		}
	}
	reply, err := c.cfg.Invoker.Invoke(ctx, call)
	var deferred *invoke.Deferred
	switch {
	case errors.As(err, &deferred):
		pause := min(max(time.Until(deferred.Until), fullPause), maxPause)
		return &outbox.NotNow{Why: deferred.Why, Pause: pause, Here: pause}
	case err != nil:
		return fmt.Errorf("the agent did not answer: %w", err)
	case reply.Outcome == sdk.OutcomeResult:
		if _, err := accept(reply.Output); err != nil {
			return fmt.Errorf("the agent's answer does not count: %w", err)
		}
		return nil
	}
	text := reply.Code + ": " + reply.Message
	if len(text) > maxText {
		text = text[:maxText] + "…"
	}
	return errors.New("the agent answered " + strings.ToValidUTF8(text, "\ufffd"))
}

// secrets returns the sensitive texts and the secrets in the configuration of the agent and in the
// input.
func (c *Caller) secrets(spec invoke.AgentSpec, input dsl.Value) []string {
	out := append(input.SensitiveStrings(), spec.Config.SensitiveStrings()...)
	for _, s := range append(input.Secrets(), spec.Config.Secrets()...) {
		for _, part := range s.Parts {
			if part.Ref == "" {
				continue
			}
			if known, err := c.cfg.Secrets(part.Ref); err == nil { // if the secret cannot be read, the call is not sent
				out = append(out, known)
			}
		}
	}
	return out
}
