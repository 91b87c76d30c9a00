package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/saga-engine/engine/sdk"
)

// rules say what a status means.
type rules struct {
	expect []string          // patterns of results
	errors map[string]string // pattern to code
}

var (
	statusPattern = regexp.MustCompile(`^[1-5]([0-9]{2}|[0-9][xX]|[xX]{2})$`)
	codePattern   = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)
)

// parseRules checks expect and errors. Its errors are definite failures.
func parseRules(expect []string, codes map[string]string) (rules, error) {
	if len(expect) == 0 {
		expect = []string{"2xx"}
	}
	for _, p := range expect {
		if !statusPattern.MatchString(p) {
			return rules{}, invalid("expect: %q is neither a status such as 201 nor a pattern such as 2xx", p)
		}
	}
	for p, code := range codes {
		switch {
		case !statusPattern.MatchString(p):
			return rules{}, invalid("errors: %q is neither a status such as 402 nor a pattern such as 4xx", p)
		case !codePattern.MatchString(code) || isUnknownCode(code):
			return rules{}, invalid("errors: %q cannot be an error code: want snake_case, and none of the engine's own", code)
		}
	}
	return rules{expect: expect, errors: codes}, nil
}

// isUnknownCode reports whether a code stands for an unknown outcome and so
// cannot name a definite failure.
func isUnknownCode(code string) bool {
	switch code {
	case sdk.CodeTimeout, sdk.CodeAgentLost, sdk.CodeInternal, sdk.CodeBadReply:
		return true
	}
	return false
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
