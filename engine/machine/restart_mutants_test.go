package machine

import (
	"os"
	"testing"
)

// restartMutants are faults in the rules of engine restart. The tests of restarts must catch each.
var restartMutants = []mutant{
	{"a step that is taken over gets new keys", "scope.go",
		"if from, name := r.Legacy(n.Step); from != nil {", "if from, name := r.Legacy(n.Step); from == r.Origin() && false {", nil},
	{"an undo sees the new run", "scope.go",
		"sc.Run.ID, sc.Run.Key, sc.Run.StartedAt, sc.Run.Trigger = from.Name,", "sc.Run.ID, sc.Run.Key, sc.Run.StartedAt, sc.Run.Trigger = d.run.Name,", nil},
	{"what was taken over does not count as done", "forward.go",
		"\t\td.run.Done++\n\t\tfor _, j := range d.wf.Steps[h.Step].Before {", "\t\tfor _, j := range d.wf.Steps[h.Step].Before {", nil},
	{"steps behind what was taken over do not start", "forward.go",
		"n == 0 || taken && int(d.get(i).Deps) == n", "n == 0 || taken && n < 0", nil},
	{"the effect is not taken over", "../moving/past.go",
		"n.Prepared, n.Known, n.Done, n.TimedOut = was.Prepared, was.Known, was.Done,", "n.Prepared, n.Known, n.Done, n.TimedOut = was.Prepared, was.Known, false,", nil},
	{"instances are not taken over", "forward.go",
		"\t\tif was.Expanded {\n\t\t\td.instances(h.Step, was)", "\t\tif was.Expanded && false {\n\t\t\td.instances(h.Step, was)", nil},
	{"the pivot is forgotten", "forward.go",
		"past.Ancestors(from, plan), plan.Passed", "past.Ancestors(from, plan), false", nil},
	{"the first run of a chain is forgotten", "../moving/past.go",
		"at, name = &older[k], key", "at, name, _ = &own, key, k", nil},
	{"an effect that was undone is taken over", "../moving/restart.go",
		"case n.Undo == model.UndoDone:\n\t\treturn effectUndone", "case n.Undo == model.UndoDone:\n\t\treturn effectStays", nil},
	{"an unknown outcome is taken over", "../moving/restart.go",
		"n.UndoDoubt > 0, n.Open():\n\t\treturn effectInDoubt", "n.UndoDoubt > 0, n.Open():\n\t\treturn effectStays", nil},
	{"an effect happens twice without a word", "../moving/restart.go",
		"case h.Effect && !s.again:", "case false:", nil},
	{"the dependents of the chosen step are taken over", "../moving/restart.go",
		"if !s.taken[j] {", "if j < 0 {", nil},
	{"an open run is restarted", "../moving/restart.go",
		"case s.run.Finished == 0:", "case false:", nil},
	{"a child is restarted", "../moving/restart.go",
		"case s.run.Parent.Run != 0:", "case false:", nil},
	{"a child that is open is refused as an open run", "../moving/restart.go",
		"case s.run.Parent.Run != 0:", "case s.run.Parent.Run != 0 && s.run.Finished != 0:", nil},
	{"a step that is taken over may have another undo", "../moving/restart.go",
		"aspect.Kind, aspect.Action, aspect.Undo, ", "aspect.Kind, aspect.Action, ", nil},
	{"a restart repeats what a child run keeps", "../moving/restart.go",
		"h.Effect = sum == effectStays || s.keeps(n)", "h.Effect = sum == effectStays", nil},
	{"a restart takes a skipped undo of a child run for certain", "../moving/restart.go",
		"case n.Kept.Has(status.KeptInDoubt):\n\t\treturn effectInDoubt", "case false:\n\t\treturn effectInDoubt", nil},
	{"what a child run keeps is not taken over", "../moving/past.go",
		"n.MayWorkUntil, n.Gen, n.Kept = was.MayWorkUntil, was.Gen, was.Kept", "n.MayWorkUntil, n.Gen, n.Kept = was.MayWorkUntil, was.Gen, 0", nil},
	{"the record forgets the steps of the old run", "../internal/wire/ancestors.go",
		"e.uint(uint64(len(a.Steps)))\n\t\tfor _, s := range a.Steps {", "e.uint(0)\n\t\tfor _, s := range a.Steps[:0] {", nil},
}

// TestMutantsOfRestarts plants the faults one by one. MUTANTS=all plants all of them; without it only
// a few are planted, and the list is checked to fit the source.
func TestMutantsOfRestarts(t *testing.T) {
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	all := os.Getenv("MUTANTS") == "all"
	work := t.TempDir()
	for k, m := range restartMutants {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			overlay := plant(t, m, dir, work, k)
			if all || k%20 == 1 {
				hunt(t, overlay, "^(TestRestart.*|TestPromisesOfARestartedRun)$")
			}
		})
	}
}
