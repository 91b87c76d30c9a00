package migrate

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/exit"
	"github.com/saga-engine/engine/cmd/engine/internal/history"
	"github.com/saga-engine/engine/cmd/engine/internal/module"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/internal/verbs"
	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/moving"
)

// Options are the flags of `engine migrate`.
type Options struct {
	To, Workflow, Reason string
	All, Yes, DryRun     bool
	Agents               module.AgentFlags
}

// Check returns an error if flags are missing or exclude each other. The parameter `runs` is the
// number of arguments RUN.
func (o Options) Check(runs int) error {
	switch {
	case o.To == "":
		return cli.Failed("Missing flag", "Say with --to PATH where the new definition is.")
	case o.All && runs > 0:
		return cli.Failed("Invalid flag", "--all takes all open runs of a workflow, so name no RUN.")
	case o.All && o.Workflow == "":
		return cli.Failed("Missing flag", "--all needs --workflow: the workflow whose runs are moved.")
	case !o.All && runs == 0:
		return cli.Failed("Missing argument", "Name the RUN to move, or use --all --workflow WORKFLOW.")
	case !o.All && o.Workflow != "":
		return cli.Failed("Invalid flag", "--workflow belongs to --all: one RUN keeps its workflow.")
	case o.Yes && o.DryRun:
		return cli.Failed("Invalid flag", "--yes and --dry-run exclude each other.")
	}
	return verbs.CheckReason(o.Reason, "")
}

// One moves one run. It shows the differences first, except with --json and --yes. Without --yes it
// asks the person first. With --dry-run, or with --json and without --yes, it only shows the
// differences.
func One(ctx context.Context, a *cli.App, run string, o Options) error {
	next, err := module.Link(ctx, a, o.To, o.Agents)
	if err != nil {
		return err
	}
	return verbs.Send(ctx, a, verbs.Verb{Name: "migrate", Run: run,
		Event: func(ctx context.Context, s *session.Session, r *history.Run, by string) (machine.Event, error) {
			plan, err := compare(ctx, s, r, next.Def, o)
			if err != nil {
				return nil, err
			}
			if a.JSON && !o.Yes {
				return nil, oneJSON(a, r, plan)
			}
			if !a.JSON {
				if err := write(a, r, plan); err != nil {
					return nil, err
				}
			}
			switch {
			case len(plan.Refusals) > 0:
				return nil, refusal(r, plan)
			case o.DryRun:
				a.Note("Nothing was changed. Without --dry-run the command asks, and then moves the run.")
				return nil, nil
			}
			if !o.Yes {
				if err := ask(a); err != nil {
					return nil, err
				}
			}
			return event(ctx, s, next.Def, r.Flow.Name, by, o.Reason)
		}})
}

// compare compares a run with its workflow in the new definition. The run of a group, or of a
// library's workflow, cannot be moved. For such a run, the plan has only the reason, and the reason
// names the run that can be moved.
func compare(ctx context.Context, s *session.Session, r *history.Run, next *dsl.Definition, o Options) (moving.Plan, error) {
	if r.Flow.Inner {
		k, err := history.KinOf(ctx, s, r)
		if err != nil {
			return moving.Plan{}, err
		}
		if k != nil {
			return moving.Plan{Refusals: []moving.Refusal{inner(r, k, o.To)}}, nil
		}
	}
	wf, err := module.Choose(next, r.Flow.Name)
	if err != nil {
		return moving.Plan{}, err
	}
	return moving.Compare(r.Flow, wf, r.State.Run(), r.State.Nodes(), moving.Moment{At: time.Now(), Signals: r.State.EarlySignals()}), nil
}

// inner returns why the run of a group, or of a library's workflow, cannot be moved. The parameter
// `to` is the value of the flag --to.
func inner(r *history.Run, k *history.Kin, to string) moving.Refusal {
	why, later := fmt.Sprintf("it is %s, with workflow %s of a library, and keeps", k.What, r.Flow.Name), "child runs"
	if k.Group {
		why, later = fmt.Sprintf("it is %s, and a group keeps", k.What), "groups"
	}
	return moving.Refusal{
		Reason: why + " the definition with which it began",
		Next: fmt.Sprintf("`engine migrate %s --to %s` moves run %s, and %s that start later have the new definition",
			history.Arg(k.Movable), words.Quote(to), render.Clean(k.Movable.Name), later),
	}
}

// event stores the new definition and returns the event that moves a run to it.
func event(ctx context.Context, s *session.Session, def *dsl.Definition, workflow, by, reason string) (machine.Event, error) {
	ids, err := s.Defs.Put(ctx, def)
	if err != nil {
		return nil, s.Wrap("store the definition", err)
	}
	return machine.Migrated{Workflow: int32(ids[workflow]), Digest: def.Digest(), By: by, Reason: reason}, nil
}

