package agents

// An AgentStatus describes one agent of a Pool.
type AgentStatus struct {
	Agent    string  // name of the agent block
	InFlight int     // number of calls in progress
	Healthy  int     // number of processes that can get calls
	Circuit  Circuit // state of the agent's circuit
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
