package engine

import (
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/owner"
	"github.com/saga-engine/engine/engine/machine"
)

// WithDefaults returns the options with defaults.
func (o Options) WithDefaults() Options { return o.withDefaults() }

// Validate checks the options.
func (o Options) Validate() error { return o.validate() }

// DecideCostly replaces what makes the node's costly decisions, before any is made.
func (n *Node) DecideCostly(decide func(*dsl.Workflow, *machine.State, machine.Input) machine.Record) {
	n.shared.Pool.Decide = decide
}

// DecisionLimit is how long a costly decision may take.
const DecisionLimit = owner.DecisionLimit
