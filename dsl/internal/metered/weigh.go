package metered

import (
	"math/bits"

	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/value"
)

// A weight is the size of a value. If an inner value occurs several times, it counts each time,
// because code that reads the whole value reads the inner value each time.
type weight struct {
	// nodes is the number of inner values, plus one for the value itself. For each null,
	// unknown or empty value, its type and the types inside of this type count, too.
	nodes   int64
	bytes   int64 // size of all texts, names and numbers together, in bytes
	special int64 // number of bytes in texts that an encoder may have to escape
	breaks  int64 // number of blanks and line feeds in texts
	depth   int64 // largest number of nested levels
	longest int64 // length of the longest text, in bytes
	digits  int64 // length of the longest text that could be parsed as a number, in bytes
	Bits    int64 // largest binary exponent of a number in the value (see value.Exponent)
}

const nodeCost = 200

// Weigh returns the size of a value, and charges for reading all its inner values. If an inner value
// occurs in several places, Weigh reads it and charges for it once for each place. So the cost may
// grow exponentially with the depth. Weigh panics when the meter exceeds a limit.
func (m *Meter) Weigh(v cty.Value) weight {
	var w weight
	m.add(&w, v, 1)
	return w
}

func (m *Meter) add(w *weight, v cty.Value, depth int64) {
	w.node(m, depth)
	v, _ = v.Unmark()
	ty := v.Type()
	switch {
	case v.IsNull(), !v.IsKnown():
		m.addType(w, ty, depth)
	case ty == cty.String:
		w.text(m, v.AsString())
	case ty == cty.Number:
		w.bytes += 20
		bits := value.Exponent(v)
		w.Bits = max(w.Bits, bits)
		if bits > 512 {
			w.bytes += bits / 3
			m.pay(bits*bits/1000, bits/2)
		}
	case ty.IsCapsuleType(), ty == cty.Bool:
	case v.CanIterateElements():
		n := int64(v.LengthInt())
		if n == 0 {
			m.addType(w, ty, depth)
			return
		}
		m.pay(n*elementCost(ty, n), 0)
		named := ty.IsObjectType() || ty.IsMapType()
		for it := v.ElementIterator(); it.Next(); {
			k, e := it.Element()
			if named {
				w.text(m, k.AsString())
			}
			m.add(w, e, depth+1)
		}
	}
}

// elementCost returns the cost of reading one element of a value with n elements. For a set, a map
// or an object the cost grows with n, because the library sorts the elements or the names.
func elementCost(ty cty.Type, n int64) int64 {
	switch log := int64(bits.Len64(uint64(n))); {
	case ty.IsSetType() && ty.ElementType().IsPrimitiveType():
		return 200 + 300*log
	case ty.IsSetType():
		return 1000 + 3000*log
	case ty.IsObjectType(), ty.IsMapType():
		return 100 + 10*log
	}
	return 0
}

func (m *Meter) addType(w *weight, ty cty.Type, depth int64) {
	w.node(m, depth)
	switch {
	case ty.IsPrimitiveType(), ty == cty.DynamicPseudoType, ty.IsCapsuleType():
	case ty.IsCollectionType():
		m.addType(w, ty.ElementType(), depth+1)
	case ty.IsTupleType():
		for _, e := range ty.TupleElementTypes() {
			m.addType(w, e, depth+1)
		}
	case ty.IsObjectType():
		for name, e := range ty.AttributeTypes() {
			w.bytes += int64(len(name))
			m.addType(w, e, depth+1)
		}
	}
}

func (w *weight) node(m *Meter, depth int64) {
	w.nodes++
	w.depth = max(w.depth, depth)
	if depth > maxNesting {
		m.Over = overDepth
	}
	m.pay(nodeCost, 0)
}

func (w *weight) text(m *Meter, s string) {
	n := int64(len(s))
	m.pay(n, 0)
	w.bytes += n
	w.longest = max(w.longest, n)
	for i := range len(s) {
		switch c := s[i]; {
		case c == ' ', c == '\n':
			w.breaks++
			if c == '\n' {
				w.special++
			}
		case c < 0x20, c >= 0x7f, c == '"', c == '\\':
			w.special++
		}
	}
	if n > w.digits {
		w.digits = max(w.digits, value.Numeral(s))
	}
}

// Size returns approximately how many bytes of memory the value needs if no inner values share
// memory.
func (w weight) Size() int64 { return w.bytes + 16*w.nodes }

// json returns an upper limit for the size of the value as JSON, in bytes.
func (w weight) json() int64 { return w.bytes + 5*w.special + 8*w.nodes }

func (w *weight) join(x weight) {
	w.nodes, w.bytes, w.special, w.breaks = w.nodes+x.nodes, w.bytes+x.bytes, w.special+x.special, w.breaks+x.breaks
	w.depth, w.longest, w.digits = max(w.depth, x.depth), max(w.longest, x.longest), max(w.digits, x.digits)
}

// parsing returns the cost of parsing a text of this length as a number. The cost grows with the
// square of the length. It is 0 for a short text.
func parsing(digits int64) int64 {
	if digits < 200 {
		return 0
	}
	return product(digits, digits) / 20
}
