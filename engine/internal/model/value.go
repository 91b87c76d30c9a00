package model

import (
	"encoding/binary"
	"strconv"

	"github.com/saga-engine/engine/dsl"
)

// A Held is a value and where the run has it already, so that the journal stores equal
// bytes once.
type Held struct {
	V    dsl.Value
	From Origin
}

// An Origin says that a value equals one the state already has when the
// record is applied. The zero Origin means that the record holds the value itself.
type Origin struct {
	Kind OriginKind
	Node int32
}

// An OriginKind says where a value is found. Numbers are persisted.
type OriginKind uint8

// The kinds of origins.
const (
	OriginInline OriginKind = 0
	OriginVars   OriginKind = 1
	OriginOutput OriginKind = 2 // output of node
	OriginInput  OriginKind = 3 // input of node
	OriginKey    OriginKind = 4 // the node's own each.key as a string
)

// WorthSharing is the size from which a reference saves bytes.
const WorthSharing = 16

// SameValue is v.Equal(w), at less cost where nothing is marked.
func SameValue(v, w dsl.Value) bool {
	if string(v.JSON()) != string(w.JSON()) {
		return false
	}
	return !Confidential(v) && !Confidential(w) || v.Equal(w)
}

// Confidential reports whether what an agent makes of the value may have to be
// hidden.
func Confidential(v dsl.Value) bool { return len(v.Sensitive())+len(v.Secrets()) > 0 }

// KeyValue is the each.value of a set's element.
func KeyValue(key string) dsl.Value {
	return dsl.NewValue(strconv.AppendQuote(nil, key), nil, nil)
}

// KeepEach wraps an each.value; elements of a set need no bytes.
func KeepEach(key string, v dsl.Value) Held {
	if plain(key) && len(v.Sensitive()) == 0 && len(v.Secrets()) == 0 && string(v.JSON()) == strconv.Quote(key) {
		return Held{V: v, From: Origin{Kind: OriginKey}}
	}
	return Held{V: v}
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

// HashValue hashes the document; equal hashes are compared in full. It is not
// persisted.
func HashValue(v dsl.Value) uint64 {
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

// SameHeld compares by identity first: most values are not touched at all.
func SameHeld(a, b Held) bool { return a == b || (a.From == b.From && SameValue(a.V, b.V)) }
