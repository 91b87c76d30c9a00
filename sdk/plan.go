package sdk

import (
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/saga-engine/engine/sdk/internal/names"
	"github.com/saga-engine/engine/sdk/schema"
)

// usage is what a struct is for.
type usage uint8

const (
	planInput usage = iota + 1
	planOutput
)

// form is how a Go type is read and written.
type form uint8

const (
	formAny form = iota + 1
	formRaw
	formBool
	formInt
	formUint
	formFloat
	formNumber
	formString
	formDuration
	formText
	formList
	formMap
	formStruct
	formPointer
)

// A plan says how one Go type travels as JSON. It is made once per type, so
// that mistakes in tags show before anything is served.
type plan struct {
	form   form
	typ    schema.Type
	rt     reflect.Type
	elem   *plan // element of list, map and pointer
	fields []planField
}

// planField is one tagged field of a struct.
type planField struct {
	field schema.Field
	index []int // as in reflect.Value.FieldByIndex
	plan  *plan
	enum  []any // decoded trees of field.Enum
	words *schema.Words
}

var (
	typeRaw      = reflect.TypeFor[json.RawMessage]()
	typeNumber   = reflect.TypeFor[json.Number]()
	typeDuration = reflect.TypeFor[time.Duration]()
	typeMarshal  = reflect.TypeFor[encoding.TextMarshaler]()
	typeUnmarsh  = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// newPlan makes the plan of an input, output or configuration struct. It
// returns every mistake found in it, joined.
func newPlan(t reflect.Type, u usage) (*plan, error) {
	what := "input"
	if u == planOutput {
		what = "output"
	}
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("%s type %s is not a struct", what, t)
	}
	p, err := planner{usage: u}.structure(t, nil)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", what, t, err)
	}
	return p, nil
}

// fieldsSchema returns the fields for a Schema; the caller owns the slice.
func (p *plan) fieldsSchema() []schema.Field {
	fields := make([]schema.Field, 0, len(p.fields))
	for _, f := range p.fields {
		fields = append(fields, f.field)
	}
	if len(fields) == 0 {
		return nil
	}
	return fields
}

// planner makes plans; outer in its methods lists the structs being planned.
type planner struct{ usage usage }

func (pl planner) any(t reflect.Type, outer []reflect.Type) (*plan, error) {
	switch {
	case t == typeRaw:
		return &plan{form: formRaw, typ: schema.Type{Kind: schema.KindAny}, rt: t}, nil
	case t == typeNumber:
		return &plan{form: formNumber, typ: schema.Type{Kind: schema.KindNumber}, rt: t}, nil
	case t == typeDuration:
		return &plan{form: formDuration, typ: schema.Type{Kind: schema.KindString}, rt: t}, nil
	case t.Kind() != reflect.Pointer && t.Implements(typeMarshal) && reflect.PointerTo(t).Implements(typeUnmarsh):
		return &plan{form: formText, typ: schema.Type{Kind: schema.KindString}, rt: t}, nil
	}
	switch t.Kind() {
	case reflect.Bool:
		return &plan{form: formBool, typ: schema.Type{Kind: schema.KindBool}, rt: t}, nil
	case reflect.String:
		return &plan{form: formString, typ: schema.Type{Kind: schema.KindString}, rt: t}, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return &plan{form: formInt, typ: schema.Type{Kind: schema.KindNumber}, rt: t}, nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return &plan{form: formUint, typ: schema.Type{Kind: schema.KindNumber}, rt: t}, nil
	case reflect.Float32, reflect.Float64:
		return &plan{form: formFloat, typ: schema.Type{Kind: schema.KindNumber}, rt: t}, nil
	case reflect.Interface:
		if t.NumMethod() == 0 {
			return &plan{form: formAny, typ: schema.Type{Kind: schema.KindAny}, rt: t}, nil
		}
	case reflect.Struct:
		return pl.structure(t, outer)
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return pl.container(t, outer)
	}
	return nil, fmt.Errorf("type %s is not supported", t)
}

func (pl planner) container(t reflect.Type, outer []reflect.Type) (*plan, error) {
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
		return nil, fmt.Errorf("type %s is not supported: use a string, in base64 if it is binary", t)
	}
	if t.Kind() == reflect.Map && t.Key().Kind() != reflect.String {
		return nil, fmt.Errorf("type %s is not supported: keys must be strings", t)
	}
	elem, err := pl.any(t.Elem(), outer)
	if err != nil {
		return nil, err
	}
	p := &plan{rt: t, elem: elem}
	switch t.Kind() {
	case reflect.Pointer:
		p.form, p.typ = formPointer, elem.typ
	case reflect.Slice:
		p.form, p.typ = formList, schema.Type{Kind: schema.KindList, Elem: &elem.typ}
	case reflect.Map:
		p.form, p.typ = formMap, schema.Type{Kind: schema.KindMap, Elem: &elem.typ}
	}
	return p, nil
}

