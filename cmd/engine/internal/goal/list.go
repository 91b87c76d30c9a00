package goal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine/store/goals"
)

// ListOptions are the flags of `engine goal list`.
type ListOptions struct {
	Workflow string // "" = all workflows
	Limit    int    // largest number of keys
}

// List prints the unique keys and the runs that hold them.
func List(ctx context.Context, a *cli.App, o ListOptions) error {
	if o.Limit < 1 {
		return cli.Failed("Invalid limit", "--limit must be at least 1.")
	}
	s, role, err := open(ctx, a)
	if err != nil {
		return err
	}
	defer s.Close()
	all, err := role.Goals(ctx, goals.Filter{Workflow: o.Workflow, Limit: o.Limit + 1})
	if err != nil {
		return s.Wrap("list goals", err)
	}
	more := len(all) > o.Limit
	all = all[:min(len(all), o.Limit)]
	if a.JSON {
		out := []map[string]any{}
		for _, g := range all {
			out = append(out, listed(g))
		}
		return a.PrintJSON(map[string]any{"goals": out, "more": more})
	}
	if len(all) == 0 {
		a.Note("No run has a unique key. Give a workflow a block: unique { key = ... }")
		return nil
	}
	table := render.Table{Head: []string{"WORKFLOW", "KEY", "STATE", "RUN", "REACHED", "FREE", "RESETS"}}
	for _, g := range all {
		table.Add(g.Workflow, render.Clean(g.Key), string(g.State), runText(g), stamp(g.ReachedAt), freeText(g), resetsText(g))
	}
	if err := table.Write(a.Stdout); err != nil {
		return fmt.Errorf("write to stdout: %w", err)
	}
	if more {
		a.Note("There are more keys. Show them with --limit or --workflow.")
	}
	return nil
}

// open opens the state of --dsn and returns it with its goals.
func open(ctx context.Context, a *cli.App) (*session.Session, goals.Keeper, error) {
	s, err := session.OpenSpeaker(ctx, a)
	if err != nil {
		return nil, nil, err
	}
	role, ok := goals.Of(s.Store)
	if !ok {
		s.Close()
		return nil, nil, errors.New("this state does not keep goals")
	}
	return s, role, nil
}

// runText names the run of a key, and the run that waits for the key. If retention has removed
// a run, its name is in brackets.
func runText(g goals.Goal) string {
	name := render.Clean(g.Name)
	if g.Gone {
		name = "(" + name + ")"
	}
	if g.Next != 0 {
		name += ", then " + render.Clean(g.NextName)
	}
	return name
}

// freeText says when another run of the key can start.
func freeText(g goals.Goal) string {
	switch {
	case g.State == goals.Free:
		return "now"
	case !g.FreeAt.IsZero():
		return words.Stamp(g.FreeAt)
	case g.State == goals.Reached && g.Resettable() == nil:
		return "after a reset"
	case g.State == goals.Reached || g.State == goals.Used:
		return "never"
	}
	return "-"
}

// resetsText says how often a goal was reset, and who did so the last time.
func resetsText(g goals.Goal) string {
	if g.Resets == 0 {
		return "-"
	}
	return fmt.Sprintf("%d, last by %s: %s", g.Resets, render.Clean(g.LastReset.By), render.Clean(g.LastReset.Reason))
}

// listed returns a goal as a JSON object.
func listed(g goals.Goal) map[string]any {
	m := map[string]any{
		"workflow": g.Workflow, "key": g.Key, "state": string(g.State), "scope": g.KeyScope.Scope.String(), "run": g.Name, "run_status": g.RunState.String(),
		"run_removed": g.Gone, "reached_at": timeJSON(g.ReachedAt), "free_at": timeJSON(g.FreeAt), "resets": g.Resets,
	}
	if g.Next != 0 {
		m["next_run"] = g.NextName
	}
	if g.Resets > 0 {
		m["last_reset"] = map[string]any{"run": g.LastReset.Name, "at": timeJSON(g.LastReset.At), "by": g.LastReset.By, "reason": g.LastReset.Reason}
	}
	return m
}

// stamp returns a time for people; "-" = none.
func stamp(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return words.Stamp(t)
}

// timeJSON returns a time for programs; nil = none.
func timeJSON(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format(time.RFC3339Nano)
}
