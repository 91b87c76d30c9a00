package value

import (
	"bytes"
	"slices"
	"sync/atomic"

	"github.com/zclconf/go-cty/cty"
)

// A Value is an immutable JSON document with marks. The marks say which parts are sensitive, and
// which parts are references to secrets. The text of a secret is inserted only right before a
// call. The zero Value is null.
//
// Numbers are exact decimals: an integer above 2^53 keeps all its digits. Object keys are
// sorted, so equal values have equal bytes.
type Value struct{ d *valueData }

type valueData struct {
	json    []byte                   // canonical JSON; empty = null
	marks   *marks                   // sensitive parts and secrets; nil = none, as in most values
	decoded atomic.Pointer[Decoded]  // decoded form that KeepDecoded kept; nil = none
	index   atomic.Pointer[[]Member] // index that the method `attribute` made; nil = none
}

// A Secret describes a string in a Value. The string contains secrets. Path is the JSON pointer
// (RFC 6901) of the string; "" = the string is the whole value. The text of the string is the
// concatenation of Parts. The JSON of the Value holds null at Path.
type Secret struct {
	Path  string       `json:"path"`
	Parts []SecretPart `json:"parts"`
}

// A SecretPart is a fixed text, or a reference to a secret such as "env:X" or "file:X". Exactly
// one field is set.
type SecretPart struct {
	Text string `json:"text,omitempty"`
	Ref  string `json:"ref,omitempty"`
}

// marks holds the marks of a Value. The JSON of the Value does not contain these marks.
type marks struct {
	Sensitive []string
	Secrets   []Secret
}

// NewValue makes a Value from canonical JSON. The Value uses the slice `data` without a copy, so
// the caller must not change this slice afterwards. The parameter `sensitive` lists the JSON
// pointers (RFC 6901) of the sensitive parts.
func NewValue(data []byte, sensitive []string, secrets []Secret) Value {
	if len(data) == 0 && len(sensitive) == 0 && len(secrets) == 0 {
		return Value{}
	}
	d := &valueData{json: data}
	if len(sensitive) > 0 || len(secrets) > 0 {
		d.marks = &marks{sensitive, secrets}
	}
	return Value{d}
}

// JSON returns the JSON document; "null" for the zero Value. The caller must not
// change the bytes.
func (v Value) JSON() []byte {
	if v.d == nil || len(v.d.json) == 0 {
		return []byte("null") // a new slice for each call: a caller might change it
	}
	return v.d.json
}

// IsNull reports whether the value is JSON null.
func (v Value) IsNull() bool { return v.d == nil || len(v.d.json) == 0 || string(v.d.json) == "null" }

// Sensitive returns the JSON pointers of the sensitive parts.
func (v Value) Sensitive() []string {
	if !v.marked() {
		return nil
	}
	return v.d.marks.Sensitive
}

// Secrets returns the strings of the value that contain secrets.
func (v Value) Secrets() []Secret {
	if !v.marked() {
		return nil
	}
	return v.d.marks.Secrets
}

// marked reports whether any part of v is sensitive or a secret.
func (v Value) marked() bool { return v.d != nil && v.d.marks != nil }

// Equal reports whether two values have the same bytes and the same marks.
func (v Value) Equal(w Value) bool {
	if v.d == w.d {
		return true
	}
	if !bytes.Equal(v.JSON(), w.JSON()) || v.marked() != w.marked() {
		return false
	}
	return !v.marked() || slices.Equal(v.Sensitive(), w.Sensitive()) &&
		slices.EqualFunc(v.Secrets(), w.Secrets(), func(a, b Secret) bool { return a.Path == b.Path && slices.Equal(a.Parts, b.Parts) })
}

// A Load is the size of the stored values to which an expression refers. The cost of an evaluation
// includes the Load, even if the engine has decoded the values before. So an evaluation has the
// same cost on every engine.
type Load struct{ Bytes, Nodes int64 }

// Plus adds two loads.
func (l Load) Plus(x Load) Load { return Load{l.Bytes + x.Bytes, l.Nodes + x.Nodes} }

// A Decoded is the decoded form of a Value.
type Decoded struct {
	Owner any       // pointer to the evaluator that decoded the Value; another evaluator decodes to other types
	Value cty.Value // the decoded form
	Load  Load      // size of the Value, which is the cost of decoding
}

// KeptDecoded returns the decoded form of v that an earlier call of KeepDecoded kept. It returns
// nil if there is none, or if the field Owner of the kept form is not the parameter `owner`.
func KeptDecoded(v Value, owner any) *Decoded {
	if v.d == nil {
		return nil
	}
	if d := v.d.decoded.Load(); d != nil && d.Owner == owner {
		return d
	}
	return nil
}

// KeepDecoded keeps the decoded form d with v, in memory. It replaces an earlier decoded form. It
// does nothing for the zero Value.
func KeepDecoded(v Value, d *Decoded) {
	if v.d != nil {
		v.d.decoded.Store(d)
	}
}

// A Member is one attribute of an object. Key is the name of the attribute, without quotes. In
// the arguments of Split, Whole is the JSON of the name, a colon and the value. In
// valueData.index, Whole is the JSON of the value alone.
type Member struct{ Key, Whole []byte }
