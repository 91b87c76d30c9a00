package sdk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/saga-engine/engine/sdk/schema"
)

// CheckObject reports what is wrong with a JSON object that should hold fields:
// a field that is missing, not known or of another type, or a value outside its
// enum. It names all that is wrong. It is what a host checks a reply with before it believes it (S35).
// Errors name fields but never show values.
func CheckObject(fields []schema.Field, raw json.RawMessage) error {
	if s := (scanner{src: raw}); s.hasFields(fields) && s.end() {
		return nil
	}
	tree, err := parseTree(raw)
	if err != nil {
		return fmt.Errorf("not a JSON object: %w", err)
	}
	return checkFields(fields, tree, "")
}

// hasFields reads an object and reports whether it surely holds the fields:
// false says nothing.
func (s *scanner) hasFields(fields []schema.Field) bool {
	if s.depth++; s.depth > scanDepth || len(fields) > 64 || !s.take('{') {
		return false
	}
	seen, next := uint64(0), 0
	if s.peek() != '}' {
		for {
			raw, plain, ok := s.text()
			if !ok || !plain || !s.take(':') {
				return false
			}
			i := fieldAt(fields, raw[1:len(raw)-1], next)
			if i < 0 || !s.hasField(&fields[i]) {
				return false
			}
			seen |= 1 << i
			next = i + 1
			if s.peek() != ',' {
				break
			}
			s.pos++
		}
	}
	for i := range fields {
		if seen&(1<<i) == 0 && !fields[i].Optional {
			return false
		}
	}
	s.depth--
	return s.take('}')
}

// fieldAt finds a field by name, starting where it most likely is; -1 if there
// is none.
func fieldAt(fields []schema.Field, name []byte, guess int) int {
	for k := range fields {
		i := (guess + k) % len(fields)
		if fields[i].Name == string(name) {
			return i
		}
	}
	return -1
}

func (s *scanner) hasField(f *schema.Field) bool {
	if f.Optional && s.peek() == 'n' {
		return s.word("null")
	}
	if len(f.Enum) == 0 {
		return s.hasType(f.Type)
	}
	s.peek()
	from := s.pos
	if !s.hasType(f.Type) {
		return false
	}
	return slices.ContainsFunc(f.Enum, func(e json.RawMessage) bool { return bytes.Equal(e, s.src[from:s.pos]) })
}

func (s *scanner) hasType(t schema.Type) bool {
	switch t.Kind {
	case schema.KindAny:
		return s.skip()
	case schema.KindBool:
		if s.peek() == 't' {
			return s.word("true")
		}
		return s.word("false")
	case schema.KindNumber:
		_, ok := s.number()
		return ok
	case schema.KindString:
		_, _, ok := s.text()
		return ok
	case schema.KindObject:
		return s.hasFields(t.Fields)
	case schema.KindList, schema.KindSet:
		return t.Elem != nil && s.list(func() bool { return s.hasType(*t.Elem) })
	case schema.KindMap:
		return t.Elem != nil && s.object(func([]byte) bool { return s.hasType(*t.Elem) })
	}
	return false
}

// mostProblems is how many problems of an object one error names.
const mostProblems = 12

// checkFields names all problems at once: correcting them one by one costs a
// person one attempt for each.
func checkFields(fields []schema.Field, tree any, path string) error {
	object, ok := tree.(map[string]any)
	if !ok {
		return wantType(false, path, "an object", tree)
	}
	var problems []string
	known := 0
	for _, f := range fields {
		value, present := object[f.Name]
		if present {
			known++
		}
		if err := checkField(f, value, present, join(path, f.Name)); err != nil {
			problems = append(problems, err.Error())
		}
	}
	if known < len(object) {
		for _, name := range sortedKeys(object) {
			if !slices.ContainsFunc(fields, func(f schema.Field) bool { return f.Name == name }) {
				problems = append(problems, join(path, name)+": is not known")
			}
		}
	}
	if len(problems) == 0 {
		return nil
	}
	if more := len(problems) - mostProblems; more > 0 {
		problems = append(problems[:mostProblems], fmt.Sprintf("and %d more", more))
	}
	return errors.New(strings.Join(problems, "; "))
}

func checkField(f schema.Field, value any, present bool, at string) error {
	if value == nil && (f.Optional || present && f.Type.Kind == schema.KindAny) {
		return nil
	}
	if !present {
		return fmt.Errorf("%s: is missing", at)
	}
	if err := checkType(f.Type, value, at); err != nil {
		return err
	}
	if err := checkAllowed(f, value); err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	return nil
}

func checkAllowed(f schema.Field, value any) error {
	if len(f.Enum) == 0 {
		return nil
	}
	pf := planField{field: f}
	for _, raw := range f.Enum {
		tree, err := parseTree(raw)
		if err != nil {
			return fmt.Errorf("enum of the schema: %w", err)
		}
		pf.enum = append(pf.enum, tree)
	}
	return pf.checkEnum(value)
}

func checkType(t schema.Type, tree any, path string) error {
	switch t.Kind {
	case schema.KindAny:
		return nil
	case schema.KindBool:
		_, ok := tree.(bool)
		return wantType(ok, path, "a boolean", tree)
	case schema.KindNumber:
		_, ok := tree.(json.Number)
		return wantType(ok, path, "a number", tree)
	case schema.KindString:
		_, ok := tree.(string)
		return wantType(ok, path, "a string", tree)
	case schema.KindObject:
		return checkFields(t.Fields, tree, path)
	case schema.KindList, schema.KindSet:
		list, ok := tree.([]any)
		if !ok {
			return wantType(false, path, "a list", tree)
		}
		for i, e := range list {
			if err := checkType(*t.Elem, e, fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
		return nil
	case schema.KindMap:
		object, ok := tree.(map[string]any)
		if !ok {
			return wantType(false, path, "a map", tree)
		}
		for _, key := range sortedKeys(object) {
			if err := checkType(*t.Elem, object[key], fmt.Sprintf("%s[%q]", path, key)); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("%s: the schema's type %q is not known", path, t.Kind)
}
