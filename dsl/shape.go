package dsl

import (
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/value"
	"github.com/saga-engine/engine/sdk/schema"
)

// A shape is a type in the form in which JSON is checked against it: see
// copier. Types that need more than a look at the bytes, such as sets, which
// are sorted and lose duplicates, have none.
type shape struct {
	kind   schema.Kind
	elem   *shape       // of a list or map
	fields []shapeField // of an object, sorted by name
	marked bool         // has sensitive parts
	hide   bool         // is sensitive as a whole, because what is below a list cannot be marked
	open   bool         // of an object: other attributes are dropped
}

// A shapeField is one attribute of an object.
type shapeField struct {
	name      string
	shape     *shape
	optional  bool // may be left out or null
	filled    bool // may not be null, of whatever type it is
	sensitive bool
	enum      []string // canonical JSON of the values allowed; nil = any
}

// hidden reports whether the field is sensitive whatever its value.
func (f *shapeField) hidden() bool { return f.sensitive || f.shape.hide }

// anything is the shape of a value of which nothing is known.
var anything = &shape{kind: schema.KindAny}

// shapeOf returns the shape of a type of an agent's schema; nil if it has none.
func shapeOf(t schema.Type) *shape {
	switch t.Kind {
	case schema.KindAny:
		return anything
	case schema.KindBool, schema.KindNumber, schema.KindString:
		return &shape{kind: t.Kind}
	case schema.KindList, schema.KindMap:
		if t.Elem == nil {
			return nil
		}
		elem := shapeOf(*t.Elem)
		if elem == nil {
			return nil
		}
		hide := value.HasSensitive(*t.Elem)
		return &shape{kind: t.Kind, elem: elem, marked: hide, hide: hide}
	case schema.KindObject:
		return shapeOfFields(t.Fields)
	}
	return nil
}

// shapeOfFields returns the shape of an object with the fields of a schema; nil if it has none.
func shapeOfFields(fields []schema.Field) *shape {
	out := &shape{kind: schema.KindObject, fields: make([]shapeField, 0, len(fields))}
	for _, f := range fields {
		s := shapeOf(f.Type)
		if s == nil || !value.IsPlain(f.Name) {
			return nil
		}
		x := shapeField{name: f.Name, shape: s, optional: f.Optional, sensitive: f.Sensitive}
		for _, raw := range f.Enum {
			c := copier{Lexer: value.Lex(raw)}
			if !c.value(s, true) || !c.End() || string(c.out) != string(raw) {
				return nil
			}
			x.enum = append(x.enum, string(c.out))
		}
		out.marked = out.marked || x.sensitive || s.marked
		out.fields = append(out.fields, x)
	}
	return out.sorted()
}

// sorted brings the fields into order; nil if two have one name.
func (s *shape) sorted() *shape {
	slices.SortFunc(s.fields, func(a, b shapeField) int { return strings.Compare(a.name, b.name) })
	for i := range s.fields {
		if i > 0 && s.fields[i].name == s.fields[i-1].name {
			return nil
		}
	}
	return s
}

// shapeFrom returns the shape of a type of the language; nil if it has none.
func shapeFrom(ty cty.Type) *shape {
	switch {
	case ty == cty.DynamicPseudoType:
		return anything
	case ty == cty.Bool:
		return &shape{kind: schema.KindBool}
	case ty == cty.Number:
		return &shape{kind: schema.KindNumber}
	case ty == cty.String:
		return &shape{kind: schema.KindString}
	case ty.IsListType(), ty.IsMapType():
		elem, kind := shapeFrom(ty.ElementType()), schema.KindList
		if ty.IsMapType() {
			kind = schema.KindMap
		}
		if elem == nil {
			return nil
		}
		return &shape{kind: kind, elem: elem}
	case ty.IsObjectType():
		out := &shape{kind: schema.KindObject}
		for name, at := range ty.AttributeTypes() {
			s := shapeFrom(at)
			if s == nil || !value.IsPlain(name) {
				return nil
			}
			out.fields = append(out.fields, shapeField{name: name, shape: s, optional: ty.AttributeOptional(name)})
		}
		return out.sorted()
	}
	return nil
}

// meet returns the shape of values that pass from one type to another without
// being converted; nil if there is none. What is sensitive, allowed or may be
// left out is what the second says.
func meet(from, to *shape) *shape {
	switch {
	case from == nil || to == nil:
		return nil
	case from.kind == schema.KindAny:
		return to
	case to.kind == schema.KindAny:
		return from
	case from.kind != to.kind || len(from.fields) != len(to.fields):
		return nil
	}
	out := *to
	if to.elem != nil {
		if out.elem = meet(from.elem, to.elem); out.elem == nil {
			return nil
		}
	}
	out.fields = slices.Clone(to.fields)
	for i := range out.fields {
		f := &out.fields[i]
		if from.fields[i].name != f.name {
			return nil
		}
		if f.shape = meet(from.fields[i].shape, f.shape); f.shape == nil {
			return nil
		}
	}
	return &out
}

// narrowed returns the shape of replies that output_type narrows; nil if it has
// none. What the schema says nothing about may hold more than is wanted of it.
func narrowed(declared, wanted *shape) *shape {
	if declared == nil || wanted == nil || len(declared.fields) != len(wanted.fields) {
		return nil
	}
	out := *declared
	out.fields = slices.Clone(declared.fields)
	for i := range out.fields {
		f, w := &out.fields[i], wanted.fields[i]
		if f.shape.kind == schema.KindAny {
			f.shape = w.shape.opened()
		} else {
			f.shape = meet(w.shape, f.shape)
		}
		if f.shape == nil || f.name != w.name {
			return nil
		}
		f.optional = f.optional && w.optional
		f.filled = !f.optional
	}
	return &out
}

// opened returns the shape with all its objects open.
func (s *shape) opened() *shape {
	out := *s
	out.open = s.kind == schema.KindObject
	if s.elem != nil {
		out.elem = s.elem.opened()
	}
	out.fields = slices.Clone(s.fields)
	for i := range out.fields {
		out.fields[i].shape = out.fields[i].shape.opened()
	}
	return &out
}
