package secret

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/saga-engine/engine/dsl/internal/value"
)

// Resolve puts the secrets into the JSON of v and returns the result. It calls the function
// `lookup` with references such as "env:X" or "file:X". If this function fails, Resolve returns
// its error, with the reference before the error text. The caller must neither change nor store
// the result.
func Resolve(v value.Value, lookup func(ref string) (string, error)) ([]byte, error) {
	if len(v.Secrets()) == 0 {
		return v.JSON(), nil
	}
	doc, err := value.ParseDocument(v.JSON())
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
			key := value.UnescapePointer(tok)
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

const redacted = "(sensitive)"

// Redactor returns a function that replaces sensitive texts by "(sensitive)". The function finds a
// sensitive text unchanged, escaped as in JSON, and quoted as in Go. It replaces longer texts
// first, because a long text may contain a shorter one. It does not replace texts of less than four
// bytes, because these occur everywhere. At the end of the input and before each "…", a sensitive
// text may have been cut off, so that only its beginning is left. The function replaces such a
// beginning, too, if the beginning has at least four bytes.
func Redactor(sensitive []string) func(string) string {
	var found []string
	for _, s := range sensitive {
		if len(s) < value.MinSensitive {
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
	if len(found) == 1 { // with one pair, a Replacer takes quadratic time for a text such as "aaa…"
		replace = func(text string) string { return strings.ReplaceAll(text, found[0], redacted) }
	}
	return func(text string) string { return redactCut(replace(text), found) }
}

const cutMark = "…"

// redactCut replaces the sensitive texts that were cut off. Where a text was cut, it may end with
// only the first part of a sensitive text. So redactCut looks for such a first part at the end of
// text, and before each cutMark.
func redactCut(text string, sensitive []string) string {
	pieces := strings.Split(text, cutMark)
	for i, piece := range pieces {
		whole := strings.TrimRight(piece, "\ufffd\"") // drop half a character or a closing quote at the end
		most := 0
		for _, s := range sensitive {
			most = max(most, overlap(whole, s))
		}
		if most >= value.MinSensitive {
			pieces[i] = whole[:len(whole)-most] + redacted + piece[len(whole):]
		}
	}
	return strings.Join(pieces, cutMark)
}

// overlap returns the length of the longest suffix of text that is also a prefix of s. If this
// length is less than value.MinSensitive, overlap may return 0 instead. The running time of overlap
// is proportional to the length of s.
func overlap(text, s string) int {
	text = text[max(0, len(text)-len(s)):]
	if len(s) < value.MinSensitive || !strings.Contains(text, s[:value.MinSensitive]) {
		return 0
	}
	// borders is the prefix function of Knuth, Morris and Pratt. borders[i] is the length of the
	// longest proper prefix of s[:i+1] that is also a suffix of s[:i+1].
	borders := make([]int, len(s))
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
