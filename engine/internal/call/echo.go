package call

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/saga-engine/engine/dsl"
)

// leastEcho is the length, in bytes, of the shortest secret for which markEchoes searches. A
// shorter secret such as "a" occurs almost everywhere.
const leastEcho = 4

// markEchoes returns an output in which the parts that repeat a secret are marked as sensitive.
// The engine seals, masks and redacts these parts like the secret itself. A part is a string or
// a number that contains a secret. If a key of an object contains a secret, the whole object is
// marked.
func markEchoes(out dsl.Value, secrets []string) dsl.Value {
	var found []string
	for _, s := range secrets {
		if len(s) < leastEcho {
			continue
		}
		for _, form := range spellings(strings.ToValidUTF8(s, "\ufffd")) {
			if !slices.Contains(found, form) && bytes.Contains(out.JSON(), inJSON(form)) {
				found = append(found, form)
			}
		}
	}
	if len(found) == 0 {
		return out
	}
	var doc any
	dec := json.NewDecoder(bytes.NewReader(out.JSON()))
	dec.UseNumber()
	if dec.Decode(&doc) != nil {
		// Decoding should never fail, because this engine encoded the value. If it fails, mark the
		// whole output.
		return dsl.NewValue(out.JSON(), []string{""}, out.Secrets())
	}
	m := &echoes{found: found, known: out.Sensitive()}
	m.search(doc, "")
	marks := slices.Concat(out.Sensitive(), m.marks)
	slices.Sort(marks)
	return dsl.NewValue(out.JSON(), marks, out.Secrets())
}

// spellings returns the forms in which a text may contain a secret: the secret unchanged, and the
// two common ways to escape it in JSON. An agent may return JSON as text, for example the body of
// an HTTP response. In such a text a secret like a"b appears as a\"b.
func spellings(s string) []string {
	forms := []string{s, string(inJSON(s))}
	if quoted, err := json.Marshal(s); err == nil { // json.Marshal also escapes <, > and &
		forms = append(forms, string(quoted[1:len(quoted)-1]))
	}
	return forms
}

// inJSON returns a text as it appears inside a string of canonical JSON.
func inJSON(s string) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if enc.Encode(s) != nil || buf.Len() < 3 {
		return []byte(s)
	}
	return buf.Bytes()[1 : buf.Len()-2] // without the quotes and the line break
}

// echoes collects the JSON pointers of the parts of an output that contain secrets.
type echoes struct {
	found []string // secrets that the output contains
	known []string // JSON pointers of the parts that are already marked as sensitive
	marks []string // JSON pointers of the parts in which a secret was found
}

// search searches a part of the output for secrets. The parameter `at` is the JSON pointer of this
// part.
func (m *echoes) search(doc any, at string) {
	if slices.Contains(m.known, at) {
		return
	}
	switch x := doc.(type) {
	case string:
		m.text(x, at)
	case json.Number:
		m.text(x.String(), at)
	case []any:
		for i, e := range x {
			m.search(e, at+"/"+strconv.Itoa(i))
		}
	case map[string]any:
		for k := range x {
			// If the key k contains a secret, mark the whole object. The pointer of a smaller
			// part would contain k, and so show the secret.
			if m.containsSecret(k) {
				m.marks = append(m.marks, at)
				return
			}
		}
		for k, e := range x {
			m.search(e, at+"/"+pointerEscape.Replace(k))
		}
	}
}

// pointerEscape escapes a key of an object for use in a JSON pointer (RFC 6901).
var pointerEscape = strings.NewReplacer("~", "~0", "/", "~1")

func (m *echoes) text(s, at string) {
	if m.containsSecret(s) {
		m.marks = append(m.marks, at)
	}
}

func (m *echoes) containsSecret(s string) bool {
	return slices.ContainsFunc(m.found, func(secret string) bool { return strings.Contains(s, secret) })
}
