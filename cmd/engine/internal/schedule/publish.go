package schedule

import (
	"context"
	"errors"
	"fmt"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/engines"
	"github.com/saga-engine/engine/cmd/engine/internal/module"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/store/schedules"
)

// PublishOptions are the flags of `engine publish`.
type PublishOptions struct {
	Workflow string
	Values   []module.Value
	Agents   module.AgentFlags
}

// Publish stores the definition at a path. It makes this definition the published definition of its
// workflows.
func Publish(ctx context.Context, a *cli.App, path string, o PublishOptions) error {
	l, err := module.Link(ctx, a, path, o.Agents)
	if err != nil {
		return err
	}
	p := engine.Publication{Definition: l.Def, By: cli.UserName()}
	if o.Workflow != "" {
		wf, err := module.Choose(l.Def, o.Workflow)
		if err != nil {
			return err
		}
		p.Workflows = []string{wf.Name}
	}
	if p.Assigned, err = module.Assignments(a, l.Module, o.Values); err != nil {
		return err
	}
	s, err := session.OpenJoining(ctx, a, l.Dir, l.Shown)
	if err != nil {
		return err
	}
	defer s.Close()
	session.NoteState(a, s)
	rows, err := engine.Publish(ctx, engines.Visitor(a, s, engine.Options{}), p)
	var vars *engine.VariableError
	var sel *engine.SelectionError
	switch {
	case errors.As(err, &vars):
		return cli.Failed("Variables without valid values", "%s", vars)
	case errors.Is(err, engine.ErrNoSelections):
		return noSelections(s)
	case errors.As(err, &sel):
		block := fmt.Sprintf("Schedule %q", sel.Schedule)
		if sel.OnEvent != "" {
			block = fmt.Sprintf("on_event %q", sel.OnEvent)
		}
		return cli.Failed("Selection refused by the database", "%s of workflow %q: %s.", block, sel.Workflow, sel.Err)
	case err != nil:
		return s.Wrap("publish", err)
	}
	names := p.Workflows
	if names == nil {
		names = l.Def.Names()
	}
	if a.JSON {
		return a.PrintJSON(map[string]any{"workflows": names, "digest": l.Def.Digest(), "schedules": listed(rows)})
	}
	for _, name := range names {
		if err := a.Print("Published %s.\n", name); err != nil {
			return err
		}
	}
	if len(rows) == 0 {
		return nil
	}
	if err := printRows(a, rows); err != nil {
		return err
	}
	return warnIdle(ctx, a, s)
}

// warnIdle warns if no living engine works on the state. Without an engine, no tick starts a run.
func warnIdle(ctx context.Context, a *cli.App, s *session.Session) error {
	members, err := s.Store.Live(ctx)
	if err != nil {
		return s.Wrap("look for engines", err)
	}
	if len(members) == 0 && !s.Locked {
		a.Note("Warning: no engine works on this state now, so no tick starts a run. Start one with `engine serve`.")
	}
	return nil
}

// Withdraw removes a published workflow and its schedules.
func Withdraw(ctx context.Context, a *cli.App, workflow string) error {
	s, role, err := open(ctx, a)
	if err != nil {
		return err
	}
	defer s.Close()
	found, err := role.Withdraw(ctx, workflow)
	switch {
	case err != nil:
		return s.Wrap("withdraw a workflow", err)
	case !found:
		return cli.Failed("Unknown workflow", "No workflow %q is published in %s. `engine schedule list` shows those that are.", workflow, s.Shown)
	case a.JSON:
		return a.PrintJSON(map[string]any{"workflow": workflow})
	}
	return a.Print("Withdrew %s. Its schedules start no more runs; its open runs continue.\n", workflow)
}

// open opens the state of --dsn and returns it with its schedules.
func open(ctx context.Context, a *cli.App) (*session.Session, schedules.Store, error) {
	s, err := session.OpenSpeaker(ctx, a)
	if err != nil {
		return nil, nil, err
	}
	role, ok := schedules.Of(s.Store)
	if !ok {
		s.Close()
		return nil, nil, engine.ErrNoSchedules
	}
	return s, role, nil
}
