package diag

import (
	"fmt"
	"sort"
	"strings"

	"github.com/agext/levenshtein"
)

// Nearest returns the candidate that is most like name, or "" if none is close.
// It never returns a candidate that equals name.
func Nearest(name string, candidates []string) string {
	best, bestDist := "", 4
	if n := len(name); n < 4 {
		bestDist = n // otherwise a short name would be close to nearly every candidate
	}
	sorted := append([]string(nil), candidates...)
	sort.Strings(sorted)
	for _, c := range sorted {
		if d := levenshtein.Distance(name, c, nil); d > 0 && d < bestDist {
			best, bestDist = c, d
		}
	}
	if best == "" {
		for _, c := range sorted { // name may be the first or the last part of a candidate
			if c != name && len(name) >= 3 && (strings.HasPrefix(c, name) || strings.HasSuffix(c, "_"+name)) {
				return c
			}
		}
	}
	return best
}

// DidYouMean returns a sentence to append to a message, with a blank in front,
// or "" if no candidate is close to name.
func DidYouMean(name string, candidates []string) string {
	if s := Nearest(name, candidates); s != "" {
		return fmt.Sprintf(" Did you mean %q?", s)
	}
	return ""
}