func (pl planner) structure(t reflect.Type, outer []reflect.Type) (*plan, error) {
	if slices.Contains(outer, t) {
		return nil, fmt.Errorf("type %s contains itself: use json.RawMessage for the inner one", t)
	}
	nested := len(outer) > 0
	outer = append(slices.Clone(outer), t)
	p := &plan{form: formStruct, rt: t, typ: schema.Type{Kind: schema.KindObject}}
	errs := pl.collect(p, t, nil, outer)
	slices.SortFunc(p.fields, func(a, b planField) int { return cmp.Compare(a.field.Name, b.field.Name) })
	for i, f := range p.fields {
		if i > 0 && p.fields[i-1].field.Name == f.field.Name {
			errs = append(errs, fmt.Errorf("two fields are named %q", f.field.Name))
		}
		if nested && f.field.Sensitive {
			errs = append(errs, fmt.Errorf("field %q: only whole inputs and outputs can be sensitive, not parts of them", f.field.Name))
		}
		p.typ.Fields = append(p.typ.Fields, schema.Field{Name: f.field.Name, Type: f.field.Type, Optional: f.field.Optional})
	}
	return p, errors.Join(errs...)
}

// collect adds the fields of t to p, those of embedded structs included.
func (pl planner) collect(p *plan, t reflect.Type, index []int, outer []reflect.Type) []error {
	var errs []error
	for i := range t.NumField() {
		sf := t.Field(i)
		at := append(slices.Clone(index), i)
		tag, tagged := sf.Tag.Lookup("agent")
		switch {
		case tag == "-":
		case sf.Anonymous && !tagged && sf.Type.Kind() == reflect.Struct:
			errs = append(errs, pl.collect(p, sf.Type, at, outer)...)
		case !sf.IsExported():
			if tagged {
				errs = append(errs, fmt.Errorf("field %s: has an agent tag but is not exported", sf.Name))
			}
		case !tagged:
			errs = append(errs, fmt.Errorf("field %s: has no agent tag; write `agent:\"name\"`, or `agent:\"-\"` to leave it out", sf.Name))
		default:
			f, err := pl.field(sf, tag, outer)
			if err != nil {
				errs = append(errs, fmt.Errorf("field %s: %w", sf.Name, err))
				continue
			}
			f.index = at
			p.fields = append(p.fields, f)
		}
	}
	return errs
}

func (pl planner) field(sf reflect.StructField, tag string, outer []reflect.Type) (planField, error) {
	name, rest, _ := strings.Cut(tag, ",")
	f := planField{field: schema.Field{Name: name, Doc: sf.Tag.Get("doc")}}
	if !names.Valid(name) {
		return f, fmt.Errorf("the name %q in its agent tag is not snake_case", name)
	}
	if rest != "" {
		for _, word := range strings.Split(rest, ",") {
			switch word {
			case "optional":
				f.field.Optional = true
			case "sensitive":
				f.field.Sensitive = true
			case "codes":
				f.field.Codes = true
			default:
				return f, fmt.Errorf("agent tag: unknown word %q; there are optional, sensitive and codes", word)
			}
		}
	}
	p, err := pl.any(sf.Type, outer)
	if err != nil {
		return f, err
	}
	f.plan, f.field.Type = p, p.typ
	// A pointer exists to be null, and null is a value of type any.
	if p.form == formPointer || pl.usage == planOutput && p.typ.Kind == schema.KindAny {
		f.field.Optional = true
	}
	if text, ok := sf.Tag.Lookup("enum"); ok {
		if err := f.setEnum(text); err != nil {
			return f, err
		}
	}
	f.field.Pattern = sf.Tag.Get("pattern")
	if f.words, err = f.field.Words(); err != nil {
		return f, err
	}
	if f.words != nil && (pl.usage == planOutput || len(outer) > 1) {
		return f, errors.New("pattern, codes: only whole inputs can have them")
	}
	if text, ok := sf.Tag.Lookup("default"); ok {
		if pl.usage == planOutput {
			if len(outer) == 1 {
				return f, errors.New("an output has no default")
			}
			return f, nil // of a type shared with an input
		}
		if err := f.setDefault(text); err != nil {
			return f, err
		}
	}
	return f, nil
}

func (f *planField) setEnum(text string) error {
	switch f.plan.typ.Kind {
	case schema.KindBool, schema.KindNumber, schema.KindString:
	default:
		return fmt.Errorf("enum: only strings, numbers and booleans can have one")
	}
	for _, word := range strings.Split(text, "|") {
		raw, tree, err := f.literal(word)
		if err != nil {
			return fmt.Errorf("enum: %w", err)
		}
		f.field.Enum = append(f.field.Enum, raw)
		f.enum = append(f.enum, tree)
	}
	return nil
}

func (f *planField) setDefault(text string) error {
	if !f.field.Optional {
		return errors.New("has a default but is not optional")
	}
	raw, tree, err := f.literal(text)
	if err != nil {
		return fmt.Errorf("default: %w", err)
	}
	if err := errors.Join(f.checkEnum(tree), f.words.Check(tree)); err != nil {
		return fmt.Errorf("default: %w", err)
	}
	f.field.Default = raw
	return nil
}

// literal reads a value from a tag: text where the field is a string, JSON
// everywhere else.
func (f *planField) literal(text string) (json.RawMessage, any, error) {
	var tree any = text
	if f.plan.typ.Kind != schema.KindString {
		var err error
		if tree, err = parseTree([]byte(text)); err != nil {
			return nil, nil, fmt.Errorf("%q is not JSON: %w", text, err)
		}
	}
	if err := f.plan.assign(tree, reflect.New(f.plan.rt).Elem(), "value"); err != nil {
		return nil, nil, err
	}
	raw, err := marshalTree(tree)
	return raw, tree, err
}
