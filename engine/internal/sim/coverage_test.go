package sim

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/saga-engine/engine/engine/internal/sim/flows"
)

// faultKinds are the kinds of faults that hit constructs. The tally of a world has an entry for each
// pair, such as "kill: child for_each".
var faultKinds = []string{
	"kill", "stop", "stands still", "has no Supervisor", "is cut off from agents",
	"reply twice", "reply lost", "reply late", "store lost", "verb",
}

// rarely has the constructs that faults hit in few worlds: 500 worlds need not have one. The calls
// for them are short, or few runs reach them.
var rarely = map[string]bool{
	"notify compensated": true, "notify compensation_failed": true, "notify overdue": true, "step signal": true, "group output": true,
}

// seldom has the constructs that 500 worlds need not use: few undos fail before all faults have ended,
// and few waits succeed before another step refers to their signal.
var seldom = map[string]bool{"notify compensation_failed": true, "step signal": true}

// outcomes are ends of steps that the worlds must have: constructs that never take effect prove
// nothing. The tally of a world has an entry for each, such as "outcome: no_room".
var outcomes = []string{
	"precondition_failed", "postcondition_failed", "closed", "sold_out", "refused", "deadline_exceeded", "no_room", "self.error",
	"group waits in line", "group starts with early signals",
}

// migrations says how often the worlds must at least migrate a run, and do work that begins after a
// migration. With fewer of them, the worlds prove nothing about migrations.
var migrations = map[string]int{
	"migrations": 150, "migrations of children": 30, "migrations that rename a step": 25,
	"migrations refused at once": 100, "migrations refused by the owner": 10,
	"children of moved runs": 25, "groups of moved runs": 12, "notifications of moved runs": 50,
}

// checkCoverage checks that the worlds have used each construct of package flows, and that faults have
// hit each construct and each kind of fault has struck. It also checks the numbers of the variable
// migrations. The directory has the tallies of all blocks.
func checkCoverage(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d tallies: %v", len(files), err)
	}
	used, hit, struck, ended := map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var tally map[string]int
		if err := json.Unmarshal(data, &tally); err != nil {
			t.Fatal(err)
		}
		for what, n := range tally {
			kind, construct, _ := strings.Cut(what, ": ")
			switch kind {
			case "used":
				used[construct] += n
				continue
			case "outcome":
				ended[construct] += n
				continue
			}
			struck[kind] += n
			hit[construct] += n
		}
	}
	for _, c := range flows.All {
		if used[c] == 0 && !seldom[c] || hit[c] == 0 && !rarely[c] {
			t.Errorf("%q was used %d times, and faults have hit it %d times", c, used[c], hit[c])
		}
	}
	for _, o := range outcomes {
		if ended[o] == 0 {
			t.Errorf("no step has ended with %q", o)
		}
	}
	for what, least := range migrations {
		if struck[what] < least {
			t.Errorf("%d %s, want at least %d: the simulation is void", struck[what], what, least)
		}
	}
	for _, kind := range append([]string{"engine of a child in two engines dies", "engine of a parent in two engines dies", "engines of both in two engines dies"}, faultKinds...) {
		if struck[kind] == 0 {
			t.Errorf("no fault was %q", kind)
		}
	}
}
