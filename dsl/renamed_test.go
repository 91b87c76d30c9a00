package dsl

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl/internal/decl"
)

// olderSource returns the stored form of a definition in which a source text is replaced, as an
// engine could have stored it that still accepted this text.
func olderSource(t *testing.T, def *Definition, now, then string) []byte {
	t.Helper()
	var s stored
	if err := json.Unmarshal(def.Encode(), &s); err != nil {
		t.Fatal(err)
	}
	for name, key := range s.Manifest.Files {
		text := strings.ReplaceAll(string(s.Blobs[key]), now, then)
		delete(s.Blobs, key)
		sum := sha256.Sum256([]byte(text))
		s.Manifest.Files[name] = hex.EncodeToString(sum[:])
		s.Blobs[s.Manifest.Files[name]] = []byte(text)
	}
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestCoolDownInStoredDefinitions: cool_down of a circuit breaker was cooldown once. A stored
// definition may say that, and means the same. A file may not, and the message has the new name.
func TestCoolDownInStoredDefinitions(t *testing.T) {
	const src = "agent \"mock\" {\n  circuit_breaker { cool_down = \"2d\" }\n}\nworkflow \"w\" {\n  deadline = \"1h\"\n  step \"s\" {\n    action       = agent.mock.call\n    compensation = \"none\"\n  }\n}\n"
	def := linked(t, src)
	if got := def.Workflow("w").Agents["mock"].Breaker.Cooldown; got != 48*time.Hour {
		t.Errorf("cool_down is %v", got)
	}
	back, err := Decode(olderSource(t, def, "cool_down", "cooldown"))
	if err != nil {
		t.Fatal(err)
	}
	if got := back.Workflow("w").Agents["mock"].Breaker.Cooldown; got != 48*time.Hour {
		t.Errorf("cooldown of the stored definition is %v", got)
	}
	for _, file := range []struct{ name, text string }{
		{"a.hcl", strings.Replace(src, "cool_down", "cooldown", 1)},
		{"a.hcl.json", `{"agent": {"mock": {"circuit_breaker": {"cooldown": "2d"}}}}`},
	} {
		older := map[string][]byte{file.name: []byte(file.text)}
		if m, diags := decl.ParseStored(decl.Stored{Files: older}, true); diags.HasErrors() || m.Agents["mock"].Breaker.Cooldown != 48*time.Hour {
			t.Errorf("%s, older: %v", file.name, diags.Err())
		}
		_, diags := decl.ParseStored(decl.Stored{Files: older}, false)
		if err := diags.Err(); err == nil || !strings.Contains(err.Error(), `"cooldown"`) || !strings.Contains(err.Error(), `Did you mean "cool_down"?`) {
			t.Errorf("%s, newer: %v", file.name, err)
		}
	}
}

// TestStarsInStoredDefinitions: step.N[*] over a step with for_each is refused today. A stored
// definition could hold it, and is accepted.
func TestStarsInStoredDefinitions(t *testing.T) {
	def := linked(t, "workflow \"w\" {\n  deadline = \"1h\"\n  step \"s\" {\n    action       = agent.mock.call\n    for_each     = toset([\"a\"])\n    compensation = \"none\"\n  }\n  output \"o\" { value = try(values(step.s)[*].output.value, 1) }\n}\n")
	if _, err := Decode(olderSource(t, def, "values(step.s)[*]", "step.s[*]")); err != nil {
		t.Error(err)
	}
}
