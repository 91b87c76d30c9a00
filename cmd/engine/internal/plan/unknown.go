package plan

import (
	"strings"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/dsl"
)

// rungWords say what follows an unknown outcome.
var rungWords = map[dsl.Rung]string{
	dsl.RungAsk: "ask", dsl.RungRepeat: "repeat", dsl.RungUndoFirst: "undo and repeat", dsl.RungCatch: "go on, caught",
	dsl.RungFail: "fail", dsl.RungUndoByKey: "undo by key", dsl.RungUndo: "undo", dsl.RungLearn: "learn the output and undo",
	dsl.RungPark: "park",
}

// afterUnknown says what follows an unknown outcome of a step. settings may be
// nil, where they are known only in a run.
func afterUnknown(wf *dsl.Workflow, s *dsl.Step, settings *dsl.Settings) []dsl.Rung {
	var r dsl.Retry
	if settings != nil {
		r = settings.Retry
	}
	return wf.AfterUnknown(s, r)
}

func rungsText(rungs []dsl.Rung) string {
	words := make([]string, len(rungs))
	for i, r := range rungs {
		words[i] = rungWords[r]
	}
	return strings.Join(words, ", then ")
}

// UnknownOutcomes says for each workflow and step of a definition what follows
// an outcome that is not known.
func UnknownOutcomes(def *dsl.Definition) map[string]map[string][]dsl.Rung {
	out := map[string]map[string][]dsl.Rung{}
	for _, name := range def.Names() {
		wf := def.Workflow(name)
		steps := map[string][]dsl.Rung{}
		for _, s := range wf.Steps {
			settings, err := s.Settings(&dsl.Scope{})
			if err != nil {
				settings = nil
			}
			if rungs := afterUnknown(wf, s, settings); len(rungs) > 0 {
				steps[s.Name] = rungs
			}
		}
		out[name] = steps
	}
	return out
}

// PrintUnknown prints, for each step, what follows an unknown outcome.
func PrintUnknown(a *cli.App, def *dsl.Definition) error {
	outcomes := UnknownOutcomes(def)
	told := false
	for _, name := range def.Names() {
		for _, s := range def.Workflow(name).Steps {
			rungs, ok := outcomes[name][s.Name]
			if !ok {
				continue
			}
			if !told {
				told = true
				if err := a.Print("If the outcome of a call is not known (a timeout, a lost agent):\n"); err != nil {
					return err
				}
			}
			if err := a.Print("  %s, step %s: %s\n", name, s.Name, rungsText(rungs)); err != nil {
				return err
			}
		}
	}
	return nil
}
