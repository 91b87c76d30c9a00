package machine

import (
	"os"
	"testing"
)

// moveMutants are faults in the rules of engine migrate. The tests of migrations must catch each.
var moveMutants = []mutant{
	{"a moved step loses its key", "../../dsl/internal/noun/renumbered.go",
		"s.keyName = was.KeyName()", "s.keyName = s.Name", nil},
	{"a new step takes the key of another one", "../../dsl/internal/noun/renumbered.go",
		"s.keyName = s.Name; taken[s.Name]", "s.keyName = s.Name; false", nil},
	{"older instances are not counted as undone", "correct.go",
		"d.run.Done, d.run.UndonePast = done, past", "d.run.Done = done", nil},
	{"dependencies are not counted again", "correct.go",
		"d.edit(i).Deps = deps", "d.edit(i).Deps = 0 * deps", nil},
	{"a migration starts calls", "correct.go",
		"d.wf, d.still = plan.Flow, true", "d.wf, d.still = plan.Flow, false", nil},
	{"a step that starts again keeps its key", "correct.go",
		"n.Wipe(true)\n\t}\n\tn.State, n.Stated", "n.Wipe(false)\n\t}\n\tn.State, n.Stated", nil},
	{"the agent's wish to be left alone is forgotten", "correct.go",
		"Rest: n.Fwd.Rest}", "Rest: 0}", nil},
	{"a finished step may have another undo", "../moving/plan.go",
		"aspect.Kind, aspect.Action, aspect.Undo, ", "aspect.Kind, aspect.Action, ", nil},
	{"a finished step may vanish", "../moving/plan.go",
		"n.State != status.StepSkipped && !untouched(n) && !harmless(n) || n.Clearing:", "n.Clearing:", nil},
	{"a call in flight does not stand in the way", "../moving/plan.go",
		"\tcase c.open(n):\n\t\tc.inFlight(s, \"the step has changed (",
		"\tcase false:\n\t\tc.inFlight(s, \"the step has changed (", nil},
	{"the pivot may move", "../moving/plan.go",
		"if begun {", "if false {", nil},
	{"a run that is being undone is moved", "../moving/plan.go",
		"case c.run.Phase == model.PhaseUndo:", "case false:", nil},
	{"a migration loses an early signal", "../moving/signals.go",
		"if i < 0 || next >= 0 {", "if i < 0 || next >= -1 {", nil},
	{"a migration exposes a recorded result", "../moving/sensitive.go",
		"if names := exposes(was, is); len(names) > 0 {", "if names := exposes(was, is); len(names) > 9 {", nil},
	{"a migration brings a deadline that has passed", "../moving/deadline.go",
		"at != 0 && at <= model.ToInstant(c.moment.At) {", "at < 0 {", nil},
	{"the record forgets the numbers of the steps", "../internal/wire/moves.go",
		"e.int(int64(p))", "e.int(0 * int64(p))", nil},
}

// TestMutantsOfMigrations plants the faults one by one. MUTANTS=all plants all of them; without it
// only a few are planted, and the list is checked to fit the source.
func TestMutantsOfMigrations(t *testing.T) {
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	all := os.Getenv("MUTANTS") == "all"
	work := t.TempDir()
	for k, m := range moveMutants {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			overlay := plant(t, m, dir, work, k)
			if all || k%20 == 1 {
				hunt(t, overlay, "^(TestMigrate.*|TestPromisesOfAMovedRun)$")
			}
		})
	}
}
