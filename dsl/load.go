package dsl

import "github.com/saga-engine/engine/dsl/internal/value"

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
