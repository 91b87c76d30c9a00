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
	Type    cty.Type    // type of the argument, made from Field
	Default cty.Value   // default, converted to Type; cty.NilVal = the argument has no default
	enum    []cty.Value // allowed values; empty = all values are allowed
	// enumText holds the values of enum as canonical JSON.
	enumText []string
	Words    *schema.Words // pattern and codes that texts must match; nil = every text is allowed
	// true = the argument is a list or map whose elements have sensitive parts. Then the whole
	// value is sensitive.
	hide bool
	// Fill returns the value of the argument, with a default for each optional attribute that is
	// missing inside of the value. nil = no attribute inside of the value has a default. Only an
	// argument of a declared action can have such defaults.
	Fill func(cty.Value) cty.Value
}

// Specs returns a Spec for each field of a schema, by name of the field. It returns an error if
// the schema has an invalid type, default, enum, pattern or list of codes.
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

// parse decodes JSON from the schema, such as a default, and converts it to s.Type.
func (s *Spec) parse(raw []byte) (cty.Value, error) {
	v, err := value.DecodeJSON(raw)
	if err != nil {
		return cty.NilVal, err
	}
	return value.Conform(v, s.Type)
}

// Required reports whether a workflow must set the argument: the argument is not optional and
// has no default.
func (s *Spec) Required() bool { return !s.Field.Optional && s.Default == cty.NilVal }

var errRequired = errors.New("a value is required, this is null")

// Accept converts v to the type of the argument, checks it, and marks the sensitive parts. If v is
// null, Accept returns the default. If v is null and an optional argument has no default, Accept
// returns cty.NilVal: the caller leaves the argument out.
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
	if s.Fill != nil && !v.Type().IsPrimitiveType() {
		v = s.Fill(v)
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

// checkEnum returns an error if v is known, but the enum of the schema does not contain v.
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

// checkWords returns an error if a known text in v does not match the pattern of the field. If the
// field holds codes, each text must also be a valid error code. In a map, the keys must match the
// pattern, and the values must be error codes. If v has a sensitive part, the error does not show
// the text.
func (s *Spec) checkWords(v cty.Value) error {
	raw, marks := v.UnmarkDeep()
	if s.Words == nil || raw.IsNull() || !raw.IsKnown() || isSecret(marks) {
		return nil
	}
	words := s.Words
	if _, sensitive := marks[value.SensitiveMark{}]; sensitive || s.hide {
		words = words.Hide()
	}
	if raw.Type() == cty.String {
		return checkWord(words, raw.AsString(), raw.AsString())
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
			err = checkWord(words, key.AsString(), text)
		case named:
			err = words.CheckPattern(key.AsString())
		case known:
			err = checkWord(words, text, text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkWord returns an error if the parameter `text` does not match the pattern of the field. It
// also returns an error if the field holds codes and the parameter `code` is not a valid error
// code. The parameter `words` holds the pattern and the rule for codes.
func checkWord(words *schema.Words, text, code string) error {
	if err := words.CheckPattern(text); err != nil {
		return err
	}
	return words.CheckCode(code)
}

// isSecret reports whether one of the marks is a SecretMark. A value with a SecretMark cannot be
// checked, because the text of the secret is not known yet.
func isSecret(marks cty.ValueMarks) bool {
	for m := range marks {
		if _, ok := m.(value.SecretMark); ok {
			return true
		}
	}
	return false
}

// mark returns the value v. If the field is sensitive, the result is marked as sensitive.
func (s *Spec) mark(v cty.Value) cty.Value {
	if s.Field.Sensitive {
		return v.Mark(value.SensitiveMark{})
	}
	return v
}

// Preset returns the encoded default of the argument; nil if the argument has no default.
func (s *Spec) Preset() *ready {
	if s.Default == cty.NilVal {
		return nil
	}
	return ReadyOf(s.Field.Name, s.mark(s.Default))
}

// takes reports whether the JSON of an argument certainly fits the Spec, so that Accept need
// not check it. It returns false if the JSON is null, or if the argument has an enum that does
// not contain the JSON. It also returns false if the argument has a pattern, codes, or
// defaults inside of its value.
func (s *Spec) takes(json []byte) bool {
	return s.Words == nil && s.Fill == nil && string(json) != "null" && (len(s.enum) == 0 || slices.Contains(s.enumText, string(json)))
}
