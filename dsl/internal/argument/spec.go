package argument

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/value"
	"github.com/saga-engine/engine/sdk/schema"
)

// A Spec describes one argument of an action, or of the config of an agent.
type Spec struct {
	Field   schema.Field
	Type    cty.Type
	Default cty.Value // default, converted to Type; cty.NilVal = none
	enum    []cty.Value
	// enumText holds the values of enum as canonical JSON.
	enumText []string
	Words    *schema.Words
	// hide is true for a list or map whose elements have sensitive parts. Then the whole value
	// is sensitive.
	hide bool
}

// Specs returns a Spec for each field of a schema, by name.
func Specs(fields []schema.Field) (map[string]*Spec, error) {
	out := map[string]*Spec{}
	for _, f := range fields {
		ty, err := value.TypeFrom(f.Type)
		if err != nil {
			return nil, fmt.Errorf("argument %q: %w", f.Name, err)
		}
		s := &Spec{Field: f, Type: ty, Default: cty.NilVal, hide: f.Type.Elem != nil && value.HasSensitive(*f.Type.Elem)}
		if s.Words, err = f.Words(); err != nil {
			return nil, fmt.Errorf("argument %q: %w", f.Name, err)
		}
		if len(f.Default) > 0 {
			if s.Default, err = s.parse(f.Default); err != nil {
				return nil, fmt.Errorf("default of argument %q: %w", f.Name, err)
			}
			if s.Default.IsNull() {
				s.Default = cty.NilVal
			}
		}
		for _, raw := range f.Enum {
			v, err := s.parse(raw)
			if err != nil {
				return nil, fmt.Errorf("enum of argument %q: %w", f.Name, err)
			}
			s.enum = append(s.enum, v)
			if text, err := value.Encode(v, false); err == nil {
				s.enumText = append(s.enumText, string(text.JSON()))
			}
		}
		out[f.Name] = s
	}
	return out, nil
}

// parse decodes JSON of the schema, such as a default, to the type of the argument.
func (s *Spec) parse(raw []byte) (cty.Value, error) {
	v, err := value.DecodeJSON(raw)
	if err != nil {
		return cty.NilVal, err
	}
	return value.Conform(v, s.Type)
}

// Required reports whether a workflow must give a value: the argument is not optional and has
// no default.
func (s *Spec) Required() bool { return !s.Field.Optional && s.Default == cty.NilVal }

var errRequired = errors.New("a value is required, this is null")

// Accept converts a value to the type of the argument, checks it and marks its sensitive
// parts. For null it returns the default, or cty.NilVal if the argument is left out.
func (s *Spec) Accept(v cty.Value) (cty.Value, error) {
	if v.IsKnown() && v.IsNull() {
		switch {
		case s.Default != cty.NilVal:
			return s.mark(s.Default), nil
		case s.Required():
			return cty.NilVal, errRequired
		}
		return cty.NilVal, nil
	}
	out, err := value.Conform(v, s.Type)
	if err != nil {
		return cty.NilVal, err
	}
	if err := s.checkEnum(out); err != nil {
		return cty.NilVal, err
	}
	if err := s.checkWords(out); err != nil {
		return cty.NilVal, err
	}
	out = value.MarkType(out, s.Field.Type)
	if s.Field.Sensitive {
		out = out.Mark(value.SensitiveMark{})
	}
	return out, nil
}

// checkEnum refuses a known value that is not in the enum of the schema.
func (s *Spec) checkEnum(v cty.Value) error {
	raw, marks := v.UnmarkDeep()
	if len(s.enum) == 0 || !raw.IsWhollyKnown() || isSecret(marks) {
		return nil
	}
	var texts []string
	for _, e := range s.enum {
		if raw.RawEquals(e) {
			return nil
		}
		text, err := value.Encode(e, false)
		if err != nil {
			return err
		}
		texts = append(texts, string(text.JSON()))
	}
	return fmt.Errorf("it must be one of %s", strings.Join(texts, ", "))
}

// checkWords checks the texts in v that are already known. They must match the pattern of the
// field. If the field holds codes, they must be error codes, too. In a map, the pattern applies
// to the keys, and the values are the codes.
func (s *Spec) checkWords(v cty.Value) error {
	raw, marks := v.UnmarkDeep()
	if s.Words == nil || raw.IsNull() || !raw.IsKnown() || isSecret(marks) {
		return nil
	}
	if raw.Type() == cty.String {
		return s.checkWord(raw.AsString(), raw.AsString())
	}
	if !raw.CanIterateElements() {
		return nil
	}
	named := raw.Type().IsMapType()
	for it := raw.ElementIterator(); it.Next(); {
		key, elem := it.Element()
		text, known := "", elem.Type() == cty.String && elem.IsKnown() && !elem.IsNull()
		if known {
			text = elem.AsString()
		}
		var err error
		switch {
		case named && known:
			err = s.checkWord(key.AsString(), text)
		case named:
			err = s.Words.CheckPattern(key.AsString())
		case known:
			err = s.checkWord(text, text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkWord checks that text matches the pattern of the field. It also checks that code can be
// an error code, if the field holds codes.
func (s *Spec) checkWord(text, code string) error {
	if err := s.Words.CheckPattern(text); err != nil {
		return err
	}
	return s.Words.CheckCode(code)
}

// isSecret reports whether one of the marks is a SecretMark. Then the text is not known yet and
// cannot be checked.
func isSecret(marks cty.ValueMarks) bool {
	for m := range marks {
		if _, ok := m.(value.SecretMark); ok {
			return true
		}
	}
	return false
}

// mark marks a default as sensitive, if the field is sensitive.
func (s *Spec) mark(v cty.Value) cty.Value {
	if s.Field.Sensitive {
		return v.Mark(value.SensitiveMark{})
	}
	return v
}

// Preset returns the encoded default of the argument; nil if it has none.
func (s *Spec) Preset() *ready {
	if s.Default == cty.NilVal {
		return nil
	}
	return ReadyOf(s.Field.Name, s.mark(s.Default))
}

// takes reports whether the JSON of an argument is valid without further checks. Such JSON is
// not null. The enum contains it, if there is one. The field has neither a pattern nor codes.
func (s *Spec) takes(json []byte) bool {
	return s.Words == nil && string(json) != "null" && (len(s.enum) == 0 || slices.Contains(s.enumText, string(json)))
}
