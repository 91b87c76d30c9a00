package value

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/zclconf/go-cty/cty"
)

// Encode encodes v as a Value: canonical JSON, and JSON pointers to the marked parts. It returns an
// error if a part of v is unknown. If the parameter `secrets` is false, a secret in v is an error,
// too.
func Encode(v cty.Value, secrets bool) (Value, error) {
	e := &Encoder{AllowSecrets: secrets}
	if err := e.value(v, false); err != nil {
		return Value{}, err
	}
	return e.Finish(), nil
}

// An Encoder writes one JSON document. The document may consist of several values.
type Encoder struct {
	Out          []byte   // JSON written so far
	path         []byte   // JSON pointer of the value that is being written
	depth        int      // number of names and indexes in the field `path`
	Sensitive    []string // JSON pointers of the sensitive parts written so far
	Secrets      []Secret // secrets written so far
	AllowSecrets bool     // false = a secret is an error
}

// Finish returns the written document and its marks as a Value.
func (e *Encoder) Finish() Value {
	slices.Sort(e.Sensitive)
	slices.SortFunc(e.Secrets, func(a, b Secret) int { return strings.Compare(a.Path, b.Path) })
	return NewValue(e.Out, e.Sensitive, e.Secrets)
}

// ErrSize says that the JSON of a value is larger than MaxSize.
var ErrSize = fmt.Errorf("the value is larger than %d MiB", MaxSize>>20)

func (e *Encoder) value(v cty.Value, hidden bool) error {
	if len(e.Out) > MaxSize {
		return ErrSize
	}
	if e.depth > MaxDepth {
		return fmt.Errorf("the value is nested more than %d deep", MaxDepth)
	}
	if v.IsMarked() {
		raw, marks := v.Unmark()
		done, err := e.secret(raw, marks)
		if err != nil || done {
			return err
		}
		if _, ok := marks[SensitiveMark{}]; ok && !hidden {
			e.Sensitive = append(e.Sensitive, string(e.path))
			hidden = true
		}
		v = raw
	}
	ty := v.Type()
	switch {
	case !v.IsKnown():
		return errors.New("the value is not known")
	case v.IsNull():
		e.Out = append(e.Out, "null"...)
	case ty == cty.Bool:
		e.Out = strconv.AppendBool(e.Out, v.True())
	case ty == cty.String:
		e.Out = AppendText(e.Out, v.AsString())
	case ty == cty.Number:
		s, err := NumberText(v.AsBigFloat())
		if err != nil {
			return err
		}
		e.Out = append(e.Out, s...)
	case ty.IsListType(), ty.IsSetType(), ty.IsTupleType():
		return e.list(v, hidden)
	case ty.IsMapType(), ty.IsObjectType():
		return e.object(v, hidden)
	default:
		return fmt.Errorf("%s cannot be stored", ty.FriendlyName())
	}
	return nil
}

// secret looks for a SecretMark in the parameter `marks`. If there is one, secret writes null, adds
// the secret to e.Secrets, and returns true. If there is none, secret writes nothing, and returns
// false. It returns an error if secrets are not allowed, or if an expression has changed the text
// of the secret.
func (e *Encoder) secret(raw cty.Value, marks cty.ValueMarks) (done bool, err error) {
	var found []SecretMark
	for m := range marks {
		if s, ok := m.(SecretMark); ok {
			found = append(found, s)
		}
	}
	if len(found) == 0 {
		return false, nil
	}
	whole := raw.Type() == cty.String && raw.IsKnown() && !raw.IsNull() && raw.AsString() == Placeholder
	switch {
	case !e.AllowSecrets:
		return false, errors.New("a secret cannot be used here")
	case !whole || len(found) > 1:
		return false, errors.New("a secret can only be passed on as it is, not computed with")
	}
	e.Secrets = append(e.Secrets, Secret{Path: string(e.path), Parts: *found[0].parts})
	e.Out = append(e.Out, "null"...)
	return true, nil
}

func (e *Encoder) list(v cty.Value, hidden bool) error {
	e.Out = append(e.Out, '[')
	n := len(e.path)
	e.depth++
	i := 0
	for it := v.ElementIterator(); it.Next(); i++ {
		_, x := it.Element()
		if i > 0 {
			e.Out = append(e.Out, ',')
		}
		e.path = strconv.AppendInt(append(e.path[:n], '/'), int64(i), 10)
		if err := e.value(x, hidden); err != nil {
			return err
		}
	}
	e.path = e.path[:n]
	e.depth--
	e.Out = append(e.Out, ']')
	return nil
}

// object writes the attributes, sorted by name. It need not sort them itself, because the iterator
// of cty returns them in this order.
func (e *Encoder) object(v cty.Value, hidden bool) error {
	e.Out = append(e.Out, '{')
	first := true
	for it := v.ElementIterator(); it.Next(); first = false {
		k, x := it.Element()
		if !first {
			e.Out = append(e.Out, ',')
		}
		if err := e.Attribute(k.AsString(), x, hidden); err != nil {
			return err
		}
	}
	e.Out = append(e.Out, '}')
	return nil
}

// Attribute writes one attribute of an object: its name and its value v. If `hidden` is true, the
// attribute is inside of a sensitive part, so its sensitive parts need no pointers.
func (e *Encoder) Attribute(name string, v cty.Value, hidden bool) error {
	n := len(e.path)
	e.path = append(append(e.path, '/'), EscapePointer(name)...)
	e.depth++
	e.Out = append(AppendText(e.Out, name), ':')
	err := e.value(v, hidden)
	e.path = e.path[:n]
	e.depth--
	return err
}

const hexDigits = "0123456789abcdef"

// AppendText appends s to out as a JSON string and returns out. It escapes the same characters
// as encoding/json with SetEscapeHTML(false). A byte that is not valid UTF-8 becomes U+FFFD.
func AppendText(out []byte, s string) []byte {
	out = append(out, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= 0x20 && c != '"' && c != '\\' {
				i++
				continue
			}
			out = append(out, s[from:i]...)
			switch c {
			case '"', '\\':
				out = append(out, '\\', c)
			case '\b':
				out = append(out, '\\', 'b')
			case '\f':
				out = append(out, '\\', 'f')
			case '\n':
				out = append(out, '\\', 'n')
			case '\r':
				out = append(out, '\\', 'r')
			case '\t':
				out = append(out, '\\', 't')
			default:
				out = append(out, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			}
			i++
			from = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			out = append(append(out, s[from:i]...), `\ufffd`...)
			from = i + size
		case r == '\u2028' || r == '\u2029': // JavaScript treats these two characters as line ends
			out = append(append(out, s[from:i]...), '\\', 'u', '2', '0', '2', hexDigits[r&15])
			from = i + size
		}
		i += size
	}
	return append(append(out, s[from:]...), '"')
}
