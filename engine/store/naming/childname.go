package naming

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// ChildName returns the public name of a child run: PARENT.STEP.HASH, such as
// order-7.ship.793b931275. PARENT is the name of the parent, cut after 60 characters. STEP is the
// name of the step or instance that starts the child, cut after 28 characters. HASH is the
// beginning of the SHA-256 of that step's idempotency key, as 10 hexadecimal digits. HASH makes the
// name unique. The name has at most 100 characters.
func ChildName(parent, step, key string) string {
	const (
		parentLen = 60
		stepLen   = 28
	)
	hash := sha256.Sum256([]byte(key))
	var b strings.Builder
	b.WriteString(parent[:min(len(parent), parentLen)])
	b.WriteByte('.')
	b.WriteString(plainName(step, stepLen))
	b.WriteByte('.')
	b.WriteString(hex.EncodeToString(hash[:5]))
	return b.String()
}

// plainName returns the text s without the characters that the name of a run must not contain:
// ship["berlin"] becomes ship-berlin. If several such characters follow each other, one hyphen
// replaces all of them. At the beginning and at the end of s, such characters are removed without a
// hyphen. The parameter `most` is the largest length of the result.
func plainName(s string, most int) string {
	var b strings.Builder
	gap := false
	for _, c := range []byte(s) {
		if !validName("x" + string(rune(c))) {
			gap = b.Len() > 0
			continue
		}
		if gap {
			b.WriteByte('-')
			gap = false
		}
		b.WriteByte(c)
	}
	return b.String()[:min(b.Len(), most)]
}
