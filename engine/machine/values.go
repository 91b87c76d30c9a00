package machine

import (
	"encoding/binary"
	"maps"
	"slices"
	"strconv"

	"github.com/saga-engine/engine/dsl"
)

// held is a value and where it came from, so that the journal stores equal
// bytes once.
type held struct {
	v    dsl.Value
	from origin
}

// An origin says that a value equals one the state already has when the
// record is applied. The zero origin means that the value stands by itself.
type origin struct {
	kind originKind
	node int32
}

type originKind uint8

const (
	originInline originKind = 0
	originVars   originKind = 1
	originOutput originKind = 2 // output of node
	originInput  originKind = 3 // input of node
	originKey    originKind = 4 // the node's own each.key as a string
)

// worthSharing is the size from which a reference saves bytes.
const worthSharing = 16

// keep wraps a value for the state, as a reference if the state has it.
func (s *State) keep(v dsl.Value) held {
	if len(v.JSON()) >= worthSharing {
		if o, ok := s.values.get(hashValue(v)); ok && sameValue(s.at(o), v) {
			return held{v: v, from: o}
		}
	}
	return held{v: v}
}

// sameValue is v.Equal(w), at less cost where nothing is marked.
func sameValue(v, w dsl.Value) bool {
	if string(v.JSON()) != string(w.JSON()) {
		return false
	}
	return !confidential(v) && !confidential(w) || v.Equal(w)
}

// A known is where the state has values, by hash: the last one counts. Few are
// kept in a list, many in a map.
type known struct {
	list  []knownValue
	more  map[uint64]origin
	bytes int64 // of all values of nodes
}

type knownValue struct {
	hash uint64
	from origin
}

// fewValues is how many are kept in a list.
const fewValues = 32

func (k *known) get(hash uint64) (origin, bool) {
	if k.more != nil {
		o, ok := k.more[hash]
		return o, ok
	}
	for i := range k.list {
		if k.list[i].hash == hash {
			return k.list[i].from, true
		}
	}
	return origin{}, false
}

func (k *known) put(hash uint64, from origin) {
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
	k.more = make(map[uint64]origin, 2*fewValues)
	for _, v := range k.list {
		k.more[v.hash] = v.from
	}
	k.more[hash], k.list = from, nil
}

func (k *known) clone() known {
	return known{list: slices.Clone(k.list), more: maps.Clone(k.more), bytes: k.bytes}
}

// at returns the value an origin points to; null if there is none.
func (s *State) at(o origin) dsl.Value {
	if o.kind == originVars {
		return s.run.vars.v
	}
	if o.node < 0 || int(o.node) >= len(s.nodes) {
		return dsl.Value{}
	}
	switch o.kind {
	case originOutput:
		return s.nodes[o.node].output.v
	case originInput:
		return s.nodes[o.node].input.v
	}
	return dsl.Value{}
}

// resolve fills in the value of a reference from the state before the record.
func (s *State) resolve(h *held, key string) {
	switch h.from.kind {
	case originInline:
	case originKey:
		h.v = keyValue(key)
	default:
		h.v = s.at(h.from)
	}
}

// remember makes a value available for references.
func (s *State) remember(h held, o origin) {
	if h.from.kind != originInline || len(h.v.JSON()) < worthSharing {
		return
	}
	s.values.put(hashValue(h.v), o)
}

// keyValue is the each.value of a set's element.
func keyValue(key string) dsl.Value {
	return dsl.NewValue(strconv.AppendQuote(nil, key), nil, nil)
}

// keepEach wraps an each.value; elements of a set need no bytes.
func keepEach(key string, v dsl.Value) held {
	if plain(key) && len(v.Sensitive()) == 0 && len(v.Secrets()) == 0 && string(v.JSON()) == strconv.Quote(key) {
		return held{v: v, from: origin{kind: originKey}}
	}
	return held{v: v}
}

// plain reports whether Go and JSON quote the key alike.
func plain(key string) bool {
	for i := range len(key) {
		if c := key[i]; c < ' ' || c > '~' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return true
}

// hashValue hashes the document; equal hashes are compared in full. It is not
// persisted.
func hashValue(v dsl.Value) uint64 {
	const prime = 0x9e3779b97f4a7c15
	doc := v.JSON()
	h := uint64(len(doc)) * prime
	for ; len(doc) >= 8; doc = doc[8:] {
		h = (h ^ binary.LittleEndian.Uint64(doc)) * prime
		h ^= h >> 32
	}
	for _, c := range doc {
		h = (h ^ uint64(c)) * prime
	}
	return h ^ h>>29
}
