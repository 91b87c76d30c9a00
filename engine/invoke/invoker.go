// Package invoke is the contract between an engine and what calls its agents.
//
// In comes a call; out goes the agent's reply, or word that nothing was sent. An
// implementation knows nothing of runs, stores or leases. The package agents has
// the one that calls agent processes.
package invoke

import (
	"context"
	"fmt"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/sdk"
)

// An Invoker calls agents (S11, S12). The engine never sees a process: a queue
// could stand behind it as well.
type Invoker interface {
	// Invoke sends one call and waits for the reply. The error is *Deferred if
	// nothing was sent, or ctx's error if ctx ended first: then nothing is
	// known and nothing may be concluded (S17, S28). Everything else, a lost
	// agent included, is a Reply.
	Invoke(ctx context.Context, call Call) (sdk.Reply, error)
}

// An AsyncInvoker is an Invoker that needs no goroutine for each call.
// Implementing it is optional; a node prefers Start where it is there.
type AsyncInvoker interface {
	Invoker
	// Start sends one call and returns at once: it neither waits for the agent nor
	// for room. done is called exactly once, from any goroutine, perhaps before
	// Start returns, with what Invoke would have returned; it does not block. The
	// call ends with context.DeadlineExceeded when Request.Remaining has passed
	// since Start, and with ctx's error when ctx ends. ctx is the same for all
	// calls of a node, and ends when that stops at once: an implementation watches
	// it once and not for each call. Call.Stop is nil: what it would tell is said
	// by the returned Started, which is nil where nothing was sent.
	Start(ctx context.Context, call Call, done func(sdk.Reply, error)) Started
}

// A Started is a call in flight.
type Started interface {
	// Stop says that the answer is not wanted any more, like Call.Stop. It does
	// not block and may be called more than once, also after the call has ended.
	Stop()
}

// A Call is one request to one agent.
type Call struct {
	Agent   AgentSpec
	Request sdk.Request
	Run     machine.RunID // internal id of the run, of which Request has the public one
	// OnProgress receives heartbeats and checkpoints while the call runs, in
	// order, and not any more once Invoke has returned. It does not block.
	// nil = ignored.
	OnProgress func(Progress)
	// OnLate receives an answer that the agent gave after its complete-by, when
	// Invoke had returned without one: evidence only (S28). It is called at
	// most once, and need not be: the agent does not have to wait long for such an answer.
	// nil = ignored.
	OnLate func(sdk.Reply)
	// Scrub takes what is sensitive out of texts about the call that people
	// will read, such as its agent's logs. It is safe for concurrent use, also
	// after Invoke has returned. nil = nothing is sensitive.
	Scrub func(string) string
	// Secrets are the texts that Scrub takes out. A text that may be about several
	// calls is redacted for all of them at once: a secret of one call may contain a
	// secret of another.
	Secrets []string
	// Stop is closed when the answer is not wanted any more. The agent may be
	// told, but the call is not over: Invoke goes on until the agent answers or
	// ctx ends, because only the answer says what was done. nil = never.
	Stop <-chan struct{}
}

// A Checker is an Invoker that can tell beforehand whether it could call an
// agent at all. Implementing it is optional.
type Checker interface {
	// Check returns an error if the agent is missing or cannot be started.
	Check(ctx context.Context, spec AgentSpec) error
}

// Progress is a sign of life of a running call.
type Progress struct {
	Number int
	Note   string
	Blob   []byte // a checkpoint; nil = heartbeat
}

// An AgentSpec is an agent as a definition pins it, with its configuration
// evaluated. Equal keys share processes, breakers and limits.
type AgentSpec struct {
	*dsl.Agent
	Config dsl.Value // may hold references to secrets, resolved at start
	Key    string    // name, plugin, version, checksum and a hash of Config, Env, the limits and the breaker
}

// A Deferred says that a call was not sent.
type Deferred struct {
	Until time.Time // when to try again, by this process's clock; zero = soon
	Why   string    // "circuit open", "full", "secret env:X is not set", …
}

// Error says why and until when.
func (d *Deferred) Error() string {
	if d.Until.IsZero() {
		return "engine: call not sent: " + d.Why
	}
	return fmt.Sprintf("engine: call not sent: %s until %s", d.Why, d.Until.UTC().Format(time.RFC3339))
}

// A Capacity tells and reserves what agents can take now. The scheduler
// reserves before it commits an attempt, so that what it starts can be sent.
type Capacity interface {
	// Slot returns what may start now; Until by this process's clock. It may
	// be out of date at once.
	Slot(spec AgentSpec) machine.Slot
	// Reserve takes n slots, all or none.
	Reserve(spec AgentSpec, n int) bool
	// Release gives n slots back. OnFree callbacks follow.
	Release(spec AgentSpec, n int)
	// OnFree registers fn to be called, without locks held, whenever a slot of
	// some agent may have become free; key is AgentSpec.Key.
	OnFree(fn func(key string))
}
