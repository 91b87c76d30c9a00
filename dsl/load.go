package dsl

import (
	"errors"

	"github.com/saga-engine/engine/dsl/internal/value"
)

// instanceNodes is what the result of an instance weighs without its output.
const instanceNodes = 4

func loadOfStep(r StepResult) value.Load {
	if !r.Each {
		return value.LoadOf(r.One.Output).Plus(value.Load{Nodes: instanceNodes})
	}
	var out value.Load
	for i := range r.Instances {
		out = out.Plus(value.LoadOf(r.Instances[i].Output)).Plus(value.Load{Nodes: instanceNodes})
	}
	return out
}

// input pays for a load.
func (m *meter) input(l value.Load) error {
	if !m.take(l.Bytes*3+l.Nodes*300, l.Bytes+l.Nodes*150) {
		return errors.New("the values are too large")
	}
	return nil
}
