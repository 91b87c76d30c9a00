package agents

import (
	"slices"
	"time"
)

// This file shows the state of a Pool to the tests of package agents_test.

// AgentDetails describes one agent of a Pool, with its processes.
type AgentDetails struct {
	AgentStatus
	Failures  int              // number of failures in a row; 0 if the circuit is open
	Until     time.Time        // time of the next probe; zero unless the circuit is open
	Instances []InstanceStatus // sorted by the instance's number; replaced processes follow their instance
}

// An InstanceStatus describes one of the processes that an agent should have (instances = N). Or it
// says why this process is missing.
type InstanceStatus struct {
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

// Details returns the agents of Status, with their processes.
func (p *Pool) Details() (list []AgentDetails) {
	known := p.known()
	for _, st := range p.Status() {
		i := slices.IndexFunc(known, func(a *agent) bool { return a.spec.Name == st.Agent })
		list = append(list, known[i].details(st))
		known = slices.Delete(known, i, i+1)
	}
	return list
}

func (a *agent) details(st AgentStatus) AgentDetails {
	d := AgentDetails{AgentStatus: st}
	d.Failures, d.Until = a.breaker.details()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, i := range a.instances {
		d.Instances = append(d.Instances, i.statusLocked())
		for _, l := range i.old {
			d.Instances = append(d.Instances, l.statusLocked())
		}
	}
	return d
}

// details returns the number of failures in a row, and the time of the next probe. The number is 0
// if the circuit is open. The time is zero unless the circuit is open.
func (b *breaker) details() (failures int, until time.Time) {
	failures = int(b.cb.Counts().ConsecutiveFailures)
	b.mu.Lock()
	defer b.mu.Unlock()
	return failures, b.until
}

func (i *instance) statusLocked() InstanceStatus {
	switch {
	case i.life != nil:
		return i.life.statusLocked()
	case i.state == stateStarting:
		return InstanceStatus{State: InstanceStarting}
	}
	st := InstanceStatus{State: InstanceDown}
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
		Pid: l.process.Pid(), State: InstanceReady, Healthy: l.takesLocked(),
		InFlight: l.calls, Expired: l.expired, Missed: l.missed, Since: l.born, Why: l.draining,
	}
	if l.draining != "" {
		st.State = InstanceDraining
	}
	return st
}
