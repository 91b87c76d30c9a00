package wire

import (
	"github.com/saga-engine/engine/dsl"

	"github.com/saga-engine/engine/engine/internal/model"
)

// Tags of values. A tag comes before the bytes of a value.
const (
	valueNull   = 0
	valuePlain  = 1 // the bytes of a JSON document follow
	valueMarked = 2 // a JSON document, the paths of its sensitive parts, and its secrets follow
	valueSame   = 3 // the number of an equal value earlier in the record follows
	valueFirst  = 4 // the value equals the first value in the record; nothing follows
	// A value that is already part of the run's state has the tag valueOrigin + OriginKind.
	valueOrigin = 4
)

func (e *encoder) stored(h model.StoredValue) {
	if e.bare {
		h.From = model.Origin{}
	}
	switch h.From.Kind {
	case model.OriginInline:
		e.value(h.V)
	case model.OriginVars, model.OriginKey:
		e.uint(valueOrigin + uint64(h.From.Kind))
	default:
		e.uint(valueOrigin + uint64(h.From.Kind))
		e.uint(uint64(h.From.Node))
	}
	if e.full && h.From.Kind != model.OriginInline {
		e.value(h.V)
	}
}

func (e *encoder) value(v dsl.Value) {
	marks := v.Sensitive()
	secrets := v.Secrets()
	if v.IsNull() && len(marks)+len(secrets) == 0 {
		e.uint(valueNull)
		return
	}
	from := len(e.b)
	tag := uint64(valuePlain)
	if len(marks)+len(secrets) > 0 {
		tag = valueMarked
	}
	e.uint(tag)
	e.bytes(v.JSON())
	if tag == valueMarked {
		e.uint(uint64(len(marks)))
		for _, m := range marks {
			e.bytes([]byte(m))
		}
		e.uint(uint64(len(secrets)))
		for _, s := range secrets {
			e.bytes([]byte(s.Path))
			e.uint(uint64(len(s.Parts)))
			for _, p := range s.Parts {
				e.bytes([]byte(p.Text))
				e.bytes([]byte(p.Ref))
			}
		}
	}
	if k, ok := e.same(from); ok {
		e.b = e.b[:from]
		if k == 0 {
			e.uint(valueFirst)
			return
		}
		e.uint(valueSame)
		e.uint(uint64(k))
		return
	}
	e.docs, e.valued = e.note(e.docs, e.valued, byteRange{from, len(e.b)})
}

// same compares the last written value with the earlier values of the record. The bytes of the
// last value begin at e.b[from]. same returns the number of the first earlier value with the same
// bytes, and whether there is one.
func (e *encoder) same(from int) (int, bool) {
	text := e.b[from:]
	if e.valued != nil {
		k, ok := e.valued[string(text)]
		return k, ok
	}
	for k, s := range e.docs {
		if s.to-s.from == len(text) && string(e.b[s.from:s.to]) == string(text) {
			return k, true
		}
	}
	return 0, false
}

func (d *decoder) stored() model.StoredValue {
	tag := d.uint()
	if tag <= valueFirst {
		return model.StoredValue{V: d.valueOf(tag)}
	}
	h := model.StoredValue{From: model.Origin{Kind: model.OriginKind(tag - valueOrigin)}}
	switch h.From.Kind {
	case model.OriginVars, model.OriginKey:
	case model.OriginOutput, model.OriginInput:
		h.From.Node = int32(d.small(int64(d.uint())))
	default:
		d.fail()
		return model.StoredValue{}
	}
	if d.full {
		h.V = d.value()
	}
	return h
}

func (d *decoder) value() dsl.Value { return d.valueOf(d.uint()) }

func (d *decoder) valueOf(tag uint64) dsl.Value {
	switch tag {
	case valueNull:
		return dsl.Value{}
	case valueFirst:
		return d.earlier(0)
	case valueSame:
		return d.earlier(d.uint())
	case valuePlain:
		v := dsl.NewValue(d.bytes(), nil, nil)
		d.values = append(d.values, v)
		return v
	case valueMarked:
		doc := d.bytes()
		var marks []string
		for range d.count() {
			marks = append(marks, string(d.bytes()))
		}
		var secrets []dsl.Secret
		for range d.count() {
			s := dsl.Secret{Path: string(d.bytes())}
			for range d.count() {
				s.Parts = append(s.Parts, dsl.SecretPart{Text: string(d.bytes()), Ref: string(d.bytes())})
			}
			secrets = append(secrets, s)
		}
		v := dsl.NewValue(doc, marks, secrets)
		d.values = append(d.values, v)
		return v
	}
	d.fail()
	return dsl.Value{}
}

// earlier returns the value with the number k among the values that were read in full, not as a
// reference. The first number is 0. If there is no such value, earlier fails.
func (d *decoder) earlier(k uint64) dsl.Value {
	if k >= uint64(len(d.values)) {
		d.fail()
		return dsl.Value{}
	}
	return d.values[k]
}
