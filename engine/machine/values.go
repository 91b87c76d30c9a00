package machine

import (
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
	node int
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
		if o, ok := s.values[hashValue(v)]; ok && s.at(o).Equal(v) {
			return held{v: v, from: o}
		}
	}
	return held{v: v}
}

// at returns the value an origin points to; null if there is none.
func (s *State) at(o origin) dsl.Value {
	if o.kind == originVars {
		return s.run.vars.v
	}
	if o.node < 0 || o.node >= len(s.nodes) {
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
	s.values[hashValue(h.v)] = o
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

// hashValue is FNV-1a over the document; equal hashes are compared in full.
func hashValue(v dsl.Value) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range v.JSON() {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}
