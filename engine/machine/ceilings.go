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

// Ceilings limit the size of one run. 0 means the default. Only Decide reads the ceilings. A
// record contains the result of the decision, so an engine with other ceilings computes the
// same state from it.
//
// A ceiling stops only forward work. If a step would exceed a ceiling, it fails with CodeLimit
// before its agent is called. The run handles this like any other failure. The results of
// calls in flight still count. Undos and lookups also start above a ceiling, so that the run
// can still be undone.
type Ceilings struct {
	Instances int   // maximum number of instances of all for_each steps of the run together
	Records   int   // maximum number of records in the run's journal
	Journal   int64 // maximum size of the run's journal in the store, in bytes
	// Maximum total size of the inputs, outputs and each.values of all steps, in bytes.
	Values int64
	// Maximum total size of all recorded checkpoints, in bytes. Each checkpoint counts with
	// its size plus checkpointCost.
	Checkpoints int64
}

// checkpointCost is the number of bytes that Ceilings.Checkpoints counts for each checkpoint
// in addition to its size.
const checkpointCost = 64

// WithDefaults returns a copy of c in which every 0 is replaced by the default.
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

// Validate returns an error that names the first ceiling that is negative or too large; nil if
// there is none.
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

// nodeWeight is approximately the number of bytes of memory that a node takes without its
// values.
const nodeWeight = 700
