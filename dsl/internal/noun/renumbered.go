package noun

import (
	"slices"
	"strconv"
	"time"

	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// Names that Step.Aspects gives to the aspects of a step. Each other aspect has the name of an
// attribute or of an inner block of the step.
const (
	AspectKind   = "kind" // the text of this aspect is "value", "timer" or "wait"; "" = the step has a call
	AspectAction = "action"
	AspectUndo   = "undo"
)

// Renumbered returns a copy of w for a run that moves from the workflow `before` to w. The numbers
// of a run's nodes never change. So in the copy, the index of a step is the number of its node in
// the run. stepOf[i] is the index in w of the step that belongs to node i; -1 = w has no such step.
func (w *Workflow) Renumbered(before *Workflow, stepOf []int32) *Workflow {
	out := *w
	out.nodeOf = make([]int, len(w.Steps))
	for i, p := range stepOf {
		if p >= 0 {
			out.nodeOf[p] = i
		}
	}
	numbers := func(list []int) []int {
		var to []int
		for _, i := range list {
			to = append(to, out.nodeOf[i])
		}
		slices.Sort(to)
		return to
	}
	taken := map[string]bool{}
	for _, s := range before.Steps {
		taken[s.KeyName()] = true
	}
	out.Steps = make([]*Step, len(stepOf))
	out.Order = nil
	for i, p := range stepOf {
		var was *Step
		if i < len(before.Steps) {
			was = before.Steps[i]
		}
		if p < 0 {
			out.Steps[i] = goneStep(i, was)
			out.Order = append(out.Order, i)
			continue
		}
		s := *w.Steps[p]
		s.Index, s.After, s.Before = i, numbers(s.After), numbers(s.Before)
		if was != nil {
			s.keyName = was.KeyName()
		} else if s.keyName = s.Name; taken[s.Name] {
			// An earlier step has this name in its idempotency keys. So the new step gets another
			// name there, with the sign @. No name in a file can contain this sign, so no step has
			// the new name.
			s.keyName = s.Name + "@" + strconv.Itoa(i)
		}
		out.Steps[i] = &s
	}
	for _, i := range w.Order {
		out.Order = append(out.Order, out.nodeOf[i])
	}
	if out.Pivot = -1; w.Pivot >= 0 {
		out.Pivot = out.nodeOf[w.Pivot]
	}
	out.Outputs = slices.Clone(w.Outputs)
	for k := range out.Outputs {
		out.Outputs[k].After = numbers(out.Outputs[k].After)
	}
	return &out
}

// NodeOf returns the number of the node that belongs to a step in a run. The parameter `i` is the
// index of the step in the definition. Expressions use this index. The result differs from i only
// in a run that was moved to another definition.
func (w *Workflow) NodeOf(i int) int {
	if w.nodeOf == nil || i < 0 || i >= len(w.nodeOf) {
		return i
	}
	return w.nodeOf[i]
}

// KeyName returns the name of the step in idempotency keys. Usually, this is the name of the step
// in the first definition with which the run had this step. So the keys stay the same when a moved
// block gives the step another name. For an exception, see Renumbered.
func (s *Step) KeyName() string {
	if s.keyName != "" {
		return s.keyName
	}
	return s.Name
}

// goneStep returns a step that does nothing, for a node that has no step in the present definition.
// The parameter `was` is the step of the node in the earlier definition; nil = the node is an
// instance of a step.
func goneStep(i int, was *Step) *Step {
	settings := &Settings{Timeout: 30 * time.Second, Retry: Retry{MaxAttempts: 1, Strategy: Constant}}
	s := &Step{
		Index: i, Gone: true, Instance: was == nil || was.Instance, Do: NoCall,
		Value:     func(*eval.Scope) (value.Value, error) { return value.Value{}, nil },
		Input:     func(*eval.Scope) (value.Value, error) { return value.Value{}, nil },
		Retryable: func(string) bool { return false },
		Settings:  func(*eval.Scope) (*Settings, error) { return settings, nil },
		Aspects:   func() map[string]string { return nil },
	}
	if was != nil {
		s.Name, s.keyName, s.Where = was.Name, was.KeyName(), was.Where
		if !was.Gone {
			s.Name += " (removed)"
		}
	}
	return s
}
