package model

import (
	"encoding/binary"
	"strconv"

	"github.com/saga-engine/engine/dsl"
)

// A Held is a value of a run. If the run already has an equal value, From says where. Then
// the journal stores only this reference and not the bytes again.
type Held struct {
	V    dsl.Value
	From Origin
}

// An Origin says where the state has an equal value before the record is applied. The zero
// Origin means that the record holds the value itself.
type Origin struct {
	Kind OriginKind
	Node int32
}

// An OriginKind says where a value is found. The numbers are persisted.
type OriginKind uint8

// The kinds of origins.
const (
	OriginInline OriginKind = 0
	OriginVars   OriginKind = 1
	OriginOutput OriginKind = 2 // the value is the output of the node Origin.Node
	OriginInput  OriginKind = 3 // the value is the input of the node Origin.Node
	OriginKey    OriginKind = 4 // the value is each.key of the node that holds it, as a string
)

// WorthSharing is the size, in bytes, of the smallest value that is replaced by a reference
// to an equal value.
const WorthSharing = 16

// SameValue returns the result of v.Equal(w). It is faster if no part is sensitive.
func SameValue(v, w dsl.Value) bool {
	if string(v.JSON()) != string(w.JSON()) {
		return false
	}
	return !Confidential(v) && !Confidential(w) || v.Equal(w)
}

// Confidential reports whether the value has sensitive parts. Then the output that an agent
// computes from it may have to be hidden as well.
func Confidential(v dsl.Value) bool { return len(v.Sensitive())+len(v.Secrets()) > 0 }

// KeyValue returns the each.value of an element of a set, which is its key.
func KeyValue(key string) dsl.Value {
	return dsl.NewValue(strconv.AppendQuote(nil, key), nil, nil)
}

// KeepEach wraps an each.value. An element of a set needs no bytes, because it equals its
// key.
func KeepEach(key string, v dsl.Value) Held {
	if plain(key) && len(v.Sensitive()) == 0 && len(v.Secrets()) == 0 && string(v.JSON()) == strconv.Quote(key) {
		return Held{V: v, From: Origin{Kind: OriginKey}}
	}
	return Held{V: v}
}

// plain reports whether Go and JSON quote the key in the same way.
func plain(key string) bool {
	for i := range len(key) {
		if c := key[i]; c < ' ' || c > '~' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return true
}

// HashValue hashes the JSON document of a value. Different values may have the same hash, so
// the caller must compare them. The hash is not persisted.
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

// SameHeld compares two values. It compares pointers first, so that most values need not be
// read.
func SameHeld(a, b Held) bool { return a == b || (a.From == b.From && SameValue(a.V, b.V)) }
