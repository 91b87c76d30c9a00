package render

import (
	"bytes"
	"encoding/json"
	"sort"
	"strconv"
	"strings"

	"github.com/saga-engine/engine/dsl"
)

// SensitiveText replaces a sensitive value in all output.
const SensitiveText = "(sensitive)"

// Redact returns the JSON of a value without its secrets. It replaces sensitive parts by
// "(sensitive)", and references to secrets by a text such as "(secret env:TOKEN)". Numbers stay as
// they are.
func Redact(v dsl.Value) json.RawMessage {
	if len(v.Sensitive()) == 0 && len(v.Secrets()) == 0 {
		return v.JSON()
	}
	dec := json.NewDecoder(bytes.NewReader(v.JSON()))
	dec.UseNumber()
	var doc any
	if dec.Decode(&doc) != nil {
		return json.RawMessage(`"` + SensitiveText + `"`)
	}
	for _, s := range v.Secrets() {
		var refs []string
		for _, p := range s.Parts {
			if p.Ref != "" {
				refs = append(refs, p.Ref)
			}
		}
		doc = replaceAt(doc, pointer(s.Path), "(secret "+strings.Join(refs, ", ")+")")
	}
	for _, path := range v.Sensitive() {
		doc = replaceAt(doc, pointer(path), SensitiveText)
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if enc.Encode(doc) != nil {
		return json.RawMessage(`"` + SensitiveText + `"`)
	}
	return bytes.TrimSpace(out.Bytes())
}

// pointer splits a JSON pointer (RFC 6901) into its unescaped parts.
func pointer(p string) []string {
	if p == "" {
		return nil
	}
	parts := strings.Split(strings.TrimPrefix(p, "/"), "/")
	for i, s := range parts {
		parts[i] = strings.ReplaceAll(strings.ReplaceAll(s, "~1", "/"), "~0", "~")
	}
	return parts
}

// replaceAt hides a value inside of the document doc: it replaces the value by the text `with` and
// returns the changed document. The parameter `path` says where the value is. If the document has
// no value at this path, replaceAt replaces the innermost value that the path reaches. So it may
// hide more than necessary, but never less.
func replaceAt(doc any, path []string, with string) any {
	if len(path) == 0 {
		return with
	}
	switch d := doc.(type) {
	case map[string]any:
		if child, ok := d[path[0]]; ok {
			d[path[0]] = replaceAt(child, path[1:], with)
			return d
		}
	case []any:
		if i, err := strconv.Atoi(path[0]); err == nil && i >= 0 && i < len(d) {
			d[i] = replaceAt(d[i], path[1:], with)
			return d
		}
	case string:
		if d == SensitiveText {
			return d // an earlier call has already hidden the whole value here
		}
	}
	return with
}

// Literal returns the JSON in data as text for people, in the syntax of HCL. Keys have quotes only
// if they need them. A long value takes several lines. All lines except the first begin with the
// text in the parameter `indent`.
func Literal(data []byte, indent string) string {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var doc any
	if err := dec.Decode(&doc); err != nil {
		return Clean(string(data))
	}
	if s := literal(doc, "", false); len(s) <= 72 {
		return s
	}
	return literal(doc, indent, true)
}

func literal(v any, indent string, lines bool) string {
	open, sep, last := "", ", ", ""
	if lines {
		open, sep, last = "\n"+indent+"  ", "\n"+indent+"  ", "\n"+indent
	}
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		if v == SensitiveText || strings.HasPrefix(v, "(secret ") {
			return Clean(v)
		}
		return quote(v)
	case []any:
		if len(v) == 0 {
			return "[]"
		}
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = literal(e, indent+"  ", lines)
			if lines {
				parts[i] += ","
			}
		}
		return "[" + open + strings.Join(parts, sep) + last + "]"
	case map[string]any:
		if len(v) == 0 {
			return "{}"
		}
		if !lines {
			open, last = " ", " "
		}
		parts := make([]string, 0, len(v))
		for _, k := range sortedKeys(v) {
			parts = append(parts, key(k)+" = "+literal(v[k], indent+"  ", lines))
		}
		return "{" + open + strings.Join(parts, sep) + last + "}"
	}
	out, err := json.Marshal(v)
	if err != nil {
		return "null"
	}
	return string(out)
}

// quote returns s as a JSON string in which control characters are replaced.
func quote(s string) string {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if enc.Encode(s) != nil {
		return `""`
	}
	return Clean(strings.TrimSuffix(out.String(), "\n"))
}

func key(k string) string {
	for i, r := range k {
		if r != '_' && r != '-' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (i == 0 || r < '0' || r > '9') {
			return quote(k)
		}
	}
	if k == "" {
		return `""`
	}
	return k
}

func sortedKeys(m map[string]any) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}
