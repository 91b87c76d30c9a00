package fasteval

import (
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/value"
	"github.com/saga-engine/engine/sdk/schema"
)

// A Shape describes a type for a canonicalWriter, which checks JSON against the Shape. Some types
// have no Shape, because a canonicalWriter cannot produce their canonical form. An example is a
// set: its elements must be sorted, and duplicates removed.
type Shape struct {
	kind   schema.Kind  // kind of the type, such as list or object
	elem   *Shape       // shape of the elements of a list or map
	fields []shapeField // attributes of an object, sorted by name
	marked bool         // true = the value has sensitive parts
	hide   bool         // true = the whole value is sensitive, because its elements have sensitive parts
	open   bool         // true = an object may have other attributes; they are dropped when the value is copied
}

// A shapeField is one attribute of an object.
type shapeField struct {
	name      string
	shape     *Shape
	optional  bool     // true = the attribute may be missing or null
	filled    bool     // true = the attribute must not be null, even if its type allows null
	sensitive bool     // true = the schema declares the attribute sensitive
	enum      []string // canonical JSON of the allowed values; nil = all values are allowed
}

// hidden reports whether the whole value of the attribute is always sensitive.
func (f *shapeField) hidden() bool { return f.sensitive || f.shape.hide }

// Anything is the shape of the type `any`: each JSON value has this shape.
var Anything = &Shape{kind: schema.KindAny}

// ShapeOf returns the shape of a type of an agent's schema; nil if the type has no shape.
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

// ShapeOfFields returns the shape of an object with these fields of a schema. It returns nil if two
// fields have the same name, or if a field needs the general evaluator: its type has no shape, its
// name is not plain (value.IsPlain), or its enum has a value that does not fit the type or is not
// in canonical form.
func ShapeOfFields(fields []schema.Field) *Shape {
	out := &Shape{kind: schema.KindObject, fields: make([]shapeField, 0, len(fields))}
	for _, f := range fields {
		s := ShapeOf(f.Type)
		if s == nil || !value.IsPlain(f.Name) {
			return nil
		}
		x := shapeField{name: f.Name, shape: s, optional: f.Optional, sensitive: f.Sensitive}
		for _, raw := range f.Enum {
			c := canonicalWriter{Lexer: value.Lex(raw)}
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

// sorted sorts the fields by name and returns s. It returns nil if two fields have
// the same name.
func (s *Shape) sorted() *Shape {
	slices.SortFunc(s.fields, func(a, b shapeField) int { return strings.Compare(a.name, b.name) })
	for i := range s.fields {
		if i > 0 && s.fields[i].name == s.fields[i-1].name {
			return nil
		}
	}
	return s
}

// ShapeFrom returns the shape of a type of the evaluator (cty); nil if the type has no shape.
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

// meet returns the shape of the values that fit both shapes without a conversion. If both shapes
// have the same type, the result takes over sensitive parts, optional attributes and allowed values
// from the shape `to`. If one of the shapes is Anything, meet returns the other shape. The function
// `meet` returns nil if one shape is nil, or if the two types differ.
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

// Narrowed returns the shape of the replies to a step with output_type. The parameter `declared` is
// the shape in the schema, and the parameter `wanted` is the shape of output_type. If the schema
// allows any value for an output, and the value is an object, this object may have attributes that
// output_type does not name. Narrowed returns nil if the general evaluator must check the replies.
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

// opened returns a copy of s in which each object may have more attributes than s names.
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
