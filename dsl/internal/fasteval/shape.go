package fasteval

import (
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/value"
	"github.com/saga-engine/engine/sdk/schema"
)

// A Shape is a type in the form in which JSON is checked against it: see
// copier. Types that need more than a look at the bytes, such as sets, which
// are sorted and lose duplicates, have none.
type Shape struct {
	kind   schema.Kind
	elem   *Shape       // of a list or map
	fields []shapeField // of an object, sorted by name
	marked bool         // has sensitive parts
	hide   bool         // is sensitive as a whole, because what is below a list cannot be marked
	open   bool         // of an object: other attributes are dropped
}

// A shapeField is one attribute of an object.
type shapeField struct {
	name      string
	shape     *Shape
	optional  bool // may be left out or null
	filled    bool // may not be null, of whatever type it is
	sensitive bool
	enum      []string // canonical JSON of the values allowed; nil = any
}

// hidden reports whether the field is sensitive whatever its value.
func (f *shapeField) hidden() bool { return f.sensitive || f.shape.hide }

// Anything is the shape of a value of which nothing is known.
var Anything = &Shape{kind: schema.KindAny}

// ShapeOf returns the shape of a type of an agent's schema; nil if it has none.
func ShapeOf(t schema.Type) *Shape {
	switch t.Kind {
	case schema.KindAny:
		return Anything
	case schema.KindBool, schema.KindNumber, schema.KindString:
		return &Shape{kind: t.Kind}
	case schema.KindList, schema.KindMap:
		if t.Elem == nil {
			return nil
		}
		elem := ShapeOf(*t.Elem)
		if elem == nil {
			return nil
		}
		hide := value.HasSensitive(*t.Elem)
		return &Shape{kind: t.Kind, elem: elem, marked: hide, hide: hide}
	case schema.KindObject:
		return ShapeOfFields(t.Fields)
	}
	return nil
}

// ShapeOfFields returns the shape of an object with the fields of a schema; nil if it has none.
func ShapeOfFields(fields []schema.Field) *Shape {
	out := &Shape{kind: schema.KindObject, fields: make([]shapeField, 0, len(fields))}
	for _, f := range fields {
		s := ShapeOf(f.Type)
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
func (s *Shape) sorted() *Shape {
	slices.SortFunc(s.fields, func(a, b shapeField) int { return strings.Compare(a.name, b.name) })
	for i := range s.fields {
		if i > 0 && s.fields[i].name == s.fields[i-1].name {
			return nil
		}
	}
	return s
}

// ShapeFrom returns the shape of a type of the language; nil if it has none.
func ShapeFrom(ty cty.Type) *Shape {
	switch {
	case ty == cty.DynamicPseudoType:
		return Anything
	case ty == cty.Bool:
		return &Shape{kind: schema.KindBool}
	case ty == cty.Number:
		return &Shape{kind: schema.KindNumber}
	case ty == cty.String:
		return &Shape{kind: schema.KindString}
	case ty.IsListType(), ty.IsMapType():
		elem, kind := ShapeFrom(ty.ElementType()), schema.KindList
		if ty.IsMapType() {
			kind = schema.KindMap
		}
		if elem == nil {
			return nil
		}
		return &Shape{kind: kind, elem: elem}
	case ty.IsObjectType():
		out := &Shape{kind: schema.KindObject}
		for name, at := range ty.AttributeTypes() {
			s := ShapeFrom(at)
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
func meet(from, to *Shape) *Shape {
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

// Narrowed returns the shape of replies that output_type narrows; nil if it has
// none. What the schema says nothing about may hold more than is wanted of it.
func Narrowed(declared, wanted *Shape) *Shape {
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
func (s *Shape) opened() *Shape {
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
