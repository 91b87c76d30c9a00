package typed

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"

	"github.com/saga-engine/engine/sdk/internal/jsontree"
)

// Decode converts a JSON object to a struct. Errors name the field. They show no part of the value
// of a sensitive field. Of other fields they show only the keys of maps, and the texts that break
// the rules in Field.Words. If there is an error, the result must not be used.
func (p *Plan) Decode(raw json.RawMessage) (reflect.Value, error) {
	v := reflect.New(p.Go).Elem()
	tree, err := jsontree.Parse(raw)
	if err != nil {
		return v, fmt.Errorf("not a JSON object: %w", err)
	}
	return v, p.Assign(tree, v, "")
}

// Assign stores a JSON tree in v. Before the call, v must be the zero value. The parameter `path`
// is the name of v in errors.
func (p *Plan) Assign(tree any, v reflect.Value, path string) error {
	if tree == nil {
		return p.AssignNull(v, path)
	}
	switch p.Form {
	case Any:
		v.Set(reflect.ValueOf(tree))
		return nil
	case Raw:
		raw, err := jsontree.Marshal(tree)
		v.SetBytes(raw)
		return err
	case Pointer:
		v.Set(reflect.New(p.Go.Elem()))
		return p.Elem.Assign(tree, v.Elem(), path)
	case Bool:
		b, ok := tree.(bool)
		v.SetBool(b)
		return jsontree.Want(ok, path, "a boolean", tree)
	case String, Duration, Text:
		s, ok := tree.(string)
		if !ok {
			return jsontree.Want(false, path, "a string", tree)
		}
		return p.AssignString(s, v, path)
	case Int, Uint, Float, Number:
		n, ok := tree.(json.Number)
		if !ok {
			return jsontree.Want(false, path, "a number", tree)
		}
		return p.AssignNumber(n.String(), v, path)
	case List:
		return p.assignList(tree, v, path)
	case Map:
		return p.assignMap(tree, v, path)
	case Struct:
		return p.assignStruct(tree, v, path)
	}
	return fmt.Errorf("%s: unknown form", path)
}

// AssignNull stores null in v. It returns an error if the type of v does not allow null.
func (p *Plan) AssignNull(v reflect.Value, path string) error {
	switch p.Form {
	case Any, Pointer:
		v.SetZero()
		return nil
	case Raw:
		v.SetBytes([]byte("null"))
		return nil
	}
	return jsontree.Want(false, path, "a value", nil)
}

// AssignString stores a string in v. The field p.Form must be String, Duration or Text.
func (p *Plan) AssignString(s string, v reflect.Value, path string) error {
	switch p.Form {
	case Duration:
		d, ok := parseDuration(s)
		if !ok {
			return fmt.Errorf("%s: must be a duration such as 90s, 1h30m or 2d", path)
		}
		v.SetInt(int64(d))
	case Text:
		if err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(s)); err != nil {
			return fmt.Errorf("%s: is not a valid %s", path, p.Go)
		}
	default:
		v.SetString(s)
	}
	return nil
}

// AssignNumber stores a number in v. The field p.Form must be Int, Uint, Float or Number. The
// parameter s is the number as JSON. AssignNumber returns an error if the number does not fit
// into v.
func (p *Plan) AssignNumber(s string, v reflect.Value, path string) error {
	outside := func() error { return fmt.Errorf("%s: number does not fit %s", path, p.Go) }
	switch p.Form {
	case Number:
		v.SetString(s)
	case Float:
		f, err := strconv.ParseFloat(s, p.Go.Bits())
		if err != nil {
			return outside()
		}
		v.SetFloat(f)
	case Int:
		i, err := strconv.ParseInt(s, 10, p.Go.Bits())
		if err != nil {
			f, ok := wholeFloat(s)
			if !ok || v.OverflowInt(int64(f)) {
				return outside()
			}
			i = int64(f)
		}
		v.SetInt(i)
	case Uint:
		u, err := strconv.ParseUint(s, 10, p.Go.Bits())
		if err != nil {
			f, ok := wholeFloat(s)
			if !ok || f < 0 || v.OverflowUint(uint64(f)) {
				return outside()
			}
			u = uint64(f)
		}
		v.SetUint(u)
	}
	return nil
}

// wholeFloat returns the integer that the text s contains in a form like 1e3 or 2.0. The result
// `ok` is false if the number is not an integer, or if its absolute value is above 2^53, because a
// float64 is not exact there any more.
func wholeFloat(s string) (f float64, ok bool) {
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil && f == math.Trunc(f) && math.Abs(f) <= 1<<53
}

func (p *Plan) assignList(tree any, v reflect.Value, path string) error {
	list, ok := tree.([]any)
	if !ok {
		return jsontree.Want(false, path, "a list", tree)
	}
	v.Set(reflect.MakeSlice(p.Go, len(list), len(list)))
	for i, e := range list {
		if err := p.Elem.Assign(e, v.Index(i), fmt.Sprintf("%s[%d]", path, i)); err != nil {
			return err
		}
	}
	return nil
}

func (p *Plan) assignMap(tree any, v reflect.Value, path string) error {
	object, ok := tree.(map[string]any)
	if !ok {
		return jsontree.Want(false, path, "a map", tree)
	}
	v.Set(reflect.MakeMapWithSize(p.Go, len(object)))
	for _, key := range slices.Sorted(maps.Keys(object)) {
		elem := reflect.New(p.Go.Elem()).Elem()
		if err := p.Elem.Assign(object[key], elem, jsontree.Key(path, key, p.hidden)); err != nil {
			return err
		}
		v.SetMapIndex(reflect.ValueOf(key).Convert(p.Go.Key()), elem)
	}
	return nil
}

// assignStruct stores an object in the struct v. If an optional field is missing or null,
// assignStruct stores the default of the field. If the object contains a name that the struct does
// not have, assignStruct returns an error.
func (p *Plan) assignStruct(tree any, v reflect.Value, path string) error {
	object, ok := tree.(map[string]any)
	if !ok {
		return jsontree.Want(false, path, "an object", tree)
	}
	// Check for unknown names first. Otherwise the error for a misspelt name would say that a
	// field is missing.
	if err := p.unknown(object, path); err != nil {
		return err
	}
	for i := range p.Fields {
		f := &p.Fields[i]
		at := jsontree.Join(path, f.Schema.Name)
		value, present := object[f.Schema.Name]
		if value == nil && f.Schema.Optional {
			if f.Schema.Default == nil {
				continue
			}
			var err error
			if value, err = jsontree.Parse(f.Schema.Default); err != nil {
				return fmt.Errorf("%s: default: %w", at, err)
			}
		} else if !present {
			return fmt.Errorf("%s: is required", at)
		}
		if err := f.Plan.Assign(value, v.FieldByIndex(f.Index), at); err != nil {
			return err
		}
		if err := f.oneOf(value); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		if err := f.Words.Check(value); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
	}
	return nil
}

func (p *Plan) unknown(object map[string]any, path string) error {
	known := 0
	for _, f := range p.Fields {
		if _, ok := object[f.Schema.Name]; ok {
			known++
		}
	}
	if known == len(object) {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if !slices.ContainsFunc(p.Fields, func(f Field) bool { return f.Schema.Name == name }) {
			return jsontree.Unknown(path, name, p.hidden)
		}
	}
	return nil
}
