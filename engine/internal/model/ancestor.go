package model

import (
	"slices"

	"github.com/saga-engine/engine/engine/machine/status"
)

// An Ancestor is an ended run whose results a later run has taken over (engine restart). The
// ancestor has made the calls of each step that was taken over, and the step keeps the idempotency
// keys of these calls. In the expressions of the undo of such a step, `run` describes the ancestor.
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

// Legacy returns the ancestor in which the step with this number made its calls, and the name of
// the step in its idempotency keys. The result `from` is nil if this run has not taken over the
// step.
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
