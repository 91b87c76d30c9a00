package machine

import (
	"fmt"

	"github.com/saga-engine/engine/engine/internal/model"
)

// The default ceilings of a run. docs/limits.md lists them.
const (
	DefaultInstances   = 10_000
	defaultRecords     = 500_000
	defaultJournal     = 256 << 20
	defaultValues      = 64 << 20
	defaultCheckpoints = 64 << 20
)

// Ceilings limit the size of one run. Only Decide reads them. A record contains the result
// of a decision, so engines with other ceilings fold it to the same state. A zero field
// means the default.
//
// A ceiling stops only forward work. A step that would exceed one fails with CodeLimit
// before its agent is called. The run handles that like any other failure. Calls in flight
// are awaited and their results are kept. Undos and lookups also start above a ceiling, so
// that the run can still be undone.
type Ceilings struct {
	Instances int   // maximum number of instances of all for_each steps of the run together
	Records   int   // maximum number of records in the run's history
	Journal   int64 // maximum size of the run's history in the store, in bytes
	// Maximum size of the inputs, outputs and each.values of all steps together, in bytes.
	Values int64
	// Maximum size of all recorded checkpoints, in bytes. For each checkpoint,
	// checkpointCost is added to its size.
	Checkpoints int64
}

// checkpointCost is added to the size of each checkpoint, in bytes.
const checkpointCost = 64

// WithDefaults returns the ceilings with the default in every field that is 0.
func (c Ceilings) WithDefaults() Ceilings {
	if c.Instances == 0 {
		c.Instances = DefaultInstances
	}
	if c.Records == 0 {
		c.Records = defaultRecords
	}
	if c.Journal == 0 {
		c.Journal = defaultJournal
	}
	if c.Values == 0 {
		c.Values = defaultValues
	}
	if c.Checkpoints == 0 {
		c.Checkpoints = defaultCheckpoints
	}
	return c
}

// Validate returns an error that names the first ceiling that is out of its bounds.
func (c Ceilings) Validate() error {
	for _, n := range []struct {
		name string
		n    int64
	}{
		{"Instances", int64(c.Instances)}, {"Records", int64(c.Records)}, {"Journal", c.Journal}, {"Values", c.Values}, {"Checkpoints", c.Checkpoints},
	} {
		if n.n < 0 {
			return fmt.Errorf("%s must not be negative, as %d is", n.name, n.n)
		}
	}
	if most := model.MaxNodes - model.MaxSteps; c.Instances > most {
		return fmt.Errorf("instances must be at most %d, not %d", most, c.Instances)
	}
	return nil
}

// nodeWeight is roughly how many bytes of memory a node takes without its values.
const nodeWeight = 700
