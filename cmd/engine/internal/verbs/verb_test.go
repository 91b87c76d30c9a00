package verbs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
)

func TestCheckReason(t *testing.T) {
	for _, c := range []struct {
		name, reason, needed, want string
	}{
		{"none needed", "", "", ""},
		{"given", "because", "settle", ""},
		{"missing", "", "settle", "Reason needed"},
		{"blank", " \t", "settle", "Reason needed"},
		{"long", strings.Repeat("x", maxReason+1), "", "Invalid flag"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ""
			if err := CheckReason(c.reason, c.needed); err != nil {
				got = cli.Diagnose(err)[0].Summary
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestJSONFlag(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "out.json"), []byte(" {\"a\": 1}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := &cli.App{Chdir: dir}
	for _, c := range []struct{ name, text, want, err string }{
		{"object", `{"a":12345678901234567890}`, `{"a":12345678901234567890}`, ""},
		{"nothing", "", "{}", ""},
		{"file", "@out.json", `{"a":1}`, ""},
		{"no file", "@none.json", "", "no such file"},
		{"half", `{"a":`, "", "not JSON"},
		{"two", `{} {}`, "", "not JSON"},
		{"large", `"` + strings.Repeat("x", maxJSONFlag) + `"`, "", "larger than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := jsonFlag(a, "--output", c.text)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, want one with %q", err, c.err)
				}
				return
			}
			if err != nil || string(got.JSON()) != c.want {
				t.Errorf("%s, error %v; want %s", got.JSON(), err, c.want)
			}
		})
	}
}
