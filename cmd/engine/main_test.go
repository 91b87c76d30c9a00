package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/exit"
	"github.com/saga-engine/engine/dsl/diag"
)

func TestDidYouMean(t *testing.T) {
	names := []string{"apply", "plan", "list"}
	for _, c := range []struct{ name, want string }{
		{"aply", ` Did you mean "apply"?`},
		{"lst", ` Did you mean "list"?`},
		{"frobnicate", ""},
		{"", ""},
	} {
		if got := diag.DidYouMean(c.name, names); got != c.want {
			t.Errorf("diag.DidYouMean(%q) = %q, want %q", c.name, got, c.want)
		}
	}
}

// Every command accepts --json, and a failure is one object with diagnostics.
func TestJSONFailures(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, args := range []string{
		"init --lockfile=x", "validate nowhere", "fmt nowhere", "plan nowhere", "list", "show x", "graph nowhere",
		"explain x", "watch x --from-seq 0", "logs x", "cancel x", "pause x", "resume x", "retry x", "compensate x", "settle x --step y",
		"doctor",
		"agents list --plugin-dir nowhere", "supervise", "supervise --once", "apply nowhere --detach", "agents schema nope", "db migrate", "db status", "version extra", "nothing",
	} {
		t.Run(args, func(t *testing.T) {
			var out, errs bytes.Buffer
			code := run(t.Context(), append(strings.Fields(args), "--json"), strings.NewReader(""), &out, &errs)
			if code != exit.Failed {
				t.Errorf("exit code %d, want %d", code, exit.Failed)
			}
			var doc struct {
				Version     string            `json:"format_version"`
				Diagnostics []json.RawMessage `json:"diagnostics"`
			}
			dec := json.NewDecoder(&out)
			if err := dec.Decode(&doc); err != nil {
				t.Fatalf("not an object: %v; stderr: %s", err, &errs)
			}
			if doc.Version != cli.FormatVersion || len(doc.Diagnostics) == 0 {
				t.Errorf("format_version %q and %d diagnostics", doc.Version, len(doc.Diagnostics))
			}
			if dec.More() {
				t.Error("more than one object")
			}
		})
	}
}
