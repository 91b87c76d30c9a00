package sdk

import (
	"encoding/json"
	"sort"
	"strings"
	"unicode/utf8"
)

// If a cut divides a value, Excerpt also removes the bytes of this value that are before the cut.
// If these are fewer than minKnown bytes, it does not remove them, because such a short text occurs
// everywhere. It removes at most maxKnown bytes, because a longer value is data and not a secret.
// Without maxKnown, the excerpt of a text that contains the whole input could be empty.
const (
	minKnown = 4
	maxKnown = 4 << 10
)

// Excerpt returns the beginning of a text, at most n bytes. If the cut would divide a value of the
// given JSON documents, the result ends before that value. A program that calls agents uses this
// function; an action uses Call.Excerpt.
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

// excerptEnd returns the end of a text, at most n bytes. If the cut would divide a value of the
// given documents, the result begins after that value.
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

// longest returns how many of the kept bytes the caller must remove, because they belong to a value
// that the cut divides. If these are fewer than minKnown bytes, it returns 0. The parameter `most`
// is the number of bytes that the caller has kept. The function `part` returns a piece of the text
// around the cut: the l kept bytes that are nearest to the cut, and one byte that was cut off.
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

// values returns the documents, and every string and object key in them that has at least
// minKnown bytes. The result includes the documents, because the output of a service may
// contain a whole document.
func values(documents ...json.RawMessage) []string {
	var all []string
	for _, d := range documents {
		if len(d) == 0 {
			continue
		}
		all = append(all, string(d))
		var doc any
		if json.Unmarshal(d, &doc) == nil { // skip a document that is not JSON
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
