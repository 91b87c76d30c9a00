package naming

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// ChildName returns the public name of a child run: PARENT.STEP.HASH. Its parts are the name of
// the parent, the name of the step or instance that starts the child, and a part of the SHA-256 of
// the idempotency key of that step. Long names are cut. The hash makes the name unique.
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

// plainName returns a text in which each group of characters that a run's name must not contain is
// replaced by one hyphen. It cuts the text after the given number of characters.
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
