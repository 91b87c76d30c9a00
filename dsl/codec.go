package dsl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// maxValueDepth bounds how deep the JSON of a value may be nested.
const maxValueDepth = 200

// maxValueSize bounds the JSON of one value.
const maxValueSize = 16 << 20

// A secretMark stands on the placeholder of a secret while expressions are
// evaluated. User data is JSON and has no marks, so it cannot forge one.
type secretMark struct{ parts *[]SecretPart }

// placeholder is the text of a secret during evaluation. Whatever changes the
// text is noticed when the value is encoded: a secret is passed on whole.
const placeholder = "\ue000secret\ue000"

// secretValue is a secret during evaluation: a placeholder with a mark that holds its parts.
func secretValue(parts []SecretPart) cty.Value {
	return cty.StringVal(placeholder).WithMarks(cty.NewValueMarks(secretMark{&parts}, sensitiveMark{}))
}

// decodeJSON decodes a document into the value its own shape implies.
func decodeJSON(data []byte) (cty.Value, error) {
	return decodeMarked(data, nil, nil)
}

// decodeValue decodes a Value with its marks.
func decodeValue(v Value) (cty.Value, error) {
	if v.IsNull() && len(v.Sensitive()) == 0 && len(v.Secrets()) == 0 {
		return cty.NullVal(cty.DynamicPseudoType), nil
	}
	return decodeMarked(v.JSON(), v.Sensitive(), v.Secrets())
}

func decodeMarked(data []byte, sensitive []string, secrets []Secret) (cty.Value, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var doc any
	if err := checkDepth(data); err != nil {
		return cty.NilVal, err
	}
	if err := dec.Decode(&doc); err != nil {
		return cty.NilVal, errors.New("the text is not valid JSON")
	}
	if _, err := dec.Token(); err != io.EOF {
		return cty.NilVal, errors.New("the text is more than one JSON value")
	}
	d := &valueDecoder{}
	if len(sensitive) > 0 {
		d.sensitive = map[string]bool{}
		for _, p := range sensitive {
			d.sensitive[p] = true
		}
	}
	if len(secrets) > 0 {
		d.secrets = map[string][]SecretPart{}
		for _, s := range secrets {
			d.secrets[s.Path] = s.Parts
		}
	}
	return d.value(doc, "")
}

