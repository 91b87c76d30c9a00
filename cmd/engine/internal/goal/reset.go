package goal

import (
	"context"
	"errors"
	"strings"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/goals"
)

// Reset frees the key of a goal that was reached, so that a new run can start. The store records
// who has reset the goal, and why.
func Reset(ctx context.Context, a *cli.App, workflow, key, reason string) error {
	if reason = strings.TrimSpace(reason); reason == "" || len(reason) > goals.MaxText {
		return cli.Failed("Missing reason", "Say why the goal may be reached again: --reason TEXT, at most %d bytes. The text is kept.", goals.MaxText)
	}
	s, role, err := open(ctx, a)
	if err != nil {
		return err
	}
	defer s.Close()
	g, err := role.ResetGoal(ctx, goals.Reset{Workflow: workflow, Key: key, By: cli.UserName(), Reason: reason})
	name := words.Quote(render.Clean(g.Name))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return cli.Failed("Unknown key", "No run of workflow %q has the unique key %q in %s. `engine goal list` shows the keys.", workflow, key, s.Shown)
	case errors.Is(err, goals.ErrOpen) && g.RunState.Final():
		next := words.Quote(render.Clean(g.NextName))
		return cli.Failed("Run is open", "Run %s waits for the key and takes it now, so there is no goal to reset. To end the run: engine cancel %s", next, next)
	case errors.Is(err, goals.ErrOpen):
		return cli.Failed("Run is open", "Run %s holds the key and is %s, so there is no goal to reset. To end the run: engine cancel %s", name, g.RunState, name)
	case errors.Is(err, goals.ErrNotReached):
		return cli.Failed("Goal is not reached", "Run %s is %s and does not hold the key. A new run can start now.", name, g.RunState)
	case errors.Is(err, goals.ErrEver):
		return cli.Failed("One run for ever", `The workflow has unique { scope = "ever" }, and run %s had the key. Nothing frees it. Use another key.`, name)
	case err != nil:
		return s.Wrap("reset the goal", err)
	}
	if a.JSON {
		return a.PrintJSON(map[string]any{"workflow": workflow, "key": key, "run": g.Name, "reached_at": timeJSON(g.ReachedAt), "reason": reason})
	}
	return a.Print("The goal of key %s was reset. Run %s had reached it. A new run can start now.\n", render.Clean(key), name)
}
