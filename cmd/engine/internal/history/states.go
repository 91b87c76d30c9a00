package history

import (
	"github.com/saga-engine/engine/engine/machine/status"
)

// Attention is the value of --status that selects runs which need a person.
const Attention = "attention"

// AttentionStates returns each status that means that a run needs a person. Some runs need a
// person although their status does not say so: WithOverdue finds them.
func AttentionStates() []status.RunState {
	return []status.RunState{status.RunParked, status.RunCompensationFailed}
}

// states returns every status that a run can have.
func states() []status.RunState {
	var out []status.RunState
	for i := status.RunQueued; i <= status.RunCancelled; i++ {
		if _, ok := status.ParseRunState(i.String()); ok {
			out = append(out, i)
		}
	}
	return out
}

// StateNames returns the names of every status that a run can have.
func StateNames() []string {
	var out []string
	for _, s := range states() {
		out = append(out, s.String())
	}
	return out
}

// OpenStates returns every status of a run that has not ended.
func OpenStates() []status.RunState {
	var out []status.RunState
	for _, s := range states() {
		if !s.Final() {
			out = append(out, s)
		}
	}
	return out
}
