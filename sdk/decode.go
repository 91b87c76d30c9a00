package sdk

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// parseTree reads one JSON document; numbers stay exact.
func parseTree(raw []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var tree any
	if err := dec.Decode(&tree); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON document")
	}
	return tree, nil
}

// decode makes the struct from a JSON object. Errors name the field but never
// show a value, because it may be sensitive.
func (p *plan) decode(raw json.RawMessage) (reflect.Value, error) {
	v := reflect.New(p.rt).Elem()
	if s := (scanner{src: raw}); p.read(&s, v) && s.end() {
		return v, nil
	}
	v.SetZero()
	tree, err := parseTree(raw)
	if err != nil {
		return v, fmt.Errorf("not a JSON object: %w", err)
	}
	return v, p.assign(tree, v, "")
}

// assign puts a JSON tree into v; path names it in errors.
func (p *plan) assign(tree any, v reflect.Value, path string) error {
	if tree == nil {
		return p.assignNull(v, path)
	}
	switch p.form {
	case formAny:
		v.Set(reflect.ValueOf(tree))
		return nil
	case formRaw:
		raw, err := marshalTree(tree)
		v.SetBytes(raw)
		return err
	case formPointer:
		v.Set(reflect.New(p.rt.Elem()))
		return p.elem.assign(tree, v.Elem(), path)
	case formBool:
		b, ok := tree.(bool)
		v.SetBool(b)
		return wantType(ok, path, "a boolean", tree)
	case formString, formDuration, formText:
		s, ok := tree.(string)
		if !ok {
			return wantType(false, path, "a string", tree)
		}
		return p.assignString(s, v, path)
	case formInt, formUint, formFloat, formNumber:
		n, ok := tree.(json.Number)
		if !ok {
			return wantType(false, path, "a number", tree)
		}
		return p.assignNumber(n.String(), v, path)
	case formList:
		return p.assignList(tree, v, path)
	case formMap:
		return p.assignMap(tree, v, path)
	case formStruct:
		return p.assignStruct(tree, v, path)
	}
	return fmt.Errorf("%s: unknown form", path)
}

func (p *plan) assignNull(v reflect.Value, path string) error {
	switch p.form {
	case formAny, formPointer:
		v.SetZero()
		return nil
	case formRaw:
		v.SetBytes([]byte("null"))
		return nil
	}
	return wantType(false, path, "a value", nil)
}

func (p *plan) assignString(s string, v reflect.Value, path string) error {
	switch p.form {
	case formDuration:
		d, err := time.ParseDuration(s)
		if err != nil {
			return fmt.Errorf("%s: must be a duration such as 90s or 1h30m", path)
		}
		v.SetInt(int64(d))
	case formText:
		if err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(s)); err != nil {
			return fmt.Errorf("%s: is not a valid %s", path, p.rt)
		}
	default:
		v.SetString(s)
	}
	return nil
}

