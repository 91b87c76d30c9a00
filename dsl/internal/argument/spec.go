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

// A Spec is one argument an action (or a config) takes.
type Spec struct {
	Field   schema.Field
	Type    cty.Type
	Default cty.Value // converted default; cty.NilVal = none
	enum    []cty.Value
	// enumText is enum as canonical JSON.
	enumText []string
	Words    *schema.Words
	hide     bool // sensitive as a whole because of what is below a list
}

// Specs prepares the fields of a schema.
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

// Required reports whether a value has to be written: the argument is neither optional nor has
// it a default.
func (s *Spec) Required() bool { return !s.Field.Optional && s.Default == cty.NilVal }

var errRequired = errors.New("a value is required, this is null")

// Accept converts one argument. For null it returns the default, or
// cty.NilVal to leave the argument out.
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

// checkEnum refuses a known value that the schema does not list.
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

// checkWords checks the texts that are known already against the field's
// pattern and codes.
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

// checkWord checks one text against the pattern of the field, and one against its codes.
func (s *Spec) checkWord(text, code string) error {
	if err := s.Words.CheckPattern(text); err != nil {
		return err
	}
	return s.Words.CheckCode(code)
}

// isSecret reports whether marks include that of a secret, whose text is not known yet.
func isSecret(marks cty.ValueMarks) bool {
	for m := range marks {
		if _, ok := m.(value.SecretMark); ok {
			return true
		}
	}
	return false
}

// mark marks a default like a value that was given.
func (s *Spec) mark(v cty.Value) cty.Value {
	if s.Field.Sensitive {
		return v.Mark(value.SensitiveMark{})
	}
	return v
}

// Preset is what stands for an argument that is not written; nil if it has no
// default.
func (s *Spec) Preset() *ready {
	if s.Default == cty.NilVal {
		return nil
	}
	return ReadyOf(s.Field.Name, s.mark(s.Default))
}

// takes reports whether an argument is surely taken as it is written: neither
// null, for which there may be a default, nor outside its enum, nor a text that
// has to be looked at.
func (s *Spec) takes(json []byte) bool {
	return s.Words == nil && string(json) != "null" && (len(s.enum) == 0 || slices.Contains(s.enumText, string(json)))
}
