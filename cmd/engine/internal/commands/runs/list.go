package runs

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/history"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

type listOptions struct {
	status        []string
	trigger       []string
	workflow, key string
	since         string
	limit         int
	alerts        bool
	notifications bool
}

// List returns the command `engine list`, which lists runs or alerts.
func List(a *cli.App) *cobra.Command {
	var o listOptions
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List runs, newest first",
		Long: `Lists runs, newest first. --status takes a status of a run, or one of two words that
mean several: open = all runs that have not ended; attention = all runs that need a
person. These are runs that are parked, whose undo failed, whose deadline has passed,
whose agents no living engine has, or that wait for a child run that needs a person.

--alerts lists alerts in place of runs, newest first: parked,
compensation_failed, overdue, late_reply, quarantined, slow_decision, snapshot_refused
and notify_failed.

Notifications are runs that announce a state of another run (notify blocks). They are
left out, except with --notifications or with --workflow WORKFLOW.notify.`,
		Args: cli.Wants(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.alerts {
				return listAlerts(cmd.Context(), a, o)
			}
			return list(cmd.Context(), a, o)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.status, "status", nil, "only runs of this status, such as running,parked; also open, attention")
	f.StringSliceVar(&o.trigger, "trigger", nil, "only runs that were started in this way: manual, event, schedule, selection, submitted, parent, notify")
	f.StringVar(&o.workflow, "workflow", "", "only runs of this workflow")
	f.StringVar(&o.key, "key", "", "only runs with this unique key")
	f.StringVar(&o.since, "since", "", "only runs that were created since this time, or within this duration: 24h, 7d, 2026-03-14T10:00:00Z")
	f.IntVar(&o.limit, "limit", 100, "largest number of runs or alerts")
	f.BoolVar(&o.notifications, "notifications", false, "also list notifications: the runs that announce states of other runs")
	f.BoolVar(&o.alerts, "alerts", false, "list alerts instead of runs")
	return cmd
}

func list(ctx context.Context, a *cli.App, o listOptions) error {
	filter, err := runFilter(a, o)
	if err != nil {
		return err
	}
	s, err := session.OpenReader(ctx, a, ".", ".")
	if err != nil {
		return err
	}
	defer s.Close()
	selected := history.Selection{RunFilter: filter, Notifications: o.notifications}
	runs, err := history.Listed(ctx, s, selected)
	if err != nil {
		return s.Wrap("list runs", err)
	}
	through := history.Through{}
	if slices.Contains(o.status, history.Attention) {
		if runs, err = history.WithOverdue(ctx, s, selected, runs); err != nil {
			return err
		}
		if runs, through, err = history.WithParents(ctx, s, selected, runs); err != nil {
			return err
		}
	}
	if a.JSON {
		out := make([]map[string]any, len(runs))
		for i, r := range runs {
			out[i] = through.JSON(r)
		}
		return a.PrintJSON(map[string]any{"runs": out})
	}
	if len(runs) == 0 {
		a.Note("No runs.")
		return nil
	}
	table := render.Table{Head: []string{"RUN", "WORKFLOW", "STATUS", "KEY", "CREATED", "TOOK"}}
	for _, r := range runs {
		took := ""
		if !r.FinishedAt.IsZero() {
			took = render.Took(r.FinishedAt.Sub(r.CreatedAt))
		}
		table.Add(r.Name, r.WorkflowName, through.Status(r), r.Key, words.Stamp(r.CreatedAt), took)
	}
	return table.Write(a.Stdout)
}

func runFilter(a *cli.App, o listOptions) (store.RunFilter, error) {
	f := store.RunFilter{Workflow: o.workflow, Key: o.key, Limit: o.limit}
	if o.limit < 1 || o.limit > 10000 {
		return f, cli.Failed("Invalid flag", "--limit must be between 1 and 10000, not %d.", o.limit)
	}
	for _, name := range o.status {
		if name == "open" {
			f.States = append(f.States, history.OpenStates()...)
			continue
		}
		if name == history.Attention {
			f.States = append(f.States, history.AttentionStates()...)
			continue
		}
		s, ok := status.ParseRunState(name)
		if !ok {
			return f, cli.Failed("Invalid flag", "--status %q is no status of a run.%s They are: open, attention, %s.",
				name, diag.DidYouMean(name, append(history.StateNames(), "open", history.Attention)), strings.Join(history.StateNames(), ", "))
		}
		f.States = append(f.States, s)
	}
	for _, word := range o.trigger {
		t, ok := naming.ParseTrigger(word)
		if !ok {
			return f, cli.Failed("Invalid flag", "--trigger %q is no way to start a run.%s They are: %s.", word, diag.DidYouMean(word, naming.TriggerNames()), strings.Join(naming.TriggerNames(), ", "))
		}
		f.Triggers = append(f.Triggers, t)
	}
	var err error
	f.Since, err = sinceFlag(a, o.since)
	return f, err
}

// sinceFlag parses --since. It returns the zero time if the flag is not given.
func sinceFlag(a *cli.App, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	var ago time.Duration
	if words.Span(&ago).Set(text) == nil {
		return a.Now().Add(-ago), nil
	}
	return time.Time{}, cli.Failed("Invalid flag", "--since must be a duration such as 24h or 7d, or a time such as 2026-03-14T10:00:00Z, not %q.", text)
}