func (p *plan) assignNumber(s string, v reflect.Value, path string) error {
	outside := func() error { return fmt.Errorf("%s: number does not fit %s", path, p.rt) }
	switch p.form {
	case formNumber:
		v.SetString(s)
	case formFloat:
		f, err := strconv.ParseFloat(s, p.rt.Bits())
		if err != nil {
			return outside()
		}
		v.SetFloat(f)
	case formInt:
		i, err := strconv.ParseInt(s, 10, p.rt.Bits())
		if err != nil {
			f, ok := wholeFloat(s)
			if !ok || v.OverflowInt(int64(f)) {
				return outside()
			}
			i = int64(f)
		}
		v.SetInt(i)
	case formUint:
		u, err := strconv.ParseUint(s, 10, p.rt.Bits())
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

// wholeFloat reads an integer written like 1e3 or 2.0; ok is false where a
// float64 could not hold it exactly.
func wholeFloat(s string) (f float64, ok bool) {
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil && f == math.Trunc(f) && math.Abs(f) <= 1<<53
}

func (p *plan) assignList(tree any, v reflect.Value, path string) error {
	list, ok := tree.([]any)
	if !ok {
		return wantType(false, path, "a list", tree)
	}
	v.Set(reflect.MakeSlice(p.rt, len(list), len(list)))
	for i, e := range list {
		if err := p.elem.assign(e, v.Index(i), fmt.Sprintf("%s[%d]", path, i)); err != nil {
			return err
		}
	}
	return nil
}

func (p *plan) assignMap(tree any, v reflect.Value, path string) error {
	object, ok := tree.(map[string]any)
	if !ok {
		return wantType(false, path, "a map", tree)
	}
	v.Set(reflect.MakeMapWithSize(p.rt, len(object)))
	for _, key := range sortedKeys(object) {
		elem := reflect.New(p.rt.Elem()).Elem()
		if err := p.elem.assign(object[key], elem, fmt.Sprintf("%s[%q]", path, key)); err != nil {
			return err
		}
		v.SetMapIndex(reflect.ValueOf(key).Convert(p.rt.Key()), elem)
	}
	return nil
}

// assignStruct fills every field, with its default where it is left out or
// null, and refuses names that the struct does not have.
func (p *plan) assignStruct(tree any, v reflect.Value, path string) error {
	object, ok := tree.(map[string]any)
	if !ok {
		return wantType(false, path, "an object", tree)
	}
	// First what is not known: a misspelt name is also a missing one.
	if err := p.unknown(object, path); err != nil {
		return err
	}
	for i := range p.fields {
		f := &p.fields[i]
		at := join(path, f.field.Name)
		value, present := object[f.field.Name]
		if value == nil && f.field.Optional {
			if f.field.Default == nil {
				continue
			}
			var err error
			if value, err = parseTree(f.field.Default); err != nil {
				return fmt.Errorf("%s: default: %w", at, err)
			}
		} else if !present {
			return fmt.Errorf("%s: is required", at)
		}
		if err := f.plan.assign(value, v.FieldByIndex(f.index), at); err != nil {
			return err
		}
		if err := f.checkEnum(value); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		if err := f.words.Check(value); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
	}
	return nil
}

func (p *plan) unknown(object map[string]any, path string) error {
	known := 0
	for _, f := range p.fields {
		if _, ok := object[f.field.Name]; ok {
			known++
		}
	}
	if known == len(object) {
		return nil
	}
	for _, name := range sortedKeys(object) {
		if !slices.ContainsFunc(p.fields, func(f planField) bool { return f.field.Name == name }) {
			return fmt.Errorf("%s: is not known", join(path, name))
		}
	}
	return nil
}

// checkEnum reports whether a value is among the allowed ones.
func (f *planField) checkEnum(tree any) error {
	if len(f.enum) == 0 || tree == nil {
		return nil
	}
	words := make([]string, 0, len(f.enum))
	for i, e := range f.enum {
		if sameScalar(e, tree) {
			return nil
		}
		words = append(words, string(f.field.Enum[i]))
	}
	return fmt.Errorf("must be one of %s", strings.Join(words, ", "))
}

// sameScalar compares two scalars; 1 and 1.0 are the same number.
func sameScalar(a, b any) bool {
	x, okX := a.(json.Number)
	y, okY := b.(json.Number)
	if okX && okY {
		f, errF := x.Float64()
		g, errG := y.Float64()
		return x == y || errF == nil && errG == nil && f == g
	}
	return a == b
}

func wantType(ok bool, path, want string, tree any) error {
	if ok {
		return nil
	}
	if path == "" {
		return fmt.Errorf("must be %s, not %s", want, treeKind(tree))
	}
	return fmt.Errorf("%s: must be %s, not %s", path, want, treeKind(tree))
}

func treeKind(tree any) string {
	switch tree.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case json.Number:
		return "a number"
	case []any:
		return "a list"
	}
	return "an object"
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
