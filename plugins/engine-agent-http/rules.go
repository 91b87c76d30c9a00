package main

import (
	"fmt"
	"strings"
)

// rules says which HTTP statuses are results, and which are definite failures.
type rules struct {
	expect []string          // patterns of the statuses that are results, such as "2xx"
	errors map[string]string // error code for each pattern of statuses that are definite failures
}

// rulesOf makes the rules from the inputs `expect` and `errors`. If `expect` is empty, all
// statuses 2xx are results. The SDK has already checked the patterns and codes.
func rulesOf(expect []string, codes map[string]string) rules {
	if len(expect) == 0 {
		expect = []string{"2xx"}
	}
	return rules{expect: expect, errors: codes}
}

// judge reports whether a response with this status counts as a result. If it does not, judge
// returns the error code of the status; "" if the input `errors` does not list the status. If
// several patterns match, the pattern with the most digits decides. If two patterns have equally
// many digits, `errors` has priority over `expect`.
func (r rules) judge(status int) (result bool, code string) {
	best := -1
	for _, p := range r.expect {
		if matches(p, status) && exactness(p) > best {
			best, result = exactness(p), true
		}
	}
	for p, c := range r.errors {
		if !matches(p, status) {
			continue
		}
		if e := exactness(p); e > best || e == best && (result || c < code) {
			best, result, code = e, false, c
		}
	}
	return result, code
}

// exactness returns the number of digits in a pattern; an x is not a digit.
func exactness(pattern string) int {
	return len(pattern) - strings.Count(strings.ToLower(pattern), "x")
}

func matches(pattern string, status int) bool {
	text := fmt.Sprint(status)
	if len(text) != len(pattern) {
		return false
	}
	for i := range len(text) {
		if p := pattern[i]; p != text[i] && p != 'x' && p != 'X' {
			return false
		}
	}
	return true
}
