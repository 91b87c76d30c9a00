package plan

import (
	"github.com/saga-engine/engine/cmd/engine/internal/history"
)

// JSON returns the plan for --json.
func (p *Plan) JSON() map[string]any {
	steps := make([]map[string]any, len(p.steps))
	for i, s := range p.steps {
		steps[i] = s.json(p.flow.CompensationMode)
	}
	m := map[string]any{
		"workflow": p.flow.Name, "definition": p.flow.Digest, "steps": steps, "time": p.times.json(), "work": p.HasWork(),
		"open_runs": map[string]any{"same_definition": p.sameOpen, "other_definitions": p.others},
	}
	if len(p.flow.Admits) > 0 {
		admits := make([]map[string]any, len(p.flow.Admits))
		for i, a := range p.flow.Admits {
			admits[i] = map[string]any{"name": a.Name, "lock": a.Lock, "refused": p.embedded}
		}
		m["admit"] = admits
	}
	if p.flow.UniqueKey != nil {
		m["key"] = p.key
	}
	if p.earlier != nil {
		m["earlier_run"] = history.RowJSON(*p.earlier)
	}
	return m
}
