package machine

import (
	"maps"
	"slices"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
)

// keep wraps a value for the state, as a reference if the state has it.
func (s *State) keep(v dsl.Value) model.Held {
	if len(v.JSON()) >= model.WorthSharing {
		if o, ok := s.values.get(model.HashValue(v)); ok && model.SameValue(s.at(o), v) {
			return model.Held{V: v, From: o}
		}
	}
	return model.Held{V: v}
}

// A known is where the state has values, by hash: the last one counts. Few are
// kept in a list, many in a map.
type known struct {
	list  []knownValue
	more  map[uint64]model.Origin
	bytes int64 // of all values of nodes
}

type knownValue struct {
	hash uint64
	from model.Origin
}

// fewValues is how many are kept in a list.
const fewValues = 32

func (k *known) get(hash uint64) (model.Origin, bool) {
	if k.more != nil {
		o, ok := k.more[hash]
		return o, ok
	}
	for i := range k.list {
		if k.list[i].hash == hash {
			return k.list[i].from, true
		}
	}
	return model.Origin{}, false
}

func (k *known) put(hash uint64, from model.Origin) {
	if k.more != nil {
		k.more[hash] = from
		return
	}
	for i := range k.list {
		if k.list[i].hash == hash {
			k.list[i].from = from
			return
		}
	}
	if len(k.list) < fewValues {
		if k.list == nil {
			k.list = make([]knownValue, 0, 4)
		}
		k.list = append(k.list, knownValue{hash, from})
		return
	}
	k.more = make(map[uint64]model.Origin, 2*fewValues)
	for _, v := range k.list {
		k.more[v.hash] = v.from
	}
	k.more[hash], k.list = from, nil
}

func (k *known) clone() known {
	return known{list: slices.Clone(k.list), more: maps.Clone(k.more), bytes: k.bytes}
}

// at returns the value an origin points to; null if there is none.
func (s *State) at(o model.Origin) dsl.Value {
	if o.Kind == model.OriginVars {
		return s.run.Vars.V
	}
	if o.Node < 0 || int(o.Node) >= len(s.nodes) {
		return dsl.Value{}
	}
	switch o.Kind {
	case model.OriginOutput:
		return s.nodes[o.Node].Output.V
	case model.OriginInput:
		return s.nodes[o.Node].Input.V
	}
	return dsl.Value{}
}

// resolve fills in the value of a reference from the state before the record.
func (s *State) resolve(h *model.Held, key string) {
	switch h.From.Kind {
	case model.OriginInline:
	case model.OriginKey:
		h.V = model.KeyValue(key)
	default:
		h.V = s.at(h.From)
	}
}

// remember makes a value available for references.
func (k *known) remember(h model.Held, o model.Origin) {
	if h.From.Kind != model.OriginInline || len(h.V.JSON()) < model.WorthSharing {
		return
	}
	k.put(model.HashValue(h.V), o)
}
