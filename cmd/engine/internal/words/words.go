package words

import (
	"slices"
	"sort"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Sorted returns the sorted keys of a map.
func Sorted[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}

// Stamp returns a time as commands show it: in UTC, to the second.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

// Short returns the first four characters of a digest and an ellipsis, for messages. It returns a
// shorter digest unchanged.
func Short(digest string) string {
	if len(digest) <= 4 {
		return digest
	}
	return digest[:4] + "…"
}

// UpperFirst returns s with its first letter as a capital letter.
func UpperFirst(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}

// Quote returns s as an argument for a shell. It adds quotes if s needs them.
func Quote(s string) string {
	if s != "" && !strings.ContainsAny(s, " \t\n\"'\\$&|;<>()*?[]{}#~!`") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Join joins the parts that are not empty, with sep between them.
func Join(sep string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), sep)
}
