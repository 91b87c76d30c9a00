package agents

import (
	"time"
)

// An AgentStatus describes one agent of a Pool.
type AgentStatus struct {
	Agent    string // name of the agent block
	Key      string // key of the agent, as in invoke.AgentSpec
	Plugin   string // name of the agent's binary, without its prefix
	Version  string // version of the agent; "" = any
	InFlight int    // number of calls in progress
	Capacity int    // largest number of calls at the same time (max_concurrency); 0 = no limit
	// Circuit is the state of the agent's circuit. If the circuit is open, Failures is the
	// number of failures that opened it, and Until is the time of the next probe. Otherwise,
	// Failures is the number of failures in a row, and Until is zero.
	Circuit   Circuit
	Failures  int
	Until     time.Time
	Instances []InstanceStatus // sorted by the instance's number; replaced processes follow their instance
}

// An InstanceStatus describes one of the processes that an agent should have (instances = N). Or it
// says why this process is missing.
type InstanceStatus struct {
	Instance int // number of the instance, from 1
	Pid      int // process id; 0 = there is no process
	State    InstanceState
	Healthy  bool      // the process can get calls
	InFlight int       // number of calls in progress
	Expired  int       // number of calls in a row that the process did not answer in time
	Missed   int       // number of signs of life in a row that were missing
	Since    time.Time // start of the process; zero = there is no process
	Why      string    // why the process is drained, or why there is no process; "" = no reason is known
	Next     time.Time // earliest time of the next start; zero = the next call starts a process
}

// InstanceState says whether an instance has a process, and what the process is doing.
type InstanceState string

// The states of an instance.
const (
	// InstanceDown means that there is no process: none was started yet, or the last one has
	// ended.
	InstanceDown     InstanceState = "down"
	InstanceStarting InstanceState = "starting"
	InstanceReady    InstanceState = "ready"
	// InstanceDraining means that the process gets no more calls, and ends after its calls.
	InstanceDraining InstanceState = "draining"
)

func (a *agent) status() AgentStatus {
	st := AgentStatus{Agent: a.spec.Name, Key: a.spec.Key, Plugin: a.spec.Plugin, Version: a.spec.Version, Capacity: a.spec.MaxConcurrency}
	st.Circuit, st.Failures, st.Until = a.breaker.status()
	a.mu.Lock()
	defer a.mu.Unlock()
	st.InFlight = a.calls
	for _, i := range a.instances {
		st.Instances = append(st.Instances, i.statusLocked())
		for _, l := range i.old {
			st.Instances = append(st.Instances, l.statusLocked())
		}
	}
	return st
}

func (i *instance) statusLocked() InstanceStatus {
	switch {
	case i.life != nil:
		return i.life.statusLocked()
	case i.state == stateStarting:
		return InstanceStatus{Instance: i.number, State: InstanceStarting}
	}
	st := InstanceStatus{Instance: i.number, State: InstanceDown}
	if i.why != nil {
		st.Why = i.why.Error()
	}
	if i.notBefore.After(time.Now()) {
		st.Next = i.notBefore
	}
	return st
}

func (l *life) statusLocked() InstanceStatus {
	st := InstanceStatus{
		Instance: l.instance.number, Pid: l.process.Pid(), State: InstanceReady, Healthy: l.takesLocked(),
		InFlight: l.calls, Expired: l.expired, Missed: l.missed, Since: l.born, Why: l.draining,
	}
	if l.draining != "" {
		st.State = InstanceDraining
	}
	return st
}
