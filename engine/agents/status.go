package agents

import (
	"cmp"
	"slices"
)

// An AgentStatus describes one agent of a Pool.
type AgentStatus struct {
	Agent    string  // name of the agent block
	InFlight int     // number of calls in progress
	Healthy  int     // number of processes that can get calls
	Circuit  Circuit // state of the agent's circuit
}

// Status returns a description of each agent that was called or checked, sorted by name.
func (p *Pool) Status() []AgentStatus {
	known := p.known()
	slices.SortFunc(known, func(x, y *agent) int {
		return cmp.Or(cmp.Compare(x.spec.Name, y.spec.Name), cmp.Compare(x.spec.Key, y.spec.Key))
	})
	list := make([]AgentStatus, 0, len(known))
	for _, a := range known {
		list = append(list, a.status())
	}
	return list
}

func (a *agent) status() AgentStatus {
	st := AgentStatus{Agent: a.spec.Name, Circuit: a.breaker.state()}
	a.mu.Lock()
	defer a.mu.Unlock()
	st.InFlight = a.calls
	for _, i := range a.instances {
		if i.life.takesLocked() {
			st.Healthy++
		}
	}
	return st
}
