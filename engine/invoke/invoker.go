// Package invoke is the contract between an engine and an Invoker, which calls the engine's
// agents.
//
// In: a call. Out: the agent's reply, or a *Deferred if nothing was sent. An Invoker does
// not know runs, stores or leases. Package agents has the Invoker that calls agent
// processes.
package invoke

import (
	"context"
	"fmt"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/sdk"
)

// An Invoker calls agents (S11, S12). The engine does not depend on agent processes: an
// Invoker may send calls through a queue instead.
type Invoker interface {
	// Invoke sends one call and waits for the reply. The error is a *Deferred if nothing
	// was sent. It is ctx's error if ctx ended first: then the outcome of the call is
	// unknown (S17, S28). In every other case Invoke returns a Reply, even if the agent was
	// lost.
	Invoke(ctx context.Context, call Call) (sdk.Reply, error)
}

// An AsyncInvoker is an Invoker that needs no goroutine for each call. Implementing it is
// optional. If an Invoker has Start, a node calls Start instead of Invoke.
type AsyncInvoker interface {
	Invoker
	// Start sends one call and returns at once. It waits neither for the agent nor for a
	// free slot. done is called exactly once, with the values that Invoke would have
	// returned. It may be called from any goroutine, even before Start returns. done does
	// not block.
	//
	// The call ends with context.DeadlineExceeded when Request.Remaining has passed since
	// Start, and with ctx's error when ctx ends. ctx is the same for all calls of a node;
	// it ends when the node stops at once. So an implementation should watch ctx once, not
	// for each call.
	//
	// Call.Stop is nil: the node calls Stop of the returned Started instead. Started is nil
	// if nothing was sent.
	Start(ctx context.Context, call Call, done func(sdk.Reply, error)) Started
}

// Started is a call that AsyncInvoker.Start has sent.
type Started interface {
	// Stop notifies the agent that the engine does not need the answer any more, like
	// Call.Stop. Stop does not block. It may be called several times, also after the
	// call has ended.
	Stop()
}

// A Call is one request to one agent.
type Call struct {
	Agent   AgentSpec
	Request sdk.Request
	Run     status.RunID // internal id of the run; Request contains the public id
	// OnProgress receives heartbeats and checkpoints while the call runs, in order. It is
	// not called after Invoke has returned. It does not block. nil = progress is ignored.
	OnProgress func(Progress)
	// OnLate receives a late reply: the agent answered after complete-by, when Invoke had
	// already returned. A late reply is only evidence (S28). An Invoker calls OnLate at
	// most once, and need not call it. nil = late replies are ignored.
	OnLate func(sdk.Reply)
	// Scrub removes sensitive values from texts about the call that people will read, such
	// as the agent's log. It is safe for concurrent use, and may be called after Invoke has
	// returned. nil = there are no sensitive values.
	Scrub func(string) string
	// Secrets are the texts that Scrub removes. If a text may belong to several calls, the
	// secrets of all of them are removed together, because a secret of one call may contain
	// a secret of another.
	Secrets []string
	// Stop is closed when the engine does not need the answer any more. An Invoker may then
	// ask the agent to stop. Invoke still waits until the agent answers or ctx ends,
	// because only the answer says whether there was an effect. nil = never closed.
	Stop <-chan struct{}
}

// A Checker is an Invoker that can check, before a run starts, whether an agent can be
// called. Implementing it is optional.
type Checker interface {
	// Check returns an error if the agent is missing or cannot be started.
	Check(ctx context.Context, spec AgentSpec) error
}

// Progress is a sign of life of a running call.
type Progress struct {
	Number int    // for a checkpoint: its number; for a heartbeat: progress in percent
	Note   string // text of a heartbeat; "" = none
	Blob   []byte // data of a checkpoint; nil = heartbeat
}

// An AgentSpec is an agent as a definition states it, with its configuration evaluated.
// Agents with equal keys share processes, breakers and limits.
type AgentSpec struct {
	*dsl.Agent
	// Config may contain references to secrets, which are resolved when a process starts.
	Config dsl.Value
	// Key consists of name, plugin, version, checksum, and a hash of Config, Env, the limits
	// and the breaker.
	Key string
}

// A Deferred is the error of a call that was not sent.
type Deferred struct {
	Until time.Time // when to try again, by this process's clock; zero = soon
	Why   string    // reason, such as "circuit open", "full" or "secret env:X is not set"
}

// Error says why the call was not sent, and when to try again.
func (d *Deferred) Error() string {
	if d.Until.IsZero() {
		return "engine: call not sent: " + d.Why
	}
	return fmt.Sprintf("engine: call not sent: %s until %s", d.Why, d.Until.UTC().Format(time.RFC3339))
}

// A Capacity reports and reserves free slots of agents. The engine reserves a slot before
// it commits an attempt, so that the call can be sent after the commit.
type Capacity interface {
	// Slot returns the free capacity of an agent. Until is a time of this process's clock.
	// The result may be out of date at once: only Reserve is reliable.
	Slot(spec AgentSpec) machine.Slot
	// Reserve takes n slots, or none if fewer are free.
	Reserve(spec AgentSpec, n int) bool
	// Release gives n slots back. Afterwards it calls the functions that OnFree has
	// registered.
	Release(spec AgentSpec, n int)
	// OnFree registers fn. The Capacity calls fn, without locks held, whenever a slot of an
	// agent may have become free. key is AgentSpec.Key.
	OnFree(fn func(key string))
}
