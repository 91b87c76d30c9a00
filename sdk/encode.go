package sdk

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"
)

// marshalTree writes a JSON tree, object keys sorted, without a final newline.
func marshalTree(tree any) (json.RawMessage, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(tree); err != nil {
		return nil, err
	}
	return bytes.TrimRight(buf.Bytes(), "\n"), nil
}

// encode writes the struct as a JSON object that holds every field.
func (p *plan) encode(v reflect.Value) (json.RawMessage, error) {
	if out, ok := p.write(make([]byte, 0, 128), v); ok {
		return out, nil
	}
	tree, err := p.tree(v, "")
	if err != nil {
		return nil, err
	}
	return marshalTree(tree)
}

// tree makes the JSON tree of v. A nil slice is an empty list and a nil map an
// empty map: only pointers and any are null.
func (p *plan) tree(v reflect.Value, path string) (any, error) {
	switch p.form {
	case formAny:
		return anyTree(v, path)
	case formRaw:
		return rawTree(v.Bytes(), path)
	case formPointer:
		if v.IsNil() {
			return nil, nil
		}
		return p.elem.tree(v.Elem(), path)
	case formBool:
		return v.Bool(), nil
	case formInt:
		return json.Number(strconv.FormatInt(v.Int(), 10)), nil
	case formUint:
		return json.Number(strconv.FormatUint(v.Uint(), 10)), nil
	case formFloat:
		if f := v.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, fmt.Errorf("%s: %v is not a number that JSON knows", path, f)
		}
		return v.Interface(), nil
	case formNumber:
		return numberTree(v.String(), path)
	case formString:
		return v.String(), nil
	case formDuration:
		return time.Duration(v.Int()).String(), nil
	case formText:
		text, err := v.Interface().(encoding.TextMarshaler).MarshalText()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return string(text), nil
	case formList:
		return p.listTree(v, path)
	case formMap:
		return p.mapTree(v, path)
	case formStruct:
		return p.structTree(v, path)
	}
	return nil, fmt.Errorf("%s: unknown form", path)
}

func (p *plan) listTree(v reflect.Value, path string) (any, error) {
	list := make([]any, v.Len())
	for i := range list {
		var err error
		if list[i], err = p.elem.tree(v.Index(i), fmt.Sprintf("%s[%d]", path, i)); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (p *plan) mapTree(v reflect.Value, path string) (any, error) {
	object := make(map[string]any, v.Len())
	for iter := v.MapRange(); iter.Next(); {
		key := iter.Key().String()
		elem, err := p.elem.tree(iter.Value(), fmt.Sprintf("%s[%q]", path, key))
		if err != nil {
			return nil, err
		}
		object[key] = elem
	}
	return object, nil
}

func (p *plan) structTree(v reflect.Value, path string) (any, error) {
	object := make(map[string]any, len(p.fields))
	for i := range p.fields {
		f := &p.fields[i]
		at := join(path, f.field.Name)
		value, err := f.plan.tree(v.FieldByIndex(f.index), at)
		if err != nil {
			return nil, err
		}
		// The zero value of an optional enum says that there is none.
		if len(f.enum) > 0 && f.field.Optional && v.FieldByIndex(f.index).IsZero() {
			value = nil
		}
		if err := f.checkEnum(value); err != nil {
			return nil, fmt.Errorf("%s: %w", at, err)
		}
		object[f.field.Name] = value
	}
	return object, nil
}

// anyTree normalises a value of type any, so that its numbers stay exact.
func anyTree(v reflect.Value, path string) (any, error) {
	if v.IsNil() {
		return nil, nil
	}
	raw, err := json.Marshal(v.Interface())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return rawTree(raw, path)
}

func rawTree(raw []byte, path string) (any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	tree, err := parseTree(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: not JSON: %w", path, err)
	}
	return tree, nil
}

func numberTree(s, path string) (any, error) {
	tree, err := parseTree([]byte(s))
	if err == nil {
		if n, ok := tree.(json.Number); ok {
			return n, nil
		}
		err = errors.New("some other JSON")
	}
	return nil, fmt.Errorf("%s: not a number: %w", path, err)
}
