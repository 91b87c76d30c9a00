// Package invoke is the contract between an engine and an Invoker, which calls the engine's
// agents.
//
// An Invoker gets a Call and returns the agent's reply, or a *Deferred if nothing was sent. An
// Invoker does not know runs, stores or leases. Package agents contains the Invoker that calls
// agent processes.
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
	// Invoke sends one call and waits for the reply. If nothing was sent, it returns a
	// *Deferred as the error. If ctx ends before the reply, it returns ctx's error; then the
	// outcome of the call is unknown (S17, S28). In every other case Invoke returns a Reply,
	// even if the agent was lost.
	Invoke(ctx context.Context, call Call) (sdk.Reply, error)
}

// An AsyncInvoker is an Invoker that needs no goroutine for each call. An Invoker need not
// implement AsyncInvoker. If it does, the engine calls Start instead of Invoke.
type AsyncInvoker interface {
	Invoker
	// Start sends one call and returns at once. It waits neither for the agent nor for a free slot.
	// The AsyncInvoker calls the function `done` exactly once, with the values that Invoke would
	// have returned. It may call `done` from any goroutine, even before Start returns. The function
	// `done` does not block.
	//
	// The call ends with context.DeadlineExceeded when Request.Remaining has passed since
	// Start, and with ctx's error when ctx ends. All calls of an engine have the same ctx,
	// which Node.StopNow ends. So an implementation should watch ctx once, not once for each
	// call.
	//
	// Call.Stop is nil: the engine calls the method Stop of the returned Started instead. If
	// nothing was sent, the returned Started is nil.
	Start(ctx context.Context, call Call, done func(sdk.Reply, error)) Started
}

// Started is a call that AsyncInvoker.Start has sent.
type Started interface {
	// Stop notifies the agent that the engine does not need the answer any more. It has the
	// same purpose as the channel Call.Stop. Stop does not block. It may be called several
	// times, even after the call has ended.
	Stop()
}

// A Call is one request to one agent.
type Call struct {
	Agent   AgentSpec
	Request sdk.Request
	Run     status.RunID // internal id of the run; Request contains the public id
	// StartBy is the last time, by this process's clock, at which the Invoker may send the call. A
	// call that is sent later could exceed the agent's rate_limit. If the Invoker cannot send the
	// call in time, it returns a *Deferred with WhyTooSlow. Zero = there is no such time.
	StartBy time.Time
	// OnProgress receives heartbeats and checkpoints while the call runs, in order. An Invoker
	// does not call OnProgress after Invoke has returned. OnProgress does not block. nil =
	// progress is ignored.
	OnProgress func(Progress)
	// OnLate receives a late reply: the agent answered after complete-by, when Invoke had
	// already returned. A late reply is only evidence (S28). An Invoker calls OnLate at
	// most once. It may ignore late replies and never call OnLate. nil = late replies are
	// ignored.
	OnLate func(sdk.Reply)
	// Scrub removes sensitive values from texts about the call that people will read, such as the
	// agent's log. Scrub is safe for concurrent use. An Invoker may call it after Invoke has
	// returned. nil = there are no sensitive values.
	Scrub func(string) string
	// Secrets are the sensitive values that Scrub removes. If a text may belong to several
	// calls, an Invoker removes the secrets of all these calls together, because a secret of
	// one call may contain a secret of another.
	Secrets []string
	// Stop is closed when the engine does not need the answer any more. An Invoker may then
	// ask the agent to stop. But Invoke still waits until the agent answers or ctx ends,
	// because only the answer says whether there was an effect. nil = the engine needs the
	// answer in any case.
	Stop <-chan struct{}
}

// A Checker can check, before a run starts, whether an agent can be called. An Invoker need not
// implement Checker.
type Checker interface {
	// Check returns an error if the agent cannot be called: for example, if it is missing or
	// cannot be started. Otherwise it returns nil.
	Check(ctx context.Context, spec AgentSpec) error
}

// Progress is a sign of life of a running call.
type Progress struct {
	Number int    // number of the checkpoint; for a heartbeat, the progress in percent
	Note   string // text of a heartbeat; "" = none
	Blob   []byte // data of a checkpoint; nil = the Progress is a heartbeat
}

// An AgentSpec is an agent of a definition, with the values of the agent's configuration. Calls
// whose AgentSpecs have equal keys share processes, a circuit and a limit.
type AgentSpec struct {
	*dsl.Agent
	// Config is the agent's configuration. It may contain references to secrets, which the
	// Invoker resolves when a process starts.
	Config dsl.Value
	// Key is made from the name, plugin, version and checksum, and from a hash of Config, Env,
	// the limits and the settings of the circuit.
	Key string
}

// WhyTooSlow is the value of Deferred.Why if a call was not sent because its StartBy has passed.
const WhyTooSlow = "it was not ready in time for its turn in rate_limit"

// A Deferred is the error that an Invoker returns for a call that was not sent.
type Deferred struct {
	Until time.Time // time of the next try, by this process's clock; zero = soon
	// Why says why the call was not sent, such as "circuit open", "full" or "secret env:X is not
	// set".
	Why string
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
	// Slot returns how many calls of an agent may start now. Slot.Until is a time of this
	// process's clock. The result may be out of date at once: only Reserve is reliable.
	Slot(spec AgentSpec) machine.Slot
	// Reserve takes n slots and returns true. If fewer are free, it takes none and returns
	// false.
	Reserve(spec AgentSpec, n int) bool
	// Release gives n slots back. Then the Capacity calls the functions that OnFree has
	// registered.
	Release(spec AgentSpec, n int)
	// OnFree registers fn. The Capacity calls fn, without locks held, whenever a slot of an agent
	// may have become free. The parameter `key` is AgentSpec.Key.
	OnFree(fn func(key string))
}
