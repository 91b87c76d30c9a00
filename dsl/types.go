package dsl

import (
	"errors"
	"fmt"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/value"
	"github.com/saga-engine/engine/sdk/schema"
)

// An argSpec is one argument an action (or a config) takes.
type argSpec struct {
	field schema.Field
	typ   cty.Type
	def   cty.Value // converted default; cty.NilVal = none
	enum  []cty.Value
	// enumText is enum as canonical JSON.
	enumText []string
	words    *schema.Words
	hide     bool // sensitive as a whole because of what is below a list
}

// argSpecs prepares the fields of a schema.
func argSpecs(fields []schema.Field) (map[string]*argSpec, error) {
	out := map[string]*argSpec{}
	for _, f := range fields {
		ty, err := value.TypeFrom(f.Type)
		if err != nil {
			return nil, fmt.Errorf("argument %q: %w", f.Name, err)
		}
		s := &argSpec{field: f, typ: ty, def: cty.NilVal, hide: f.Type.Elem != nil && value.HasSensitive(*f.Type.Elem)}
		if s.words, err = f.Words(); err != nil {
			return nil, fmt.Errorf("argument %q: %w", f.Name, err)
		}
		if len(f.Default) > 0 {
			if s.def, err = s.parse(f.Default); err != nil {
				return nil, fmt.Errorf("default of argument %q: %w", f.Name, err)
			}
			if s.def.IsNull() {
				s.def = cty.NilVal
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
func (s *argSpec) parse(raw []byte) (cty.Value, error) {
	v, err := value.DecodeJSON(raw)
	if err != nil {
		return cty.NilVal, err
	}
	return value.Conform(v, s.typ)
}

// required reports whether a value has to be written: the argument is neither optional nor has
// it a default.
func (s *argSpec) required() bool { return !s.field.Optional && s.def == cty.NilVal }

var errRequired = errors.New("a value is required, this is null")

// accept converts one argument. For null it returns the default, or
// cty.NilVal to leave the argument out.
func (s *argSpec) accept(v cty.Value) (cty.Value, error) {
	if v.IsKnown() && v.IsNull() {
		switch {
		case s.def != cty.NilVal:
			return s.mark(s.def), nil
		case s.required():
			return cty.NilVal, errRequired
		}
		return cty.NilVal, nil
	}
	out, err := value.Conform(v, s.typ)
	if err != nil {
		return cty.NilVal, err
	}
	if err := s.checkEnum(out); err != nil {
		return cty.NilVal, err
	}
	if err := s.checkWords(out); err != nil {
		return cty.NilVal, err
	}
	out = value.MarkType(out, s.field.Type)
	if s.field.Sensitive {
		out = out.Mark(value.SensitiveMark{})
	}
	return out, nil
}

// checkEnum refuses a known value that the schema does not list.
func (s *argSpec) checkEnum(v cty.Value) error {
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
func (s *argSpec) checkWords(v cty.Value) error {
	raw, marks := v.UnmarkDeep()
	if s.words == nil || raw.IsNull() || !raw.IsKnown() || isSecret(marks) {
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
			err = s.words.CheckPattern(key.AsString())
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
func (s *argSpec) checkWord(text, code string) error {
	if err := s.words.CheckPattern(text); err != nil {
		return err
	}
	return s.words.CheckCode(code)
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
