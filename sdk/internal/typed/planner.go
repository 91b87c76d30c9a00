package typed

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

	"github.com/saga-engine/engine/sdk/internal/jsontree"
	"github.com/saga-engine/engine/sdk/internal/names"
	"github.com/saga-engine/engine/sdk/schema"
)

// Usage says what the values of a struct are used for.
type Usage uint8

// The usages. The zero Usage is invalid.
const (
	// Input means that the struct is an input or a configuration. Its fields may have a default, a
	// pattern and the tag word `codes`.
	Input Usage = iota + 1
	// Output means that the struct is an output.
	Output
)

var (
	typeRaw      = reflect.TypeFor[json.RawMessage]()
	typeNumber   = reflect.TypeFor[json.Number]()
	typeDuration = reflect.TypeFor[time.Duration]()
	typeMarshal  = reflect.TypeFor[encoding.TextMarshaler]()
	typeUnmarsh  = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// New returns the plan of an input, output or configuration struct. The error names every field
// that has a mistake, with the first mistake of the field.
func New(t reflect.Type, u Usage) (*Plan, error) {
	what := "input"
	if u == Output {
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

// A planner makes plans. In the methods of a planner, the parameter `outer` holds the types of
// the structs that contain the type t, outermost first.
type planner struct{ usage Usage }

func (pl planner) any(t reflect.Type, outer []reflect.Type) (*Plan, error) {
	switch {
	case t == typeRaw:
		return &Plan{Form: Raw, Type: schema.Type{Kind: schema.KindAny}, Go: t}, nil
	case t == typeNumber:
		return &Plan{Form: Number, Type: schema.Type{Kind: schema.KindNumber}, Go: t}, nil
	case t == typeDuration:
		return &Plan{Form: Duration, Type: schema.Type{Kind: schema.KindString}, Go: t}, nil
	case t.Kind() != reflect.Pointer && t.Implements(typeMarshal) && reflect.PointerTo(t).Implements(typeUnmarsh):
		return &Plan{Form: Text, Type: schema.Type{Kind: schema.KindString}, Go: t}, nil
	}
	switch t.Kind() {
	case reflect.Bool:
		return &Plan{Form: Bool, Type: schema.Type{Kind: schema.KindBool}, Go: t}, nil
	case reflect.String:
		return &Plan{Form: String, Type: schema.Type{Kind: schema.KindString}, Go: t}, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return &Plan{Form: Int, Type: schema.Type{Kind: schema.KindNumber}, Go: t}, nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return &Plan{Form: Uint, Type: schema.Type{Kind: schema.KindNumber}, Go: t}, nil
	case reflect.Float32, reflect.Float64:
		return &Plan{Form: Float, Type: schema.Type{Kind: schema.KindNumber}, Go: t}, nil
	case reflect.Interface:
		if t.NumMethod() == 0 {
			return &Plan{Form: Any, Type: schema.Type{Kind: schema.KindAny}, Go: t}, nil
		}
	case reflect.Struct:
		return pl.structure(t, outer)
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return pl.container(t, outer)
	}
	return nil, fmt.Errorf("type %s is not supported", t)
}

func (pl planner) container(t reflect.Type, outer []reflect.Type) (*Plan, error) {
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
	p := &Plan{Go: t, Elem: elem}
	switch t.Kind() {
	case reflect.Pointer:
		p.Form, p.Type = Pointer, elem.Type
	case reflect.Slice:
		p.Form, p.Type = List, schema.Type{Kind: schema.KindList, Elem: &elem.Type}
	case reflect.Map:
		p.Form, p.Type = Map, schema.Type{Kind: schema.KindMap, Elem: &elem.Type}
	}
	return p, nil
}

func (pl planner) structure(t reflect.Type, outer []reflect.Type) (*Plan, error) {
	if slices.Contains(outer, t) {
		return nil, fmt.Errorf("type %s contains itself: use json.RawMessage for the inner one", t)
	}
	nested := len(outer) > 0
	outer = append(slices.Clone(outer), t)
	p := &Plan{Form: Struct, Go: t, Type: schema.Type{Kind: schema.KindObject}}
	errs := pl.collect(p, t, nil, outer)
	slices.SortFunc(p.Fields, func(a, b Field) int { return cmp.Compare(a.Schema.Name, b.Schema.Name) })
	for i, f := range p.Fields {
		if i > 0 && p.Fields[i-1].Schema.Name == f.Schema.Name {
			errs = append(errs, fmt.Errorf("two fields are named %q", f.Schema.Name))
		}
		if nested && f.Schema.Sensitive {
			errs = append(errs, fmt.Errorf("field %q: only whole inputs and outputs can be sensitive, not parts of them", f.Schema.Name))
		}
		p.Type.Fields = append(p.Type.Fields, schema.Field{Name: f.Schema.Name, Type: f.Schema.Type, Optional: f.Schema.Optional})
	}
	return p, errors.Join(errs...)
}

// collect adds the fields of t to p, including the fields of embedded structs.
func (pl planner) collect(p *Plan, t reflect.Type, index []int, outer []reflect.Type) []error {
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
			f.Index = at
			p.Fields = append(p.Fields, f)
		}
	}
	return errs
}

func (pl planner) field(sf reflect.StructField, tag string, outer []reflect.Type) (Field, error) {
	name, rest, _ := strings.Cut(tag, ",")
	f := Field{Schema: schema.Field{Name: name, Doc: sf.Tag.Get("doc")}}
	if !names.Valid(name) {
		return f, fmt.Errorf("the name %q in its agent tag is not snake_case", name)
	}
	if rest != "" {
		for _, word := range strings.Split(rest, ",") {
			switch word {
			case "optional":
				f.Schema.Optional = true
			case "sensitive":
				f.Schema.Sensitive = true
			case "codes":
				f.Schema.Codes = true
			default:
				return f, fmt.Errorf("agent tag: unknown word %q; there are optional, sensitive and codes", word)
			}
		}
	}
	p, err := pl.any(sf.Type, outer)
	if err != nil {
		return f, err
	}
	if f.Schema.Sensitive {
		p.hide()
	}
	f.Plan, f.Schema.Type = p, p.Type
	// A pointer may always be null, and a value of type any may be null in an output.
	if p.Form == Pointer || pl.usage == Output && p.Type.Kind == schema.KindAny {
		f.Schema.Optional = true
	}
	if text, ok := sf.Tag.Lookup("enum"); ok {
		if err := f.setEnum(text); err != nil {
			return f, err
		}
	}
	f.Schema.Pattern = sf.Tag.Get("pattern")
	if f.Words, err = f.Schema.Words(); err != nil {
		return f, err
	}
	if f.Words != nil && (pl.usage == Output || len(outer) > 1) {
		return f, errors.New("pattern, codes: only whole inputs can have them")
	}
	if text, ok := sf.Tag.Lookup("default"); ok {
		if pl.usage == Output {
			if len(outer) == 1 {
				return f, errors.New("an output has no default")
			}
			// This field belongs to a struct inside of the output. An input may use the same
			// struct, so the default is allowed here. But an output does not use it.
			return f, nil
		}
		if err := f.setDefault(text); err != nil {
			return f, err
		}
	}
	return f, nil
}

func (f *Field) setEnum(text string) error {
	switch f.Plan.Type.Kind {
	case schema.KindBool, schema.KindNumber, schema.KindString:
	default:
		return fmt.Errorf("enum: only strings, numbers and booleans can have one")
	}
	for _, word := range strings.Split(text, "|") {
		raw, tree, err := f.literal(word)
		if err != nil {
			return fmt.Errorf("enum: %w", err)
		}
		f.Schema.Enum = append(f.Schema.Enum, raw)
		f.enum = append(f.enum, tree)
	}
	return nil
}

func (f *Field) setDefault(text string) error {
	if !f.Schema.Optional {
		return errors.New("has a default but is not optional")
	}
	raw, tree, err := f.literal(text)
	if err != nil {
		return fmt.Errorf("default: %w", err)
	}
	if err := errors.Join(f.oneOf(tree), f.Words.Check(tree)); err != nil {
		return fmt.Errorf("default: %w", err)
	}
	f.Schema.Default = raw
	return nil
}

// literal reads a value from a tag. If the field is a string, the text in the tag is the value. For
// all other fields the text is JSON. The results are the value as JSON and as a tree. If the field
// cannot hold the value, literal returns an error.
func (f *Field) literal(text string) (json.RawMessage, any, error) {
	var tree any = text
	if f.Plan.Type.Kind != schema.KindString {
		var err error
		if tree, err = jsontree.Parse([]byte(text)); err != nil {
			return nil, nil, fmt.Errorf("%q is not JSON: %w", text, err)
		}
	}
	if err := f.Plan.Assign(tree, reflect.New(f.Plan.Go).Elem(), "value"); err != nil {
		return nil, nil, err
	}
	raw, err := jsontree.Marshal(tree)
	return raw, tree, err
}
