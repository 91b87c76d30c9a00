package typed

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"

	"github.com/saga-engine/engine/sdk/internal/jsontree"
)

// Encode returns the struct v as a JSON object with every field. Errors name the field. They show no
// part of the value of a sensitive field.
func (p *Plan) Encode(v reflect.Value) (json.RawMessage, error) {
	tree, err := p.tree(v, "")
	if err != nil {
		return nil, err
	}
	return jsontree.Marshal(tree)
}

// tree returns the JSON tree of v. A nil slice becomes an empty list, and a nil map becomes an
// empty map, not null. The parameter `path` is the name of v in errors.
func (p *Plan) tree(v reflect.Value, path string) (any, error) {
	switch p.Form {
	case Any:
		return p.anyTree(v, path)
	case Raw:
		return p.rawTree(v.Bytes(), path)
	case Pointer:
		if v.IsNil() {
			return nil, nil
		}
		return p.Elem.tree(v.Elem(), path)
	case Bool:
		return v.Bool(), nil
	case Int:
		return json.Number(strconv.FormatInt(v.Int(), 10)), nil
	case Uint:
		return json.Number(strconv.FormatUint(v.Uint(), 10)), nil
	case Float:
		if f := v.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, p.cannot(path, fmt.Errorf("%v is not a number that JSON knows", f))
		}
		return v.Interface(), nil
	case Number:
		return p.numberTree(v.String(), path)
	case String:
		return v.String(), nil
	case Duration:
		return time.Duration(v.Int()).String(), nil
	case Text:
		text, err := v.Interface().(encoding.TextMarshaler).MarshalText()
		if err != nil {
			return nil, p.cannot(path, err)
		}
		return string(text), nil
	case List:
		return p.listTree(v, path)
	case Map:
		return p.mapTree(v, path)
	case Struct:
		return p.structTree(v, path)
	}
	return nil, fmt.Errorf("%s: unknown form", path)
}

// cannot returns the error for a value at `path` that cannot be written as JSON. The cause `err` may
// repeat the value, for example if it comes from a method MarshalText. So cannot leaves the cause
// out if the value is sensitive: the engine does not know the value yet and could not remove it.
func (p *Plan) cannot(path string, err error) error {
	if p.hidden {
		return fmt.Errorf("%s: cannot be written as JSON (the cause is not shown: the value is sensitive)", path)
	}
	return fmt.Errorf("%s: %w", path, err)
}

func (p *Plan) listTree(v reflect.Value, path string) (any, error) {
	list := make([]any, v.Len())
	for i := range list {
		var err error
		if list[i], err = p.Elem.tree(v.Index(i), fmt.Sprintf("%s[%d]", path, i)); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (p *Plan) mapTree(v reflect.Value, path string) (any, error) {
	object := make(map[string]any, v.Len())
	for iter := v.MapRange(); iter.Next(); {
		key := iter.Key().String()
		elem, err := p.Elem.tree(iter.Value(), jsontree.Key(path, key, p.hidden))
		if err != nil {
			return nil, err
		}
		object[key] = elem
	}
	return object, nil
}

func (p *Plan) structTree(v reflect.Value, path string) (any, error) {
	object := make(map[string]any, len(p.Fields))
	for i := range p.Fields {
		f := &p.Fields[i]
		at := jsontree.Join(path, f.Schema.Name)
		value, err := f.Plan.tree(v.FieldByIndex(f.Index), at)
		if err != nil {
			return nil, err
		}
		// The zero value of an optional enum is encoded as null.
		if len(f.enum) > 0 && f.Schema.Optional && v.FieldByIndex(f.Index).IsZero() {
			value = nil
		}
		if err := f.oneOf(value); err != nil {
			return nil, fmt.Errorf("%s: %w", at, err)
		}
		object[f.Schema.Name] = value
	}
	return object, nil
}

// anyTree returns the JSON tree of a value of type any. Numbers keep their exact form.
func (p *Plan) anyTree(v reflect.Value, path string) (any, error) {
	if v.IsNil() {
		return nil, nil
	}
	raw, err := json.Marshal(v.Interface())
	if err != nil {
		return nil, p.cannot(path, err)
	}
	return p.rawTree(raw, path)
}

func (p *Plan) rawTree(raw []byte, path string) (any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	tree, err := jsontree.Parse(raw)
	if err != nil {
		return nil, p.cannot(path, fmt.Errorf("not JSON: %w", err))
	}
	return tree, nil
}

func (p *Plan) numberTree(s, path string) (any, error) {
	tree, err := jsontree.Parse([]byte(s))
	if err == nil {
		if n, ok := tree.(json.Number); ok {
			return n, nil
		}
		err = errors.New("some other JSON")
	}
	return nil, p.cannot(path, fmt.Errorf("not a number: %w", err))
}
