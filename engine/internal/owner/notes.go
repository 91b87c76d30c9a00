package owner

import "github.com/saga-engine/engine/engine/machine"

// notes are values that an engine keeps of a run in addition to its state.
type notes struct {
	// sensitive are the sensitive strings of its variables and outputs, for
	// redaction; it only grows.
	sensitive []string
	refusals  map[int]int // by node: how often in a row its call was not sent
}

// note collects the sensitive strings that an event brings, and counts calls
// that were not sent.
func (n *notes) note(e machine.Event) {
	switch e := e.(type) {
	case machine.Started:
		n.sensitive = append(n.sensitive, e.Vars.SensitiveStrings()...)
	case machine.AttemptOK:
		n.sensitive = append(n.sensitive, e.Output.SensitiveStrings()...)
	case machine.SettleRequested:
		n.sensitive = append(n.sensitive, e.Output.SensitiveStrings()...)
	case machine.AttemptFailed:
		n.sensitive = append(n.sensitive, e.Data.SensitiveStrings()...)
	}
	n.count(e)
}

// count counts how often in a row a node's call was not sent.
func (n *notes) count(e machine.Event) {
	switch e := e.(type) {
	case machine.AttemptDeferred:
		if n.refusals == nil {
			n.refusals = map[int]int{}
		}
		n.refusals[e.Attempt.Node]++
	case machine.AttemptOK:
		delete(n.refusals, e.Attempt.Node)
	case machine.AttemptFailed:
		delete(n.refusals, e.Attempt.Node)
	case machine.AttemptUnknown:
		delete(n.refusals, e.Attempt.Node)
	case machine.AttemptNotDone:
		delete(n.refusals, e.Attempt.Node)
	case machine.TakenOver: // this engine may have the agents that the former owner lacked
		n.refusals = nil
	}
}
