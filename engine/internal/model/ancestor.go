package model

import (
	"slices"

	"github.com/saga-engine/engine/engine/machine/status"
)

// An Ancestor is an ended run whose results a later run has taken over (engine restart). The calls
// of a step that was taken over keep the idempotency keys that they had in the ancestor. In the
// expressions of the step's undo, run.* describes the ancestor.
type Ancestor struct {
	Run     status.RunID // internal id
	Name    string       // public id
	Key     string       // unique key; "" = none
	Trigger string
	Started Instant
	From    string   // step that a person named as the start of the next run
	Reason  string   // why a person restarted the run; "" = no reason was given
	Steps   []Legacy // steps that made their calls in the ancestor, ascending by number
}

// A Legacy is one step that a run has taken over.
type Legacy struct {
	Step    int32  // number of the step in the run that has taken it over
	KeyName string // name of the step in its idempotency keys
}

func sameAncestor(a, b Ancestor) bool {
	return a.Run == b.Run && a.Name == b.Name && a.Key == b.Key && a.Trigger == b.Trigger && a.Started == b.Started &&
		a.From == b.From && a.Reason == b.Reason && slices.Equal(a.Steps, b.Steps)
}

// Legacy returns the run in which the given step made its calls, and the name of the step in its
// idempotency keys. It returns nil if the run has not taken over the step.
func (r *Run) Legacy(step int32) (from *Ancestor, keyName string) {
	for i := range r.Ancestors {
		a := &r.Ancestors[i]
		k, ok := slices.BinarySearchFunc(a.Steps, step, func(l Legacy, step int32) int { return int(l.Step) - int(step) })
		if ok {
			return a, a.Steps[k].KeyName
		}
	}
	return nil, ""
}

// Origin returns the run whose results this run has taken over; nil = there is none.
func (r *Run) Origin() *Ancestor {
	if len(r.Ancestors) == 0 {
		return nil
	}
	return &r.Ancestors[len(r.Ancestors)-1]
}
