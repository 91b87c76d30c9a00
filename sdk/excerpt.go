package sdk

import (
	"encoding/json"
	"sort"
	"strings"
	"unicode/utf8"
)

// minKnown is the length in bytes from which a part of a value counts as a part of
// it: shorter texts are found everywhere. maxKnown is the longest part that is looked
// for. Longer values are data and no secrets, and a program that repeats its input
// must not lose all of its output.
const (
	minKnown = 4
	maxKnown = 4 << 10
)

// Excerpt is Call.Excerpt with the documents whose values are not cut. It is for
// hosts.
func Excerpt(text string, n int, documents ...json.RawMessage) string {
	if len(text) <= n {
		return strings.ToValidUTF8(text, "")
	}
	to := max(n, 0)
	for to > 0 && !utf8.RuneStart(text[to]) {
		to--
	}
	to -= longest(to, values(documents...), func(l int) string { return text[to-l : to+1] })
	return strings.ToValidUTF8(text[:to], "")
}

// excerptEnd is Excerpt for the end of text.
func excerptEnd(text string, n int, documents ...json.RawMessage) string {
	if len(text) <= n {
		return strings.ToValidUTF8(text, "")
	}
	from := len(text) - max(n, 0)
	for from < len(text) && !utf8.RuneStart(text[from]) {
		from++
	}
	from += longest(len(text)-from, values(documents...), func(l int) string { return text[from-1 : from+l] })
	return strings.ToValidUTF8(text[from:], "")
}

// longest returns how many bytes of a value are kept by a cut that goes through the
// value; 0 if there are fewer than minKnown. part returns so many bytes that are kept
// and the byte on the other side of the cut.
func longest(most int, values []string, part func(l int) string) int {
	found := 0
	for _, v := range values {
		l := sort.Search(min(most, len(v), maxKnown), func(i int) bool { return !strings.Contains(v, part(i+1)) })
		found = max(found, l)
	}
	if found < minKnown {
		return 0
	}
	return found
}

// values returns the documents, as which a service may repeat them, and every
// string in them.
func values(documents ...json.RawMessage) []string {
	var all []string
	for _, d := range documents {
		if len(d) == 0 {
			continue
		}
		all = append(all, string(d))
		var doc any
		if json.Unmarshal(d, &doc) == nil { // what is no document holds no values
			all = appendStrings(all, doc)
		}
	}
	return all
}

func appendStrings(all []string, v any) []string {
	switch v := v.(type) {
	case string:
		if len(v) >= minKnown {
			all = append(all, v)
		}
	case []any:
		for _, e := range v {
			all = appendStrings(all, e)
		}
	case map[string]any:
		for k, e := range v {
			all = appendStrings(appendStrings(all, k), e)
		}
	}
	return all
}
