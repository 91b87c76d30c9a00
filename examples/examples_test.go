package examples_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// embedded returns the flags for state in a directory of its own.
func embedded(t *testing.T) []string {
	return []string{"--dsn", stores["sqlite"](t)}
}

func TestHello(t *testing.T) {
	t.Parallel()
	m := apply(t, 0, append(embedded(t), "hello", "--var", "name=Ada")...)
	outputs(t, m, map[string]string{"greeting": `"Hello, Ada!"`})
}

func TestFanOut(t *testing.T) {
	t.Parallel()
	t.Run("two failures are tolerated", func(t *testing.T) {
		t.Parallel()
		m := apply(t, 0, append(embedded(t), "fan-out")...)
		outputs(t, m, map[string]string{
			"resized": `["cat","dog","fox","gnu","hen","jay"]`,
			"failed":  `{"eel":"empty_picture","ibex":"empty_picture"}`,
		})
		if n := most(m, "resize["); n != 3 {
			t.Errorf("at most %d instances were at work at once, want 3", n)
		}
	})
	t.Run("two are too many", func(t *testing.T) {
		t.Parallel()
		m := apply(t, 4, append(embedded(t), "fan-out", "--var", "tolerate=1")...)
		end := last(t, m, "run_finished")
		if end.Status != "compensated" || end.Code != "empty_picture" || end.Undone == 0 {
			t.Errorf("run_finished = %+v, want compensated after empty_picture", end)
		}
	})
}

// most returns how many instances of a step were at work at once, at most.
func most(messages []message, prefix string) int {
	at, most := map[string]bool{}, 0
	for _, m := range messages {
		if !strings.HasPrefix(m.Step, prefix) {
			continue
		}
		switch m.Type {
		case "attempt_started":
			at[m.Step] = true
			most = max(most, len(at))
		case "attempt_finished", "step_finished":
			delete(at, m.Step)
		}
	}
	return most
}

// S34: retries outlast transient errors, and an open circuit holds the step
// without costing it an attempt.
func TestRetriesAndBreaker(t *testing.T) {
	t.Parallel()
	m := apply(t, 0, append(embedded(t), "retries-and-breaker")...)
	outputs(t, m, map[string]string{"fetched": `"fetched"`, "attempts": "5", "extra": `"did without"`})
	if !slices.ContainsFunc(m, func(m message) bool { return m.Type == "step_held" && m.Step == "fetch" }) {
		t.Errorf("the open circuit held nothing: %+v", m)
	}
	// Too many errors: the step fails for good, and there is nothing to undo.
	m = apply(t, 4, append(embedded(t), "retries-and-breaker", "--var", "bad_calls=6")...)
	if end := last(t, m, "run_finished"); end.Code != "unavailable" {
		t.Errorf("run_finished = %+v, want code unavailable", end)
	}
}

func TestOwnAgent(t *testing.T) {
	t.Parallel()
	house := filepath.Join(t.TempDir(), "house")
	args := append(embedded(t), "own-agent", "--plugin-dir", filepath.Join(bin, "own"), "--var", "house="+house)
	seats := func() []string {
		t.Helper()
		entries, err := os.ReadDir(filepath.Join(house, "seats"))
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, e := range entries {
			out = append(out, e.Name())
		}
		return out
	}
	m := apply(t, 4, append(args, "--var", "card=bad")...)
	if end := last(t, m, "run_finished"); end.Code != "card_declined" || end.Undone != 2 {
		t.Errorf("run_finished = %+v, want card_declined, 2 undone", end)
	}
	if got := seats(); len(got) != 0 {
		t.Errorf("seats held after the undo: %v", got)
	}
	apply(t, 0, args...)
	if got := seats(); !slices.Equal(got, []string{"B7", "B8"}) {
		t.Errorf("seats held = %v, want B7 and B8", got)
	}
	m = apply(t, 4, append(args, "--var", `seats=["A1","B7"]`)...)
	if end := last(t, m, "run_finished"); end.Code != "taken" {
		t.Errorf("run_finished = %+v, want code taken", end)
	}
	if got := seats(); !slices.Equal(got, []string{"B7", "B8"}) {
		t.Errorf("seats held = %v, want B7 and B8", got)
	}
}

// Every example is formatted, valid without a warning, and explained.
func TestExamplesAreTidy(t *testing.T) {
	t.Parallel()
	dirs, err := filepath.Glob("*/workflow.hcl")
	if err != nil {
		t.Fatal(err)
	}
	if len(dirs) != 6 {
		t.Errorf("examples = %v, want six", dirs)
	}
	for _, path := range dirs {
		dir := filepath.Dir(path)
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			args := []string{"validate", "--strict", dir}
			if dir == "own-agent" {
				args = append(args, "--plugin-dir", filepath.Join(bin, "own"))
			}
			if r := engine(t, args...); r.code != 0 {
				t.Errorf("validate = %d\n%s%s", r.code, r.stdout, r.stderr)
			}
			if r := engine(t, "fmt", "--check", dir); r.code != 0 {
				t.Errorf("fmt --check = %d\n%s%s", r.code, r.stdout, r.stderr)
			}
			if _, err := os.Stat(filepath.Join(dir, "README.md")); err != nil {
				t.Error(err)
			}
		})
	}
}

// Each command of a README prints the output that the README shows.
func TestReadmesSayWhatIsPrinted(t *testing.T) {
	t.Parallel()
	for dir, args := range map[string][]string{
		"hello":               nil,
		"fan-out":             nil,
		"retries-and-breaker": nil,
	} {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(filepath.Join(dir, "README.md"))
			if err != nil {
				t.Fatal(err)
			}
			r := engine(t, append(append([]string{"apply"}, embedded(t)...), append(args, dir)...)...)
			if r.stdout == "" || !strings.Contains(string(text), r.stdout) {
				t.Errorf("README.md does not hold what is printed:\n%s", r.stdout)
			}
		})
	}
}
