package diag

import (
	"fmt"
	"sort"
	"strings"

	"github.com/agext/levenshtein"
)

// Nearest returns the candidate that is most similar to the parameter `name`. A candidate is
// similar if at most three changes of one character turn the candidate into `name`. For a `name`
// with less than four characters, the number of changes must also be smaller than the number of
// characters.
//
// If no candidate is similar, Nearest returns a candidate that begins with `name`, or that ends in
// "_" and `name`. It does so only if `name` has at least three characters. If there is no such
// candidate, Nearest returns "". It never returns a candidate that equals `name`.
func Nearest(name string, candidates []string) string {
	best, bestDist := "", 4
	if n := len(name); n < 4 {
		bestDist = n // three changes would make a short name similar to nearly every candidate
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

// Choices returns the same sentence as DidYouMean. If DidYouMean returns "", Choices returns a
// sentence with all candidates, sorted. Choices returns "" only if there are no candidates.
func Choices(name string, candidates []string) string {
	if s := DidYouMean(name, candidates); s != "" || len(candidates) == 0 {
		return s
	}
	all := append([]string(nil), candidates...)
	sort.Strings(all)
	return " It has: " + strings.Join(all, ", ") + "."
}

// DidYouMean returns a sentence that suggests the nearest candidate. The sentence begins with a
// blank, so the caller can append it to a message. DidYouMean returns "" if Nearest finds no
// candidate.
func DidYouMean(name string, candidates []string) string {
	if s := Nearest(name, candidates); s != "" {
		return fmt.Sprintf(" Did you mean %q?", s)
	}
	return ""
}
