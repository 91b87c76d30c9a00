package names_test

import (
	"strings"
	"testing"

	"github.com/saga-engine/engine/sdk/internal/names"
)

func TestValid(t *testing.T) {
	for _, name := range []string{"a", "a1", "charge_card", "x_", strings.Repeat("a", 63)} {
		if !names.Valid(name) {
			t.Errorf("%q is refused", name)
		}
	}
	for _, name := range []string{"", "A", "1a", "_a", "a-b", "a.b", "a b", "é", "a\n", "*", strings.Repeat("a", 64)} {
		if names.Valid(name) {
			t.Errorf("%q is accepted", name)
		}
	}
}

// Agents' authors cannot declare the codes that say how a call ended without the agent.
func TestReserved(t *testing.T) {
	for _, code := range []string{"timeout", "agent_lost", "internal", "bad_reply"} {
		if !names.Reserved(code) {
			t.Errorf("%s can be declared", code)
		}
	}
	for _, code := range []string{"", "unavailable", "declined", "Timeout"} {
		if names.Reserved(code) {
			t.Errorf("%q cannot be declared", code)
		}
	}
}
