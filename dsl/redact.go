package dsl

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// ResolveSecrets returns the document with every secret in its place. lookup
// gets references such as "env:X" or "file:X"; its first error is returned,
// with the reference in front of it. The caller must not change the result, nor
// store it.
func ResolveSecrets(v Value, lookup func(ref string) (string, error)) ([]byte, error) {
	if len(v.Secrets()) == 0 {
		return v.JSON(), nil
	}
	doc, err := parseDocument(v.JSON())
	if err != nil {
		return nil, err
	}
	for _, s := range v.Secrets() {
		var text strings.Builder
		for _, p := range s.Parts {
			if p.Ref == "" {
				text.WriteString(p.Text)
				continue
			}
			got, err := lookup(p.Ref)
			if err != nil {
				return nil, fmt.Errorf("secret %q: %w", p.Ref, err)
			}
			text.WriteString(got)
		}
		if doc, err = setPointer(doc, s.Path, text.String()); err != nil {
			return nil, fmt.Errorf("place a secret at %q: %w", s.Path, err)
		}
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(doc); err != nil {
		return nil, fmt.Errorf("encode input: %w", err)
	}
	return bytes.TrimRight(buf.Bytes(), "\n"), nil
}

// parseDocument decodes JSON, with numbers as they are written.
func parseDocument(data []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber() // keeps every digit
	var doc any
	if err := dec.Decode(&doc); err != nil {
		return nil, fmt.Errorf("decode value: %w", err)
	}
	return doc, nil
}

var errPointer = errors.New("the document has no such place")

func setPointer(doc any, ptr, text string) (any, error) {
	if ptr == "" {
		return text, nil
	}
	tokens := strings.Split(ptr, "/")[1:]
	cur := doc
	for i, tok := range tokens {
		last := i == len(tokens)-1
		switch c := cur.(type) {
		case map[string]any:
			key := unescapePointer(tok)
			if _, ok := c[key]; !ok {
				return nil, errPointer
			}
			if last {
				c[key] = text
			}
			cur = c[key]
		case []any:
			n, err := strconv.Atoi(tok)
			if err != nil || n < 0 || n >= len(c) {
				return nil, errPointer
			}
			if last {
				c[n] = text
			}
			cur = c[n]
		default:
			return nil, errPointer
		}
	}
	return doc, nil
}

// unescapePointer reads a part of a JSON pointer as a name.
func unescapePointer(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "~1", "/"), "~0", "~")
}

// minSensitive is the length below which a sensitive text is not looked for
// in other texts: it would be found everywhere.
const minSensitive = 4

// SensitiveStrings returns the texts of all strings and numbers in the
// sensitive parts that have at least four characters, longest first, each
// once: what has to be removed from logs and messages. Secrets are not among
// them; who resolves one knows it.
func (v Value) SensitiveStrings() []string {
	if len(v.Sensitive()) == 0 {
		return nil
	}
	doc, err := parseDocument(v.JSON())
	if err != nil {
		return nil // not a document, so nothing in it can have been shown
	}
	seen := map[string]bool{}
	for _, ptr := range v.Sensitive() {
		if part, ok := getPointer(doc, ptr); ok {
			collectLeaves(part, seen)
		}
	}
	out := sortedKeys(seen)
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
			next, ok := c[unescapePointer(tok)]
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
		if len([]rune(s)) >= minSensitive {
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

// redacted stands where a sensitive text stood.
const redacted = "(sensitive)"

// Redactor returns a function that replaces sensitive texts by "(sensitive)": as they
// are, as JSON writes them and as Go prints them. The longest come first: a text may
// contain another, and what would be left of it is as sensitive. Texts of fewer than
// four bytes would be found everywhere and are left. Of a text that was cut the
// beginning is replaced too, from four bytes on: at the end, and before a "…", which marks a cut.
func Redactor(sensitive []string) func(string) string {
	var found []string
	for _, s := range sensitive {
		if len(s) < minSensitive {
			continue
		}
		found = append(found, s)
		if quoted, err := json.Marshal(s); err == nil {
			found = append(found, string(quoted[1:len(quoted)-1]))
		}
		quoted := strconv.Quote(s)
		found = append(found, quoted[1:len(quoted)-1])
	}
	slices.SortFunc(found, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	found = slices.Compact(found)
	var pairs []string
	for _, s := range found {
		pairs = append(pairs, s, redacted)
	}
	if len(pairs) == 0 {
		return func(text string) string { return text }
	}
	replace := strings.NewReplacer(pairs...).Replace
	if len(found) == 1 { // for one pair a Replacer takes quadratic time with a text such as "aaa…"
		replace = func(text string) string { return strings.ReplaceAll(text, found[0], redacted) }
	}
	return func(text string) string { return redactCut(replace(text), found) }
}

// cutMark is written where a text was cut.
const cutMark = "…"

// redactCut replaces what is left of sensitive texts where a text was cut.
func redactCut(text string, sensitive []string) string {
	pieces := strings.Split(text, cutMark)
	for i, piece := range pieces {
		whole := strings.TrimRight(piece, "\ufffd\"") // half a character, or the end of a quoted text
		most := 0
		for _, s := range sensitive {
			most = max(most, overlap(whole, s))
		}
		if most >= minSensitive {
			pieces[i] = whole[:len(whole)-most] + redacted + piece[len(whole):]
		}
	}
	return strings.Join(pieces, cutMark)
}

// overlap returns how long the longest end of text is with which s begins. It takes
// time in proportion to the length of s.
func overlap(text, s string) int {
	text = text[max(0, len(text)-len(s)):]
	if len(s) < minSensitive || !strings.Contains(text, s[:minSensitive]) {
		return 0
	}
	borders := make([]int, len(s)) // of s[:i+1]: the longest end of it with which it begins
	step := func(n int, b byte) int {
		for n > 0 && (n == len(s) || s[n] != b) {
			n = borders[n-1]
		}
		if s[n] == b {
			n++
		}
		return n
	}
	for i := 1; i < len(s); i++ {
		borders[i] = step(borders[i-1], s[i])
	}
	n := 0
	for i := range len(text) {
		n = step(n, text[i])
	}
	return n
}
