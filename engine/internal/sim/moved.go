package sim

import (
	"slices"
	"strings"

	"github.com/saga-engine/engine/dsl"
)

// moved is what the checks need to know of the migrations of a run. The zero value is for a world
// without families: no run is migrated there.
type moved struct {
	flows []held            // workflows that the run has had, oldest first
	was   map[string]string // earlier name of a renamed step, by the later name
	is    map[string]string // later name of a renamed step, by the earlier name
	// For each step or instance, by its first name: the index into the field `flows` of the
	// workflow that the run had at the last attempt.
	begun map[string]int
}

// held is one of the workflows that a run has had. The field `row` is the number of the first row
// after which the run had this workflow.
type held struct {
	row  int32
	flow *dsl.Workflow
}

func newMoved(flow *dsl.Workflow) moved {
	return moved{flows: []held{{0, flow}}, was: map[string]string{}, is: map[string]string{}, begun: map[string]int{}}
}

// first returns the name that a step or an instance had when it was new in the run. Two steps can
// have the same first name only if the run was moved back to an earlier definition.
func (m *moved) first(name string) string { return rename(m.was, name) }

// now returns the present name of a step or an instance. The parameter is its first name, or any
// later name of it.
func (m *moved) now(name string) string { return rename(m.is, name) }

// rename replaces a name by its value in the map, and repeats this until the map has no value for
// the name. The key of an instance stays the same.
func rename(names map[string]string, name string) string {
	base, key, each := strings.Cut(name, "[")
	for names[base] != "" {
		base = names[base]
	}
	if each {
		return base + "[" + key
	}
	return base
}

// calls records that an attempt of a step has begun.
func (m *moved) calls(step string) {
	if m.begun != nil {
		m.begun[m.first(step)] = len(m.flows) - 1
	}
}

// removed reports whether a migration has removed the step from the run. The parameter `flow` is
// the present workflow of the run.
func (m *moved) removed(flow *dsl.Workflow, step string) bool {
	base, _, _ := strings.Cut(step, "[")
	return slices.ContainsFunc(flow.Steps, func(s *dsl.Step) bool { return s.Gone && s.Name == base+" (removed)" })
}

// again reports whether a migration has let a step start again from the beginning, with another
// idempotency key. The parameter `key` is the key of an effect of the step, and the parameter
// `present` is the key that the step has now.
func (m *moved) again(key, present string) bool { return len(m.flows) > 1 && key != present }

// at returns the workflow that the run had after the row with the given number.
func (m *moved) at(row int32) *dsl.Workflow {
	flow := m.flows[0].flow
	for _, h := range m.flows {
		if h.row <= row {
			flow = h.flow
		}
	}
	return flow
}
