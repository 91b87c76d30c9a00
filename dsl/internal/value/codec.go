package value

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/zclconf/go-cty/cty"
)

// MaxDepth is the largest number of levels to which the JSON of a value may be nested.
const MaxDepth = 200

// MaxSize is the largest size of the JSON of one value, in bytes.
const MaxSize = 16 << 20

// A SensitiveMark marks a sensitive value. The result of an expression has the marks of all
// values that the expression uses.
type SensitiveMark struct{}

// A SecretMark marks the placeholder of a secret during an evaluation. Users supply their data
// as JSON, and JSON has no marks. So user data cannot contain a SecretMark.
type SecretMark struct{ parts *[]SecretPart }

// Placeholder replaces the text of a secret during an evaluation. An expression may pass a
// secret on, but not change its text: an Encoder refuses a secret whose text is not Placeholder.
const Placeholder = "\ue000secret\ue000"

// SecretValue returns a secret for an evaluation: the Placeholder, with a SecretMark that holds
// the parts of the secret.
func SecretValue(parts []SecretPart) cty.Value {
	return cty.StringVal(Placeholder).WithMarks(cty.NewValueMarks(SecretMark{&parts}, SensitiveMark{}))
}

// DecodeJSON decodes a JSON document without marks. The type of the returned value depends only
// on the JSON: an array becomes a tuple, and an object becomes an object.
func DecodeJSON(data []byte) (cty.Value, error) {
	return decodeMarked(data, nil, nil)
}

// Decode decodes a Value with its marks.
func Decode(v Value) (cty.Value, error) {
	if v.IsNull() && len(v.Sensitive()) == 0 && len(v.Secrets()) == 0 {
		return cty.NullVal(cty.DynamicPseudoType), nil
	}
	return decodeMarked(v.JSON(), v.Sensitive(), v.Secrets())
}

func decodeMarked(data []byte, sensitive []string, secrets []Secret) (cty.Value, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var doc any
	if err := CheckDepth(data); err != nil {
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

// CheckDepth returns an error if a document is nested more than MaxDepth levels deep. A deeper
// document could overflow the stack of the recursive decoder.
func CheckDepth(data []byte) error {
	depth, inString := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > MaxDepth {
				return fmt.Errorf("the value is nested more than %d deep", MaxDepth)
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
			return SecretValue(parts), nil
		}
	}
	v, err := d.plain(doc, ptr)
	if err == nil && d.sensitive[ptr] {
		v = v.Mark(SensitiveMark{})
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
		return ParseNumber(x.String())
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
				p = ptr + "/" + EscapePointer(k)
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
