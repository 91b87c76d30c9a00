package functions

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"net/url"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/sorted"
)

var (
	errBase64 = errors.New("the text is not valid base64")
	errUTF8   = errors.New("the decoded bytes are not valid UTF-8 text")
)

// utf8Value returns decoded bytes as a string. If the bytes are not valid UTF-8, it returns an
// error about the first argument of the call. The reason is that the function of the language has
// decoded the bytes from this argument.
func utf8Value(b []byte) (cty.Value, error) {
	if !utf8.Valid(b) {
		return cty.NilVal, function.NewArgError(0, errUTF8)
	}
	return cty.StringVal(string(b)), nil
}

var (
	base64EncodeFunc = mapText(func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) })
	base64DecodeFunc = textFunction("str", func(s string) (cty.Value, error) {
		b, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			return cty.NilVal, function.NewArgError(0, errBase64)
		}
		return utf8Value(b)
	})
	// base64URLEncodeFunc writes no padding, as tokens (JWT) and most URLs require.
	base64URLEncodeFunc = mapText(func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) })
	base64URLDecodeFunc = textFunction("str", func(s string) (cty.Value, error) {
		b, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(s, "="))
		if err != nil {
			return cty.NilVal, function.NewArgErrorf(0, "the text is not valid base64 with - and _")
		}
		return utf8Value(b)
	})
	urlEncodeFunc = mapText(url.QueryEscape)
	urlDecodeFunc = textFunction("str", func(s string) (cty.Value, error) {
		out, err := url.QueryUnescape(s)
		if err != nil {
			return cty.NilVal, function.NewArgErrorf(0, "after each %% two hexadecimal digits are required")
		}
		return utf8Value([]byte(out))
	})
	// base64GzipFunc returns the compressed text in base64. Another version of the engine may
	// compress the same text to other bytes.
	base64GzipFunc = textFunction("str", func(s string) (cty.Value, error) {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		if _, err := w.Write([]byte(s)); err != nil {
			return cty.NilVal, err
		}
		if err := w.Close(); err != nil {
			return cty.NilVal, err
		}
		return cty.StringVal(base64.StdEncoding.EncodeToString(out.Bytes())), nil
	})
	textEncodeFunc = textPair("str", "encoding", cty.String, func(s, name string) (cty.Value, error) {
		e, err := encodingOf(name)
		if err != nil {
			return cty.NilVal, err
		}
		b, ok := e.encode(s)
		if !ok {
			return cty.NilVal, function.NewArgErrorf(0, "the text has a character that %s does not have", name)
		}
		return cty.StringVal(base64.StdEncoding.EncodeToString(b)), nil
	})
	textDecodeFunc = textPair("str", "encoding", cty.String, func(s, name string) (cty.Value, error) {
		e, err := encodingOf(name)
		if err != nil {
			return cty.NilVal, err
		}
		b, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			return cty.NilVal, function.NewArgError(0, errBase64)
		}
		text, ok := e.decode(b)
		if !ok {
			return cty.NilVal, function.NewArgErrorf(0, "the decoded bytes are not valid %s text", name)
		}
		return cty.StringVal(text), nil
	})
)

// A textEncoding converts texts to bytes and back. The function `encode` returns false if the text
// has a character that the encoding does not have. The function `decode` returns false if the bytes
// are not valid in the encoding.
type textEncoding struct {
	encode func(string) ([]byte, bool)
	decode func([]byte) (string, bool)
}

// textEncodings holds the encodings by their IANA names in upper case. UTF-16 begins with a byte
// order mark, and UTF-16BE and UTF-16LE have none.
var textEncodings = map[string]textEncoding{
	"UTF-8":      {func(s string) ([]byte, bool) { return []byte(s), true }, func(b []byte) (string, bool) { return string(b), utf8.Valid(b) }},
	"US-ASCII":   singleBytes(0x7f),
	"ISO-8859-1": singleBytes(0xff),
	"UTF-16BE":   utf16Encoding(binary.BigEndian),
	"UTF-16LE":   utf16Encoding(binary.LittleEndian),
	"UTF-16":     markedUTF16(),
}

func encodingOf(name string) (textEncoding, error) {
	e, ok := textEncodings[strings.ToUpper(name)]
	if !ok {
		names := sorted.Keys(textEncodings)
		return e, function.NewArgErrorf(1, "the encoding is one of %s.%s", strings.Join(names, ", "), strings.TrimSuffix(diag.DidYouMean(strings.ToUpper(name), names), "."))
	}
	return e, nil
}

// singleBytes returns an encoding in which each character is one byte: the number of the character.
// The parameter `last` is the character with the largest number that the encoding has.
func singleBytes(last rune) textEncoding {
	return textEncoding{
		func(s string) ([]byte, bool) {
			out := make([]byte, 0, len(s))
			for _, c := range s {
				if c > last {
					return nil, false
				}
				out = append(out, byte(c))
			}
			return out, true
		},
		func(b []byte) (string, bool) {
			out := make([]byte, 0, len(b))
			for _, c := range b {
				if rune(c) > last {
					return "", false
				}
				out = utf8.AppendRune(out, rune(c))
			}
			return string(out), true
		},
	}
}

func utf16Encoding(order interface {
	binary.ByteOrder
	binary.AppendByteOrder
}) textEncoding {
	return textEncoding{
		func(s string) ([]byte, bool) {
			out := make([]byte, 0, 2*len(s))
			for _, c := range s {
				for _, unit := range utf16.AppendRune(nil, c) {
					out = order.AppendUint16(out, unit)
				}
			}
			return out, true
		},
		func(b []byte) (string, bool) {
			units := make([]uint16, 0, len(b)/2)
			for pair := range slices.Chunk(b, 2) {
				if len(pair) < 2 {
					return "", false
				}
				units = append(units, order.Uint16(pair))
			}
			text := string(utf16.Decode(units))
			// utf16.Decode replaces one half of a surrogate pair by U+FFFD. This shows that the
			// bytes are invalid: if the text is encoded again, the result is not the same.
			return text, slices.Equal(units, utf16.Encode([]rune(text)))
		},
	}
}

// markedUTF16 returns the encoding UTF-16. It encodes a text as big-endian with a byte order
// mark. When it decodes bytes, the byte order mark decides; without this mark, it decodes the
// bytes as big-endian.
func markedUTF16() textEncoding {
	big, little := utf16Encoding(binary.BigEndian), utf16Encoding(binary.LittleEndian)
	return textEncoding{
		func(s string) ([]byte, bool) { return big.encode("\ufeff" + s) },
		func(b []byte) (string, bool) {
			if rest, ok := bytes.CutPrefix(b, []byte{0xff, 0xfe}); ok {
				return little.decode(rest)
			}
			return big.decode(bytes.TrimPrefix(b, []byte{0xfe, 0xff}))
		},
	}
}