// ask asks the person whether to move the run. It returns an error unless the answer is "yes".
func ask(a *cli.App) error {
	if err := a.Print("Move the run to this definition? Only \"yes\" goes on: "); err != nil {
		return err
	}
	answer, err := bufio.NewReader(a.Stdin).ReadString('\n')
	if strings.TrimSpace(answer) != "yes" {
		return cli.Failed("Not confirmed", "The run keeps its definition. With --yes the command does not ask.")
	}
	if err != nil && !errors.Is(err, io.EOF) { // the last line may have no line break
		return fmt.Errorf("read the answer: %w", err)
	}
	return nil
}

// refusal returns the error that a run cannot be moved, with all reasons. If no reason names a
// command, the text ends with a sentence that names a command.
func refusal(r *history.Run, plan moving.Plan) error {
	var lines []string
	for _, why := range plan.Refusals {
		lines = append(lines, "- "+render.Clean(why.String())+".")
	}
	text := strings.Join(lines, "\n")
	if !strings.Contains(text, "`engine ") {
		text += fmt.Sprintf("\n`engine explain %s` shows what the run accepts now.", history.Arg(r.Row))
	}
	return cli.Failed("Run cannot be moved", "Run %s keeps its definition:\n%s", render.Clean(r.Row.Name), text)
}

// write shows what the move would do with each step, and with the values of variables.
func write(a *cli.App, r *history.Run, plan moving.Plan) error {
	if len(plan.Steps) == 0 {
		return nil
	}
	table := render.Table{Head: []string{"STEP", "STATUS", "CHANGE"}}
	for _, s := range plan.Steps {
		table.Add(s.Name, statusOf(s), change(s))
	}
	if err := a.Print("Run %s, workflow %s\n\n", render.Clean(r.Row.Name), r.Flow.Name); err != nil {
		return err
	}
	if err := table.Write(a.Stdout); err != nil {
		return fmt.Errorf("write to stdout: %w", err)
	}
	if err := a.Print("\n"); err != nil {
		return err
	}
	return writeVariables(a, variables(r, plan))
}

func statusOf(s moving.Step) string {
	if s.Fate == moving.Added {
		return "-"
	}
	return s.State.String()
}

// change returns words that say what the move does with a step.
func change(s moving.Step) string {
	switch s.Fate {
	case moving.Added:
		return "new"
	case moving.Removed:
		return "removed"
	}
	var parts []string
	if s.Was != "" {
		parts = append(parts, "was "+s.Was)
	}
	if len(s.Changed) > 0 {
		parts = append(parts, "changed: "+strings.Join(s.Changed, ", "))
	}
	switch {
	case s.Anew && s.Fresh:
		parts = append(parts, "takes its new block")
	case s.Anew:
		parts = append(parts, "starts again")
	case len(s.Changed) > 0 && s.Ended:
		parts = append(parts, "keeps its result")
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, "; ")
}

// oneJSON prints the comparison as JSON.
func oneJSON(a *cli.App, r *history.Run, plan moving.Plan) error {
	err := a.PrintJSON(map[string]any{
		"run": r.Row.Name, "workflow": r.Flow.Name, "can_migrate": len(plan.Refusals) == 0, "dry_run": true,
		"steps": stepsJSON(plan), "variables": variablesJSON(variables(r, plan)), "refusals": refusalsJSON(plan),
	})
	if err != nil {
		return err
	}
	return leave(len(plan.Refusals))
}

// leave returns the error with which the command ends. The parameter `bad` is the number of
// runs that cannot be moved, or for a single run the number of reasons. If `bad` is 0, leave
// returns nil.
func leave(bad int) error {
	if bad > 0 {
		return exit.Code(exit.Failed)
	}
	return nil
}

func stepsJSON(plan moving.Plan) []map[string]any {
	steps := []map[string]any{}
	for _, s := range plan.Steps {
		m := map[string]any{"step": s.Name, "change": s.Fate.String()}
		if s.Fate != moving.Added {
			m["state"] = s.State.String()
		}
		if s.Was != "" {
			m["was"] = s.Was
		}
		if len(s.Changed) > 0 {
			m["changed"] = s.Changed
		}
		if s.Anew {
			m["starts_again"] = true
		}
		steps = append(steps, m)
	}
	return steps
}

func refusalsJSON(plan moving.Plan) []map[string]any {
	out := []map[string]any{}
	for _, why := range plan.Refusals {
		m := map[string]any{"reason": why.Reason}
		if why.Step != "" {
			m["step"] = why.Step
		}
		if why.Next != "" {
			m["next"] = why.Next
		}
		out = append(out, m)
	}
	return out
}
