package console

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/history"
	"github.com/saga-engine/engine/cmd/engine/internal/module"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/engine/machine"
)

// Options are the flags of `engine console`.
type Options struct {
	Workflow string
	Run      string // name or unique key of a run; "" = evaluate without a run
	Values   []module.Value
	Agents   module.AgentFlags
}

// names holds the names that the user may write in an expression, and their values.
type names struct {
	flow  *dsl.Workflow
	scope *dsl.Scope
	about string // sentence for the user that says where the names come from
	// The function `named` changes the file names in errors to paths that the user can open.
	named func(diag.Diagnostics) diag.Diagnostics
}

// inRun reports whether step.* and run.* have values.
func (n *names) inRun() bool { return n.scope.Step != nil }

// namesOf returns the names of a run if --run is given. Otherwise it returns the names of the
// module at `path`.
func namesOf(ctx context.Context, a *cli.App, path string, o Options) (*names, error) {
	if o.Run != "" {
		return namesOfRun(ctx, a, path, o)
	}
	r, err := module.NewRequest(ctx, a, path, o.Workflow, o.Values, o.Agents)
	if err != nil {
		return nil, err
	}
	return &names{
		flow: r.Workflow, scope: &dsl.Scope{Vars: r.Vars}, named: r.Named,
		about: fmt.Sprintf("Workflow %s without a run: var, local and functions have values.", r.Workflow.Name),
	}, nil
}

// around returns a function that adds a hint to errors about values that the run of a group does
// not have. The hint names the parent of the group's run, because the parent has the value. The
// parameter `parent` is the name of this parent; "" = there is none.
func around(path, parent string) func(diag.Diagnostics) diag.Diagnostics {
	return func(found diag.Diagnostics) diag.Diagnostics {
		for i := range found {
			if found[i].Summary == diag.NotInGroup && parent != "" {
				found[i].Detail += fmt.Sprintf(" Ask the run around it: `engine console %s --run %s`.", words.Quote(path), words.Quote(parent))
			}
		}
		return found
	}
}

// namesOfRun returns the names of a run. It reads no workflow files, because the state has the
// definition of the run. The parameter `path` only says where the state is.
func namesOfRun(ctx context.Context, a *cli.App, path string, o Options) (*names, error) {
	if o.Workflow != "" || len(o.Values) > 0 {
		return nil, cli.Failed("Invalid flag", "With --run the run's own workflow and variables are used: --workflow, --var and --var-file cannot be combined with it.")
	}
	m, err := module.Locate(a, path)
	if err != nil {
		return nil, err
	}
	s, err := session.OpenReader(ctx, a, filepath.FromSlash(m.Shown), m.Shown)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	row, err := history.Find(ctx, a, s, o.Run)
	if err != nil {
		return nil, err
	}
	r, err := history.Read(ctx, s, row)
	if err != nil {
		return nil, err
	}
	return &names{
		flow: r.Flow, scope: new(machine.Scratch).Scope(r.Flow, r.State), named: around(m.Shown, r.State.Run().Parent.Name),
		about: fmt.Sprintf("Run %s of workflow %s as it is now (%s), with the definition that the run keeps.",
			render.Clean(row.Name), r.Flow.Name, r.State.Status()),
	}, nil
}
