package machine

import (
	"fmt"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
)

// CodeLimit is the error code of a step that was not started because its run would then
// exceed a ceiling.
const CodeLimit = "limit_exceeded"

// The ceilings of a run, unless an engine is set otherwise. docs/limits.md lists
// them.
const (
	DefaultInstances   = 10_000
	defaultRecords     = 500_000
	defaultJournal     = 256 << 20
	defaultValues      = 64 << 20
	defaultCheckpoints = 64 << 20
)

// Ceilings limit the size of one run. Only Decide reads them. A record holds the result of
// a decision, so that engines with other ceilings fold it to the same state. Zero fields
// mean the defaults.
//
// A ceiling stops only forward work. A step that would exceed one fails with CodeLimit
// before its agent is called, and the run handles that as any failure. Calls in flight are
// awaited and their results are kept. Undos and lookups start also above a ceiling, so that
// the run can still be undone.
type Ceilings struct {
	Instances   int   // instances of all for_each steps of the run together
	Records     int   // records of the run's history
	Journal     int64 // bytes of the run's history in the store
	Values      int64 // bytes of the inputs, outputs and each.values of all steps together
	Checkpoints int64 // bytes of all checkpoints that were recorded, each with checkpointCost
}

// checkpointCost is what each checkpoint counts in addition to its bytes.
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

// Validate names the first ceiling that is out of its bounds.
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

// ceilings returns those of this decision.
func (d *decider) ceilings() Ceilings { return d.in.Ceilings.WithDefaults() }

// limitMiss is the failure of a step that was not begun, or not once more: like
// that of an expression, it is never repeated. It says which ceiling a step would pass. A ceiling that is raised does
// not bring back what has failed: the message is for the next run.
func limitMiss(name, format string, args ...any) model.Miss {
	return model.Miss{Kind: model.MissExpression, Code: CodeLimit, Message: fmt.Sprintf(format, args...) + " (--limit " + name + "=N sets another)"}
}

// exceeded reports whether the run has reached a ceiling. Then no step of it may begin, or
// make another attempt.
func (d *decider) exceeded() (model.Miss, bool) {
	c := d.ceilings()
	switch {
	case int(d.s.run.Records) >= c.Records:
		return limitMiss("records", "the run's history has %d records; the ceiling is %d", d.s.run.Records, c.Records), true
	case d.in.Journal >= c.Journal:
		return limitMiss("journal", "the run's history has %d bytes; the ceiling is %d", d.in.Journal, c.Journal), true
	case d.s.values.bytes+d.grown >= c.Values:
		return limitMiss("values", "the inputs and outputs of the run's steps have %d bytes together; the ceiling is %d",
			d.s.values.bytes+d.grown, c.Values), true
	}
	return model.Miss{}, false
}

// grow counts bytes of values that the decision adds to the run. It refuses what
// would pass the ceiling.
func (d *decider) grow(what string, bytes int) (model.Miss, bool) {
	most, sum := d.ceilings().Values, d.s.values.bytes+d.grown+int64(bytes)
	if sum > most {
		return limitMiss("values", "%s has %d bytes; with it the inputs and outputs of the run's steps would have %d together; the ceiling is %d",
			what, bytes, sum, most), false
	}
	d.grown += int64(bytes)
	return model.Miss{}, true
}

// roomFor reports whether the run may get the instances of a for_each step.
func (d *decider) roomFor(each dsl.Each) (model.Miss, bool) {
	most, there := d.ceilings().Instances, d.count()-int(d.run.Steps)
	if n := len(each.Keys); n > most-there {
		return limitMiss("instances", "for_each has %d keys; with %d instances that the run has already, the ceiling is %d", n, there, most), false
	}
	bytes := 0
	for k := range each.Values {
		bytes += len(each.Values[k].JSON())
	}
	return d.grow("for_each", bytes)
}

// nodeWeight is about how many bytes of memory a node takes without its values.
const nodeWeight = 700
