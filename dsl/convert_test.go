package dsl

import (
	"fmt"
	"strings"
	"testing"
)

// TestLockComputesNothing: a lock file holds plain values; what computes is
// refused before it is evaluated.
func TestLockComputesNothing(t *testing.T) {
	loops := strings.Repeat("[for a in [1, 2, 3, 4, 5, 6, 7, 8, 9] : ", 40) + "a" + strings.Repeat("]", 40)
	for _, version := range []string{loops, `"${1e900000000}"`, `"a${1e900000000}"`, "true ? \"1\" : \"2\"", `"%{ for x in [1] }x%{ endfor }"`} {
		_, diags := ReadLock([]byte("agent \"a\" {\n  version = "+version+"\n  hashes = []\n}\n"), "engine.lock.hcl")
		if !strings.Contains(fmt.Sprint(diags.Err()), "Not a literal value") {
			t.Errorf("%.60s: %v", version, diags.Err())
		}
	}
}
