package main

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

type listOptions struct {
	status        []string
	workflow, key string
	since         string
	limit         int
	alerts        bool
}

func listCommand(a *app) *cobra.Command {
	var o listOptions
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List runs, newest first",
		Long: `Lists runs, newest first. --status takes what a run's status may be, and two words that mean
several: open = whatever has not ended; attention = whatever needs a person: runs
that are parked, whose undo failed, that are past their deadline, or that no living
engine has the agents of.

--alerts lists what an operator was told instead, newest first: parked,
compensation_failed, overdue, late_reply, set_aside and slow_decision.`,
		Args: wants(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.alerts {
				return a.reader().listAlerts(cmd.Context(), o)
			}
			return a.reader().list(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.status, "status", nil, "only runs of this status, such as running,parked; also open, attention")
	f.StringVar(&o.workflow, "workflow", "", "only runs of this workflow")
	f.StringVar(&o.key, "key", "", "only runs with this unique key")
	f.StringVar(&o.since, "since", "", "only runs created since a time or for a duration: 24h, 2026-03-14T10:00:00Z")
	f.IntVar(&o.limit, "limit", 100, "at most this many")
	f.BoolVar(&o.alerts, "alerts", false, "list alerts instead of runs")
	return cmd
}

func (a reader) list(ctx context.Context, o listOptions) error {
	filter, err := a.runFilter(o)
	if err != nil {
		return err
	}
	s, err := a.opener().openReader(ctx, ".", ".")
	if err != nil {
		return err
	}
	defer s.close()
	runs, err := s.store.Runs(ctx, filter)
	if err != nil {
		return s.wrap("list runs", err)
	}
	if slices.Contains(o.status, attention) {
		if runs, err = s.history().withOverdue(ctx, filter, runs); err != nil {
			return err
		}
	}
	if a.json {
		out := make([]map[string]any, len(runs))
		for i, r := range runs {
			out[i] = runJSON(r)
		}
		return a.printJSON(map[string]any{"runs": out})
	}
	if len(runs) == 0 {
		a.note("No runs.")
		return nil
	}
	table := render.Table{Head: []string{"RUN", "WORKFLOW", "STATUS", "KEY", "CREATED", "TOOK"}}
	for _, r := range runs {
		took := ""
		if !r.FinishedAt.IsZero() {
			took = render.Took(r.FinishedAt.Sub(r.CreatedAt))
		}
		table.Add(r.Name, r.WorkflowName, statusText(r), r.Key, stamp(r.CreatedAt), took)
	}
	return table.Write(a.stdout)
}

// statusText is a run's state, and whether an engine works on it.
func statusText(r store.RunRow) string {
	if !r.State.Final() && !r.State.NeedsHuman() && !r.OwnerAlive {
		return r.State.String() + " (no engine)"
	}
	return r.State.String()
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

func runJSON(r store.RunRow) map[string]any {
	m := map[string]any{
		"run": r.Name, "id": strconv.FormatInt(int64(r.Run), 10), "workflow": r.WorkflowName, "definition": r.Digest,
		"status": r.State.String(), "key": r.Key, "created_at": r.CreatedAt.UTC(), "owner_alive": r.OwnerAlive,
	}
	if !r.FinishedAt.IsZero() {
		m["finished_at"] = r.FinishedAt.UTC()
	}
	return m
}

func (a reader) runFilter(o listOptions) (store.RunFilter, error) {
	f := store.RunFilter{Workflow: o.workflow, Key: o.key, Limit: o.limit}
	if o.limit < 1 || o.limit > 10000 {
		return f, failed("Invalid flag", "--limit must be between 1 and 10000, not %d.", o.limit)
	}
	for _, name := range o.status {
		if name == "open" {
			f.States = append(f.States, openStates()...)
			continue
		}
		if name == attention {
			f.States = append(f.States, attentionStates()...)
			continue
		}
		s, ok := status.ParseRunState(name)
		if !ok {
			return f, failed("Invalid flag", "--status %q is no status of a run.%s They are: open, attention, %s.",
				name, diag.DidYouMean(name, append(stateNames(), "open", attention)), strings.Join(stateNames(), ", "))
		}
		f.States = append(f.States, s)
	}
	var err error
	f.Since, err = a.sinceFlag(o.since)
	return f, err
}

// sinceFlag reads --since; zero = it is not given.
func (a reader) sinceFlag(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return a.now().Add(-d), nil
	}
	return time.Time{}, failed("Invalid flag", "--since must be a duration such as 24h or a time such as 2026-03-14T10:00:00Z, not %q.", text)
}

// states lists every state of a run in order.
func states() []status.RunState {
	var out []status.RunState
	for i := status.RunQueued; i <= status.RunCancelled; i++ {
		if _, ok := status.ParseRunState(i.String()); ok {
			out = append(out, i)
		}
	}
	return out
}

func stateNames() []string {
	var out []string
	for _, s := range states() {
		out = append(out, s.String())
	}
	return out
}

func openStates() []status.RunState {
	var out []status.RunState
	for _, s := range states() {
		if !s.Final() {
			out = append(out, s)
		}
	}
	return out
}
