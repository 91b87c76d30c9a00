package main

import (
	"fmt"
	"strings"
)

// rules say what a status means.
type rules struct {
	expect []string          // patterns of results
	errors map[string]string // pattern to code
}

// rulesOf says what to expect where the input does not. The schema has checked
// its patterns and codes.
func rulesOf(expect []string, codes map[string]string) rules {
	if len(expect) == 0 {
		expect = []string{"2xx"}
	}
	return rules{expect: expect, errors: codes}
}

// judge says whether a status is a result, and else its code, "" where errors
// does not list it. The most exact pattern decides, and between equals errors.
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

// exactness is the number of digits that a pattern gives.
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
