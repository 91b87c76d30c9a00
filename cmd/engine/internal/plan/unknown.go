package plan

import (
	"strings"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/dsl/rung"
)

// rungWords are the words for each reaction to an unknown outcome (package rung).
var rungWords = map[rung.Rung]string{
	rung.Ask: "ask", rung.Repeat: "repeat", rung.UndoFirst: "undo and repeat", rung.Catch: "go on, caught",
	rung.Fail: "fail", rung.UndoByKey: "undo by key", rung.Undo: "undo", rung.Learn: "learn the output and undo",
	rung.Park: "park",
}

// afterUnknown returns the reactions to an unknown outcome of a step, in order. The parameter
// `settings` is nil if the settings are known only in a run.
func afterUnknown(wf *dsl.Workflow, s *dsl.Step, settings *dsl.Settings) []rung.Rung {
	if s.Child != nil {
		// A child run has no unknown outcome: the engine knows how it has ended.
		return nil
	}
	var r dsl.Retry
	if settings != nil {
		r = settings.Retry
	}
	return wf.AfterUnknown(s, r)
}

func rungsText(rungs []rung.Rung) string {
	words := make([]string, len(rungs))
	for i, r := range rungs {
		words[i] = rungWords[r]
	}
	return strings.Join(words, ", then ")
}

// UnknownOutcomes returns the reactions to an unknown outcome, for each workflow and each step
// of a definition.
func UnknownOutcomes(def *dsl.Definition) map[string]map[string][]rung.Rung {
	out := map[string]map[string][]rung.Rung{}
	for _, name := range def.All() {
		wf := def.Workflow(name)
		steps := map[string][]rung.Rung{}
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

// PrintUnknown prints, for each step, the reactions to an unknown outcome.
func PrintUnknown(a *cli.App, def *dsl.Definition) error {
	outcomes := UnknownOutcomes(def)
	told := false
	for _, name := range def.All() {
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
