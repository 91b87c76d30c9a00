package planted

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	// testLimit is how long the tests of one entry may take. A fault that makes
	// them hang is caught too.
	testLimit = 4 * time.Minute
	// sampleTime is for how long `make test` begins to plant further faults.
	sampleTime = 15 * time.Second
	// sameMost is how many of a hundred entries may be said to change nothing.
	sameMost = 5
)

// A listed fault knows its area.
type listed struct {
	fault
	area string
}

// all returns every entry, in the same order each time.
func all() (out []listed) {
	for _, area := range slices.Sorted(maps.Keys(areas)) {
		for _, f := range areas[area] {
			out = append(out, listed{f, area})
		}
	}
	return out
}

// TestEntriesFit checks each entry against the source, without planting it.
func TestEntriesFit(t *testing.T) {
	names, same := map[string]bool{}, 0
	for _, f := range all() {
		if names[f.name] {
			t.Errorf("%s: two entries have this name", f.name)
		}
		names[f.name] = true
		if _, err := f.plant(); err != nil {
			t.Errorf("%s: %v", f.name, err)
		}
		switch {
		case f.same != "" && len(f.by) > 0:
			t.Errorf("%s: an entry that changes nothing has no test that catches it", f.name)
		case f.same != "":
			same++
		case len(f.by) == 0:
			t.Errorf("%s: no test catches it: name one, or say in same why nothing can be seen of it", f.name)
		}
		for _, by := range f.by {
			if err := by.exists(); err != nil {
				t.Errorf("%s: %v", f.name, err)
			}
		}
	}
	if n := len(names); same*100 > n*sameMost {
		t.Errorf("%d of %d entries are said to change nothing, at most %d %% may", same, n, sameMost)
	}
}

// testFunc finds the tests that a file declares.
var testFunc = regexp.MustCompile(`(?m)^func (Test\w*)\(`)

// exists reports whether the package has a test that the pattern's first part
// matches.
func (by test) exists() error {
	first, _, _ := strings.Cut(by.run, "/")
	pattern, err := regexp.Compile(first)
	if err != nil {
		return fmt.Errorf("pattern %q: %w", by.run, err)
	}
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(by.pkg), "*_test.go"))
	if err != nil {
		return err
	}
	for _, path := range files {
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range testFunc.FindAllSubmatch(source, -1) {
			if pattern.Match(m[1]) {
				return nil
			}
		}
	}
	return fmt.Errorf("package %s has no test that matches %q", by.pkg, first)
}

// T30: TestPlanted plants faults one at a time and runs the tests that must catch
// them. MUTANTS=all plants all of them. Otherwise it is a sample, always the same one: no
// further fault is planted after sampleTime.
func TestPlanted(t *testing.T) {
	faults, whole := all(), os.Getenv("MUTANTS") == "all"
	var until time.Time
	if !whole {
		rand.New(rand.NewPCG(1, 1)).Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
		t.Logf("a sample of the %d faults; MUTANTS=all plants all of them", len(faults))
		until = time.Now().Add(sampleTime)
	}
	passes := map[test]bool{}
	for _, f := range faults {
		if f.same != "" || !whole && time.Now().After(until) {
			continue
		}
		t.Run(f.area+"/"+strings.ReplaceAll(f.name, "/", "_"), func(t *testing.T) {
			changed, err := f.plant()
			if err != nil {
				t.Fatal(err)
			}
			list := overlay(t, changed)
			for _, by := range f.by {
				if whole && !passes[by] {
					if out, verdict := by.try(t, ""); verdict != nil {
						t.Fatalf("%s %s fails without the fault: %v\n%s", by.pkg, by.run, verdict, out)
					}
					passes[by] = true
				}
				switch out, verdict := by.try(t, list); {
				case errors.Is(verdict, errCaught):
					t.Log(verdict)
					return
				case verdict != nil:
					t.Fatalf("the fault was not tried: %v\n%s", verdict, out)
				}
			}
			t.Errorf("the fault survives %v", f.by)
		})
	}
}

// errCaught says that a test has failed.
var errCaught = errors.New("caught")

// try runs the tests with the files of an overlay; "" = with the real ones. It
// returns nil if they pass, an error that wraps errCaught if one of them fails,
// and another error if they did not run.
func (by test) try(t *testing.T, overlay string) (out string, verdict error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "test", "-vet=off", "-count=1", "-failfast", "-timeout", testLimit.String(), "-run", by.run, "./"+by.pkg)
	cmd.Dir = root
	cmd.WaitDelay = 10 * time.Second
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	// In the environment, so that binaries which the tests build have the fault too.
	cmd.Env = append(os.Environ(), "MUTANTS=")
	if overlay != "" {
		cmd.Env = append(cmd.Env, "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -overlay="+overlay))
	}
	text, err := cmd.CombinedOutput()
	out = string(text)
	switch {
	case err == nil && strings.Contains(out, "no tests to run"):
		return out, fmt.Errorf("%s has no test that matches %q", by.pkg, by.run)
	case err == nil:
		return out, nil
	case strings.Contains(out, "[build failed]"), strings.Contains(out, "[setup failed]"):
		return out, errors.New("it does not compile")
	}
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "--- FAIL: ") || strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			return out, fmt.Errorf("%w: %s", errCaught, line)
		}
	}
	if ctx.Err() != nil {
		return out, fmt.Errorf("%w: nothing came for %v", errCaught, testLimit)
	}
	return out, err
}
