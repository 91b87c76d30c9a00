package show

import (
	"strconv"
	"strings"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/history"
	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine/story"
)

// PrintSource prints the source files of a run's definition.
func PrintSource(a *cli.App, r *history.Run) error {
	if a.JSON {
		files := map[string]string{}
		for name, src := range r.Source {
			files[name] = string(src)
		}
		return a.PrintJSON(map[string]any{"run": r.Row.Name, "definition": r.Row.Digest, "files": files})
	}
	for _, name := range words.Sorted(r.Source) {
		if err := a.Print("# %s\n%s\n", render.Clean(name), render.Visible(strings.TrimRight(string(r.Source[name]), "\n"))); err != nil {
			return err
		}
	}
	return nil
}

// PrintEvents prints what happened to a run, one event on each line.
func PrintEvents(a *cli.App, r *history.Run) error {
	table := render.Table{Head: []string{"SEQ", "TIME", "EVENT"}}
	for i, f := range r.Facts {
		table.Add(strconv.Itoa(i+1), f.At.UTC().Format("2006-01-02 15:04:05.000Z"), render.Sentence(f, -1))
	}
	return table.Write(a.Stdout)
}

// PrintRun prints the run itself, its steps, its calls and its outputs.
func PrintRun(a *cli.App, r *history.Run) error {
	if err := a.Print("%s\n", Heading(r)); err != nil {
		return err
	}
	if err := tablesOf(r).stepTable().Write(a.Stdout); err != nil {
		return err
	}
	if r.Omitted > 0 {
		if err := a.Print("The steps of %s of groups are left out. `engine show` with the name of such a run shows them.\n",
			render.Count(r.Omitted, "child run")); err != nil {
			return err
		}
	}
	calls := tablesOf(r).callTable()
	if calls.Len() > 0 {
		if err := a.Print("\n"); err != nil {
			return err
		}
		if err := calls.Write(a.Stdout); err != nil {
			return err
		}
	}
	outputs := story.KnownOutputs(r.State, r.Flow)
	if len(outputs) == 0 {
		return nil
	}
	if err := a.Print("\n"); err != nil {
		return err
	}
	a.Show(render.OutputProblems(outputs))
	return a.PrintOutputs(outputs)
}