// checkDepth refuses deep nesting before the recursive decoder sees it.
func checkDepth(data []byte) error {
	depth, inString := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > maxValueDepth {
				return fmt.Errorf("the value is nested more than %d deep", maxValueDepth)
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}

type valueDecoder struct {
	sensitive map[string]bool
	secrets   map[string][]SecretPart
}

func (d *valueDecoder) value(doc any, ptr string) (cty.Value, error) {
	if d.secrets != nil {
		if parts, ok := d.secrets[ptr]; ok {
			return secretValue(parts), nil
		}
	}
	v, err := d.plain(doc, ptr)
	if err == nil && d.sensitive[ptr] {
		v = v.Mark(sensitiveMark{})
	}
	return v, err
}

func (d *valueDecoder) plain(doc any, ptr string) (cty.Value, error) {
	marked := d.sensitive != nil || d.secrets != nil
	switch x := doc.(type) {
	case nil:
		return cty.NullVal(cty.DynamicPseudoType), nil
	case bool:
		return cty.BoolVal(x), nil
	case string:
		return cty.StringVal(x), nil
	case json.Number:
		return parseNumber(x.String())
	case []any:
		items := make([]cty.Value, len(x))
		for i, e := range x {
			p := ""
			if marked {
				p = ptr + "/" + strconv.Itoa(i)
			}
			v, err := d.value(e, p)
			if err != nil {
				return cty.NilVal, err
			}
			items[i] = v
		}
		return cty.TupleVal(items), nil
	case map[string]any:
		attrs := make(map[string]cty.Value, len(x))
		for k, e := range x {
			p := ""
			if marked {
				p = ptr + "/" + escapePointer(k)
			}
			v, err := d.value(e, p)
			if err != nil {
				return cty.NilVal, err
			}
			attrs[k] = v
		}
		return cty.ObjectVal(attrs), nil
	}
	return cty.NilVal, errors.New("unexpected JSON value")
}

// escapePointer writes a name as a part of a JSON pointer.
func escapePointer(s string) string {
	if !strings.ContainsAny(s, "~/") {
		return s
	}
	return strings.ReplaceAll(strings.ReplaceAll(s, "~", "~0"), "/", "~1")
}

// conform converts a value to a type constraint. It differs from the
// library's conversion in one thing: where the constraint says any, the value
// keeps its own type, also inside of lists and maps, so that ["a", 1] does not
// become ["a", "1"].
func conform(v cty.Value, ty cty.Type) (cty.Value, error) {
	if ty == cty.DynamicPseudoType {
		return v, nil
	}
	if !ty.HasDynamicTypes() {
		return convertTo(v, ty)
	}
	raw, marks := v.Unmark()
	out, err := conformDynamic(raw, ty)
	if err != nil {
		return cty.NilVal, err
	}
	return out.WithMarks(marks), nil
}

func conformDynamic(v cty.Value, ty cty.Type) (cty.Value, error) {
	switch {
	case v.IsNull():
		return cty.NullVal(cty.DynamicPseudoType), nil
	case !v.IsKnown():
		if v.Type() == cty.DynamicPseudoType || v.Type().IsObjectType() == ty.IsObjectType() {
			return cty.DynamicVal, nil
		}
		return convert.Convert(v, ty)
	case ty.IsListType():
		items, err := sequence(v)
		if err != nil {
			return cty.NilVal, err
		}
		for i := range items {
			if items[i], err = conform(items[i], ty.ElementType()); err != nil {
				return cty.NilVal, fmt.Errorf("element %d: %w", i, err)
			}
		}
		return cty.TupleVal(items), nil
	case ty.IsMapType():
		if !v.Type().IsMapType() && !v.Type().IsObjectType() {
			return cty.NilVal, fmt.Errorf("a map is required, this is %s", v.Type().FriendlyName())
		}
		attrs := v.AsValueMap()
		out := make(map[string]cty.Value, len(attrs))
		for _, k := range sortedKeys(attrs) { // the first mistake is always the same
			c, err := conform(attrs[k], ty.ElementType())
			if err != nil {
				return cty.NilVal, fmt.Errorf("element %q: %w", k, err)
			}
			out[k] = c
		}
		return cty.ObjectVal(out), nil
	case ty.IsObjectType():
		return conformObject(v, ty)
	}
	return convert.Convert(v, ty)
}

func conformObject(v cty.Value, ty cty.Type) (cty.Value, error) {
	if !v.Type().IsMapType() && !v.Type().IsObjectType() {
		return cty.NilVal, fmt.Errorf("an object is required, this is %s", v.Type().FriendlyName())
	}
	attrs := v.AsValueMap()
	out := map[string]cty.Value{}
	for _, name := range attributeNames(ty) {
		at := ty.AttributeType(name)
		x, ok := attrs[name]
		if !ok {
			if !ty.AttributeOptional(name) {
				return cty.NilVal, fmt.Errorf("attribute %q is required", name)
			}
			x = cty.NullVal(cty.DynamicPseudoType)
		}
		c, err := conform(x, at)
		if err != nil {
			return cty.NilVal, fmt.Errorf("attribute %q: %w", name, err)
		}
		out[name] = c
	}
	return cty.ObjectVal(out), nil
}

// unknownOf returns a value of the type of which nothing is known; objects
// stay objects, so that what is wrong below them shows.
func unknownOf(ty cty.Type) cty.Value {
	switch {
	case ty.IsObjectType():
		attrs := map[string]cty.Value{}
		for name, at := range ty.AttributeTypes() {
			attrs[name] = unknownOf(at)
		}
		return cty.ObjectVal(attrs)
	case ty.HasDynamicTypes():
		return cty.DynamicVal
	}
	return cty.UnknownVal(ty.WithoutOptionalAttributesDeep())
}
