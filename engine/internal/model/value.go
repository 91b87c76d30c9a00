package model

import (
	"encoding/binary"
	"strconv"

	"github.com/saga-engine/engine/dsl"
)

// A StoredValue holds one value that belongs to a run, such as an input. If the run already has an
// equal value, the field From says where, and the journal stores only From instead of the value.
type StoredValue struct {
	V    dsl.Value
	From Origin
}

// An Origin says where the reader of a record finds a value: in the record itself (the zero
// Origin), or in the state of the run before the record.
type Origin struct {
	Kind OriginKind
	Node int32
}

// An OriginKind says where a value is found. The numbers are persisted.
type OriginKind uint8

// The kinds of origins.
const (
	OriginInline OriginKind = 0 // the record itself contains the value
	OriginVars   OriginKind = 1 // the value is the object with all variables of the run
	OriginOutput OriginKind = 2 // the value is the output of the node Origin.Node
	OriginInput  OriginKind = 3 // the value is the input of the node Origin.Node
	OriginKey    OriginKind = 4 // the value is each.key of the node that holds it, as a string
)

// WorthSharing is the size, in bytes, of the smallest value that is replaced by a reference
// to an equal value.
const WorthSharing = 16

// SameValue returns the result of v.Equal(w). It is faster than Equal if no part of the values
// is sensitive.
func SameValue(v, w dsl.Value) bool {
	if string(v.JSON()) != string(w.JSON()) {
		return false
	}
	return !Confidential(v) && !Confidential(w) || v.Equal(w)
}

// Confidential reports whether v has sensitive parts or contains secrets. If an agent computes
// an output from such a value, the output may have to be hidden, too.
func Confidential(v dsl.Value) bool { return len(v.Sensitive())+len(v.Secrets()) > 0 }

// KeyValue returns an each.key as a string value. If for_each is a set, this is the each.value of
// the instance.
func KeyValue(key string) dsl.Value {
	return dsl.NewValue(strconv.AppendQuote(nil, key), nil, nil)
}

// KeepEach returns the StoredValue for the each.value v of an instance. If v equals the each.key,
// as for an element of a set, the result refers to the key. Then the journal does not store v.
func KeepEach(key string, v dsl.Value) StoredValue {
	if plain(key) && len(v.Sensitive()) == 0 && len(v.Secrets()) == 0 && string(v.JSON()) == strconv.Quote(key) {
		return StoredValue{V: v, From: Origin{Kind: OriginKey}}
	}
	return StoredValue{V: v}
}

// plain returns true if every character of the key is printable ASCII, but not <, > or &. Go and
// JSON quote such a key in the same way. Go and JSON quote some other keys in the same way, too,
// but plain returns false for these keys.
func plain(key string) bool {
	for i := range len(key) {
		if c := key[i]; c < ' ' || c > '~' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return true
}

// HashValue returns a hash of the JSON text of a value. Different values may have the same
// hash, so the caller must also compare the values. The hash is not persisted.
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

// SameStored reports whether a and b have equal values and the same Origin. It first compares a
// and b with ==, so that it rarely has to read the values.
func SameStored(a, b StoredValue) bool { return a == b || (a.From == b.From && SameValue(a.V, b.V)) }
