package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/saga-engine/engine/cmd/engine/internal/exit"
)

const shapesFlow = `
workflow "order" {
  deadline = "5h"
  unique { key = var.id }
  variable "id" { type = string }
  step "hold" {
    for_each = toset(["a", "b"])
    action   = agent.mock.do
    input { value = 1 }
  }
  step "charge" {
    depends_on = [step.hold]
    action     = agent.mock.do
    deadline   = "1m"
    input {
      value = 2
      undo  = { fail = { code = "no", permanent = true } }
    }
  }
  step "book" {
    depends_on = [step.charge]
    action     = agent.mock.do
    input {
      value = 3
      fail  = var.id == "good" ? null : { code = "no", permanent = true }
    }
  }
  output "paid" { value = step.charge.output.value }
}
`

// docs/cli.md lists every field of the JSON of list, plan, graph and show with its
// type: none is left out, and none is listed that does not exist. Fields that the
// page marks as rare need not be in the samples.
func TestJSONShapes(t *testing.T) {
	page, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.hcl"), []byte(shapesFlow), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ENGINE_PLUGIN_DIR", os.Getenv(envAgents))
	t.Setenv("ENGINE_DSN", "")
	run := func(want int, args ...string) string {
		t.Helper()
		code, out, errs := command(t, append([]string{"--chdir", dir}, args...)...)
		if code != want {
			t.Fatalf("%q: exit code %d, want %d\n%s%s", args, code, want, out, errs)
		}
		return out
	}
	run(exit.OK, "apply", ".", "--var", "id=good", "--run-id", "good")
	run(exit.Human, "apply", ".", "--var", "id=bad", "--run-id", "bad")
	run(exit.OK, "apply", ".", "--var", "id=open", "--run-id", "open", "--detach")
	run(exit.OK, "pause", "open")
	for name, samples := range map[string][]string{
		"list":  {"list"},
		"plan":  {"plan . --var id=new", "plan . --var id=good"},
		"graph": {"graph .", "graph . --undo"},
		"show":  {"show good --events", "show bad", "show open"},
	} {
		t.Run(name, func(t *testing.T) {
			seen := map[string]string{}
			for _, s := range samples {
				var doc any
				if err := json.Unmarshal([]byte(run(exit.OK, append(strings.Fields(s), "--json")...)), &doc); err != nil {
					t.Fatal(err)
				}
				shape(seen, "", doc)
			}
			documented, rare := shapeRows(string(page), name)
			for field, kind := range seen {
				if documented[field] != kind {
					t.Errorf("| `%s` | %s |: documented as %q", field, kind, documented[field])
				}
			}
			for field := range documented {
				if seen[field] == "" && !rare[field] {
					t.Errorf("%s is documented and is in no sample", field)
				}
			}
		})
	}
}

// open fields hold what the workflow defines, or the lines of another format.
var openFields = []string{"variables", "outputs", "steps[].input", "steps[].output", "steps[].undo_input", "events[]", "open_runs.other_definitions"}

// shape gathers the fields of a document, by path, with their types.
func shape(seen map[string]string, path string, v any) {
	kind := ""
	switch v := v.(type) {
	case map[string]any:
		kind = "object"
		if !slices.Contains(openFields, path) {
			for name, inner := range v {
				shape(seen, strings.TrimPrefix(path+"."+name, "."), inner)
			}
		}
	case []any:
		kind = "array"
		for _, inner := range v {
			shape(seen, path+"[]", inner)
		}
	default:
		kind = map[string]string{"string": "string", "float64": "number", "bool": "boolean", "<nil>": "null"}[fmt.Sprintf("%T", v)]
	}
	if path == "" || strings.HasSuffix(path, "[]") && kind == "object" {
		return
	}
	seen[path] = kind
}

// shapeRows reads the table of a command under "JSON of views".
func shapeRows(page, command string) (fields map[string]string, rare map[string]bool) {
	_, section, _ := strings.Cut(page, "\n### `"+command+" --json`\n")
	section, _, _ = strings.Cut(section, "\n#")
	fields, rare = map[string]string{}, map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (\\w+)(, rare)? \\|").FindAllStringSubmatch(section, -1) {
		fields[row[1]], rare[row[1]] = row[2], row[3] != ""
	}
	return fields, rare
}
