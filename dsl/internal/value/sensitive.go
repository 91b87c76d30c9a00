package value

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/saga-engine/engine/dsl/internal/sorted"
)

// EscapePointer escapes "~" and "/" in a name, as in a JSON pointer (RFC 6901).
func EscapePointer(s string) string {
	if !strings.ContainsAny(s, "~/") {
		return s
	}
	return strings.ReplaceAll(strings.ReplaceAll(s, "~", "~0"), "/", "~1")
}

// ParseDocument decodes JSON. A number becomes a json.Number, which keeps all digits.
func ParseDocument(data []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var doc any
	if err := dec.Decode(&doc); err != nil {
		return nil, fmt.Errorf("decode value: %w", err)
	}
	return doc, nil
}

// UnescapePointer returns the name from which EscapePointer made s.
func UnescapePointer(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "~1", "/"), "~0", "~")
}

// MinSensitive is the smallest length of a sensitive text that is removed from logs and
// messages, in bytes. A shorter text would be found everywhere.
const MinSensitive = 4

// SensitiveStrings returns the texts that must be removed from logs and messages. These are the
// strings and numbers of at least MinSensitive bytes in the sensitive parts. The list has no
// duplicates and begins with the longest text. It does not contain secrets, because a Value does
// not hold the texts of secrets.
func (v Value) SensitiveStrings() []string {
	if len(v.Sensitive()) == 0 {
		return nil
	}
	doc, err := ParseDocument(v.JSON())
	if err != nil {
		return nil // the value is not JSON, so no expression could read it
	}
	seen := map[string]bool{}
	for _, ptr := range v.Sensitive() {
		if part, ok := getPointer(doc, ptr); ok {
			collectLeaves(part, seen)
		}
	}
	out := sorted.Keys(seen)
	sort.SliceStable(out, func(i, j int) bool { return len(out[i]) > len(out[j]) })
	return out
}

func getPointer(doc any, ptr string) (any, bool) {
	if ptr == "" {
		return doc, true
	}
	for _, tok := range strings.Split(ptr, "/")[1:] {
		switch c := doc.(type) {
		case map[string]any:
			next, ok := c[UnescapePointer(tok)]
			if !ok {
				return nil, false
			}
			doc = next
		case []any:
			n, err := strconv.Atoi(tok)
			if err != nil || n < 0 || n >= len(c) {
				return nil, false
			}
			doc = c[n]
		default:
			return nil, false
		}
	}
	return doc, true
}

func collectLeaves(doc any, out map[string]bool) {
	add := func(s string) {
		if len(s) >= MinSensitive {
			out[s] = true
		}
	}
	switch x := doc.(type) {
	case string:
		add(x)
	case json.Number:
		add(x.String())
	case []any:
		for _, e := range x {
			collectLeaves(e, out)
		}
	case map[string]any:
		for _, e := range x {
			collectLeaves(e, out)
		}
	}
}
