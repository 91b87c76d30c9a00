package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/saga-engine/engine/sdk"
)

// failureData returns what the workflow reads as step.NAME.error.data after a refused request: the
// body of the response, as JSON or as text. The parameter `how` is the input `response`. This input
// chooses between JSON and text in the same way as for the output of a call. If the body is too
// large for error.data, failureData returns its beginning as text, with a note that says so.
//
// The parameter `whole` is false if `body` is only the beginning of the response. The result is nil
// if there is no body, if `how` is "none", if the body is not text in UTF-8, or if the body has a
// zero byte.
func failureData(c *sdk.Call, how, contentType string, body []byte, whole bool) any {
	if !whole {
		body = withoutPart(body)
	}
	text := strings.TrimSpace(string(body))
	if how == "none" || text == "" {
		return nil
	}
	if whole && (how == "json" || how == "auto" && isJSON(contentType)) {
		if tree, err := parseJSON(body); err == nil && fits(tree) {
			return tree
		}
	}
	if !utf8.Valid(body) || bytes.IndexByte(body, 0) >= 0 {
		return nil
	}
	if whole && fits(text) {
		return text
	}
	return cut(c, text, len(body), whole)
}

// cut returns the beginning of a text, with a note that says how many bytes of the body remain. The
// parameter `size` is the length of the body in bytes. If `whole` is false, the response was even
// longer, and the note says "at least". Call.Excerpt cuts the text, so that no part of a secret
// remains. JSON escapes some characters, so cut shortens the text until its JSON is small enough.
func cut(c *sdk.Call, text string, size int, whole bool) string {
	of := strconv.Itoa(size)
	if !whole {
		of = "at least " + of
	}
	for n := min(len(text), sdk.MaxData) - 1; ; n /= 2 {
		short := c.Excerpt(text, n)
		short = fmt.Sprintf("%s… (cut after %d of %s bytes)", short, len(short), of)
		if n == 0 || fits(short) {
			return short
		}
	}
}

// fits reports whether the JSON of v is small enough for the data of a failure.
func fits(v any) bool {
	raw, err := json.Marshal(v)
	return err == nil && len(raw) <= sdk.MaxData
}

// withoutPart removes an incomplete character at the end of a text in UTF-8.
func withoutPart(text []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(text); i++ {
		if b := text[len(text)-i]; utf8.RuneStart(b) {
			if !utf8.FullRune(text[len(text)-i:]) {
				return text[:len(text)-i]
			}
			break
		}
	}
	return text
}
