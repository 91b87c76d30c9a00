package diag

import (
	"fmt"
	"sort"
	"strings"

	"github.com/agext/levenshtein"
)

// Nearest returns the candidate that is most similar to the parameter `name`. A candidate is
// similar if at most three changes of one character turn it into the name. If the name has
// less than four characters, there must be fewer changes than characters. If no candidate is
// similar, Nearest returns one that begins with the name, or ends in "_" and the name. Otherwise
// it returns "". It never returns a candidate that equals the name.
func Nearest(name string, candidates []string) string {
	best, bestDist := "", 4
	if n := len(name); n < 4 {
		bestDist = n // otherwise a short name would be similar to nearly every candidate
	}
	sorted := append([]string(nil), candidates...)
	sort.Strings(sorted)
	for _, c := range sorted {
		if d := levenshtein.Distance(name, c, nil); d > 0 && d < bestDist {
			best, bestDist = c, d
		}
	}
	if best == "" {
		for _, c := range sorted {
			if c != name && len(name) >= 3 && (strings.HasPrefix(c, name) || strings.HasSuffix(c, "_"+name)) {
				return c
			}
		}
	}
	return best
}

// Choices returns the same as DidYouMean. But if no candidate is similar to the name, it returns a
// sentence with all candidates, sorted.
func Choices(name string, candidates []string) string {
	if s := DidYouMean(name, candidates); s != "" || len(candidates) == 0 {
		return s
	}
	all := append([]string(nil), candidates...)
	sort.Strings(all)
	return " It has: " + strings.Join(all, ", ") + "."
}

// DidYouMean returns a sentence that suggests the nearest candidate. The sentence begins with a
// blank, so the caller can append it to a message. DidYouMean returns "" if no candidate is
// similar to the name.
func DidYouMean(name string, candidates []string) string {
	if s := Nearest(name, candidates); s != "" {
		return fmt.Sprintf(" Did you mean %q?", s)
	}
	return ""
}
