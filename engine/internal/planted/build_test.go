package planted

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestEntriesBuild compiles each fault. One that does not compile is caught by no test,
// and a sample would rarely show it. Faults in different files are compiled together. It
// takes some minutes, so it does so with MUTANTS=build only; `make mutants` sets that.
func TestEntriesBuild(t *testing.T) {
	if os.Getenv("MUTANTS") != "build" {
		t.Log("MUTANTS=build compiles every fault")
		return
	}
	for waiting := all(); len(waiting) > 0; {
		sources, of := map[string]string{}, map[string]string{} // by file: its text, and its fault
		var rest []listed
		for _, f := range waiting {
			changed, err := f.plant()
			if err != nil {
				t.Errorf("%s: %v", f.name, err)
				continue
			}
			if meets(of, changed) {
				rest = append(rest, f)
				continue
			}
			for file, source := range changed {
				sources[file], of[file] = source, f.area+"/"+f.name
			}
		}
		waiting = rest
		for len(sources) > 0 {
			bad := compile(t, sources, of)
			if len(bad) == 0 {
				break
			}
			for _, file := range bad { // packages that import this file's package were not compiled
				delete(sources, file)
			}
		}
	}
}

// meets reports whether a change is about one of the files.
func meets(of, changed map[string]string) bool {
	for file := range changed {
		if of[file] != "" {
			return true
		}
	}
	return false
}

// compile compiles everything with the sources in place of the files, and returns the
// files that do not compile.
func compile(t *testing.T, sources, of map[string]string) (bad []string) {
	t.Helper()
	list := overlay(t, sources)
	cmd := exec.CommandContext(t.Context(), "go", "build", "-overlay", list, "./...")
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	var o struct{ Replace map[string]string }
	if text, err := os.ReadFile(list); err != nil || json.Unmarshal(text, &o) != nil {
		t.Fatalf("%s: %v", list, err)
	}
	for file, to := range o.Replace {
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, to+":") || strings.Contains(line, filepath.Base(to)+":") {
				t.Errorf("%s does not compile: %s", of[file], strings.TrimSpace(line))
				bad = append(bad, file)
				break
			}
		}
	}
	if len(bad) == 0 {
		t.Fatalf("%v\n%s", err, out)
	}
	return bad
}
