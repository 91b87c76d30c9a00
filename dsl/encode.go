package dsl

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/zclconf/go-cty/cty"
)

// encodeValue writes a known value as a Value: canonical JSON, and its marks
// as pointers. Secrets are an error unless they are allowed in this place.
func encodeValue(v cty.Value, secrets bool) (Value, error) {
	e := &valueEncoder{allowSecrets: secrets}
	if err := e.value(v, false); err != nil {
		return Value{}, err
	}
	return e.finish(), nil
}

// A valueEncoder writes one document, perhaps of several values.
type valueEncoder struct {
	out          []byte
	path         []byte // JSON pointer of the value being written
	depth        int    // of path
	sensitive    []string
	secrets      []Secret
	allowSecrets bool
}

// finish makes a Value of what was written.
func (e *valueEncoder) finish() Value {
	slices.Sort(e.sensitive)
	slices.SortFunc(e.secrets, func(a, b Secret) int { return strings.Compare(a.Path, b.Path) })
	return NewValue(e.out, e.sensitive, e.secrets)
}

// errValueSize is the error of a value larger than maxValueSize.
var errValueSize = fmt.Errorf("the value is larger than %d MiB", maxValueSize>>20)

func (e *valueEncoder) value(v cty.Value, hidden bool) error {
	if len(e.out) > maxValueSize {
		return errValueSize
	}
	if e.depth > maxValueDepth {
		return fmt.Errorf("the value is nested more than %d deep", maxValueDepth)
	}
	if v.IsMarked() {
		raw, marks := v.Unmark()
		done, err := e.secret(raw, marks)
		if err != nil || done {
			return err
		}
		if _, ok := marks[sensitiveMark{}]; ok && !hidden {
			e.sensitive = append(e.sensitive, string(e.path))
			hidden = true
		}
		v = raw
	}
	ty := v.Type()
	switch {
	case !v.IsKnown():
		return errors.New("the value is not known")
	case v.IsNull():
		e.out = append(e.out, "null"...)
	case ty == cty.Bool:
		e.out = strconv.AppendBool(e.out, v.True())
	case ty == cty.String:
		e.out = appendText(e.out, v.AsString())
	case ty == cty.Number:
		s, err := numberText(v.AsBigFloat())
		if err != nil {
			return err
		}
		e.out = append(e.out, s...)
	case ty.IsListType(), ty.IsSetType(), ty.IsTupleType():
		return e.list(v, hidden)
	case ty.IsMapType(), ty.IsObjectType():
		return e.object(v, hidden)
	default:
		return fmt.Errorf("%s cannot be stored", ty.FriendlyName())
	}
	return nil
}

// secret writes a value that carries the mark of a secret; done is false for
// any other.
func (e *valueEncoder) secret(raw cty.Value, marks cty.ValueMarks) (done bool, err error) {
	var found []secretMark
	for m := range marks {
		if s, ok := m.(secretMark); ok {
			found = append(found, s)
		}
	}
	if len(found) == 0 {
		return false, nil
	}
	whole := raw.Type() == cty.String && raw.IsKnown() && !raw.IsNull() && raw.AsString() == placeholder
	switch {
	case !e.allowSecrets:
		return false, errors.New("a secret cannot be used here")
	case !whole || len(found) > 1:
		return false, errors.New("a secret can only be passed on as it is, not computed with")
	}
	e.secrets = append(e.secrets, Secret{Path: string(e.path), Parts: *found[0].parts})
	e.out = append(e.out, "null"...)
	return true, nil
}

func (e *valueEncoder) list(v cty.Value, hidden bool) error {
	e.out = append(e.out, '[')
	n := len(e.path)
	e.depth++
	i := 0
	for it := v.ElementIterator(); it.Next(); i++ {
		_, x := it.Element()
		if i > 0 {
			e.out = append(e.out, ',')
		}
		e.path = strconv.AppendInt(append(e.path[:n], '/'), int64(i), 10)
		if err := e.value(x, hidden); err != nil {
			return err
		}
	}
	e.path = e.path[:n]
	e.depth--
	e.out = append(e.out, ']')
	return nil
}

// object writes attributes in order of name: the iterator sorts them.
func (e *valueEncoder) object(v cty.Value, hidden bool) error {
	e.out = append(e.out, '{')
	first := true
	for it := v.ElementIterator(); it.Next(); first = false {
		k, x := it.Element()
		if !first {
			e.out = append(e.out, ',')
		}
		if err := e.attribute(k.AsString(), x, hidden); err != nil {
			return err
		}
	}
	e.out = append(e.out, '}')
	return nil
}

// attribute writes a name and its value.
func (e *valueEncoder) attribute(name string, v cty.Value, hidden bool) error {
	n := len(e.path)
	e.path = append(append(e.path, '/'), escapePointer(name)...)
	e.depth++
	e.out = append(appendText(e.out, name), ':')
	err := e.value(v, hidden)
	e.path = e.path[:n]
	e.depth--
	return err
}

const hexDigits = "0123456789abcdef"

// appendText writes a string as JSON, without the escapes that are only meant
// for HTML: what encoding/json writes with SetEscapeHTML(false). What is not
// UTF-8 becomes U+FFFD.
func appendText(out []byte, s string) []byte {
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
		case r == '\u2028' || r == '\u2029': // line ends in JavaScript
			out = append(append(out, s[from:i]...), '\\', 'u', '2', '0', '2', hexDigits[r&15])
			from = i + size
		}
		i += size
	}
	return append(append(out, s[from:]...), '"')
}
