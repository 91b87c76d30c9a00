package agents

import (
	"cmp"
	"slices"
	"time"
)

// An AgentStatus is what a Pool knows of one agent.
type AgentStatus struct {
	Agent    string // name of the agent block
	Key      string // invoke.AgentSpec.Key
	Plugin   string
	Version  string
	InFlight int // calls under way
	Capacity int // calls at a time (max_concurrency); 0 = no limit
	// Circuit is the breaker's state, Failures how many failures in a row it
	// has counted, or those that opened it, and Until when it lets the next
	// probe through; zero unless it is open.
	Circuit   Circuit
	Failures  int
	Until     time.Time
	Instances []InstanceStatus // by number, drained processes after the present one
}

// An InstanceStatus is what a Pool knows of one process of an agent, or of the
// place of one that is not running.
type InstanceStatus struct {
	Instance int // from 1
	Pid      int // 0 = not running
	State    InstanceState
	Healthy  bool      // it is given calls
	InFlight int       // calls under way
	Expired  int       // calls in a row that were not answered in time
	Missed   int       // signs of life in a row that are missing
	Since    time.Time // of its start; zero = not running
	Why      string    // why it is draining or down; "" = nothing went wrong
	Next     time.Time // not started again before this; zero = at the next call
}

// InstanceState says what a process is doing.
type InstanceState string

// The states of an instance.
const (
	InstanceDown     InstanceState = "down" // not started yet, idle for long, or lost
	InstanceStarting InstanceState = "starting"
	InstanceReady    InstanceState = "ready"
	InstanceDraining InstanceState = "draining" // replaced; it ends when its calls are done
)

// Status returns what the pool knows of its agents, by name and key: of those
// that were called, or looked at, since it was made.
func (p *Pool) Status() []AgentStatus {
	p.mu.Lock()
	agents := make([]*agent, 0, len(p.agents))
	for _, a := range p.agents {
		agents = append(agents, a)
	}
	p.mu.Unlock()
	list := make([]AgentStatus, 0, len(agents))
	for _, a := range agents {
		list = append(list, a.status())
	}
	slices.SortFunc(list, func(x, y AgentStatus) int {
		return cmp.Or(cmp.Compare(x.Agent, y.Agent), cmp.Compare(x.Key, y.Key))
	})
	return list
}

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
