package agents

import (
	"fmt"
	"time"
)

// An Observer receives events of processes and breakers. Its methods are called without
// locks held, from several goroutines, and must not block.
type Observer interface {
	// CircuitChanged reports that a breaker has another state.
	CircuitChanged(c CircuitChange)
	// ProcessStarted reports that a process is ready for calls.
	ProcessStarted(p ProcessInfo)
	// ProcessEnded reports that a process that was ready has ended. err says how it ended.
	ProcessEnded(p ProcessInfo, err error)
}

// A CircuitChange is a change of a breaker's state.
type CircuitChange struct {
	Agent    string // name of the agent block
	Key      string // key of the agent, as in invoke.AgentSpec
	From, To Circuit
	Failures int       // number of failures that opened the breaker; 0 unless To is CircuitOpen
	Until    time.Time // time of the next probe; zero unless To is CircuitOpen
}

// Circuit is a breaker's state.
type Circuit string

// The states of a breaker.
const (
	CircuitClosed   Circuit = "closed"
	CircuitHalfOpen Circuit = "half-open"
	CircuitOpen     Circuit = "open"
)

// ProcessInfo identifies a process.
type ProcessInfo struct {
	Agent    string // name of the agent block
	Key      string // key of the agent, as in invoke.AgentSpec
	Instance int    // number of the instance, from 1
	Pid      int
}

// String names the process for people.
func (p ProcessInfo) String() string {
	return fmt.Sprintf("agent %s, instance %d, pid %d", p.Agent, p.Instance, p.Pid)
}

// NoObserver ignores everything.
type NoObserver struct{}

// CircuitChanged does nothing.
func (NoObserver) CircuitChanged(CircuitChange) {}

// ProcessStarted does nothing.
func (NoObserver) ProcessStarted(ProcessInfo) {}

// ProcessEnded does nothing.
func (NoObserver) ProcessEnded(ProcessInfo, error) {}

var _ Observer = NoObserver{}
