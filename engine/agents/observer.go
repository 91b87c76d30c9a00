package agents

import (
	"fmt"
	"time"
)

// An Observer is notified of changes of agent processes and of circuits. The Pool calls the
// methods without locks held, from several goroutines. The methods must not block.
type Observer interface {
	// CircuitChanged is called when a circuit has changed its state.
	CircuitChanged(c CircuitChange)
	// ProcessStarted is called when a process is ready for calls.
	ProcessStarted(p ProcessInfo)
	// ProcessEnded is called when a process has ended, if ProcessStarted was called for this
	// process before. err says how the process ended.
	ProcessEnded(p ProcessInfo, err error)
}

// A CircuitChange is a change of a circuit's state.
type CircuitChange struct {
	Agent    string // name of the agent block
	Key      string // key of the agent, as in invoke.AgentSpec
	From, To Circuit
	Failures int       // number of failures that opened the circuit; 0 unless To is CircuitOpen
	Until    time.Time // time of the next probe; zero unless To is CircuitOpen
}

// Circuit is the state of a circuit.
type Circuit string

// The states of a circuit.
const (
	CircuitClosed   Circuit = "closed"
	CircuitHalfOpen Circuit = "half-open"
	CircuitOpen     Circuit = "open"
)

// ProcessInfo identifies an agent process.
type ProcessInfo struct {
	Agent    string // name of the agent block
	Key      string // key of the agent, as in invoke.AgentSpec
	Instance int    // number of the instance, from 1
	Pid      int    // process id
}

// String returns the agent, the instance and the process id, for people.
func (p ProcessInfo) String() string {
	return fmt.Sprintf("agent %s, instance %d, pid %d", p.Agent, p.Instance, p.Pid)
}

// NoObserver is an Observer that ignores all changes.
type NoObserver struct{}

// CircuitChanged does nothing.
func (NoObserver) CircuitChanged(CircuitChange) {}

// ProcessStarted does nothing.
func (NoObserver) ProcessStarted(ProcessInfo) {}

// ProcessEnded does nothing.
func (NoObserver) ProcessEnded(ProcessInfo, error) {}

var _ Observer = NoObserver{}
