package dsl

import "errors"

// A load is the size of stored values that an expression refers to. An
// evaluation pays for it whether or not the values are decoded already, so
// that it costs the same on every engine.
type load struct{ bytes, nodes int64 }

// loadOf measures a stored value.
func loadOf(v Value) load {
	raw := v.JSON()
	return load{int64(len(raw)), jsonNodes(raw)}
}

// instanceNodes is what the result of an instance weighs without its output.
const instanceNodes = 4

func loadOfStep(r StepResult) load {
	if !r.Each {
		return loadOf(r.One.Output).plus(load{nodes: instanceNodes})
	}
	var out load
	for i := range r.Instances {
		out = out.plus(loadOf(r.Instances[i].Output)).plus(load{nodes: instanceNodes})
	}
	return out
}

// plus adds two loads.
func (l load) plus(x load) load { return load{l.bytes + x.bytes, l.nodes + x.nodes} }

// input pays for a load.
func (m *meter) input(l load) error {
	if !m.take(l.bytes*3+l.nodes*300, l.bytes+l.nodes*150) {
		return errors.New("the values are too large")
	}
	return nil
}
