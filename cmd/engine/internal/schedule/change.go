package schedule

import (
	"context"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/engines"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/journal"
)

// changeTries is how many times a command tries to change a schedule. A try fails if the schedule
// changes between the read and the write of the command, for example because an engine starts a
// run.
const changeTries = 10

// Pause makes a schedule start no more runs.
func Pause(ctx context.Context, a *cli.App, name string) error { return setPaused(ctx, a, name, true) }

// Resume makes a paused schedule start runs again. Ticks that passed during the pause are treated
// as missed ticks: see `catch_up` in the language.
func Resume(ctx context.Context, a *cli.App, name string) error {
	return setPaused(ctx, a, name, false)
}

func setPaused(ctx context.Context, a *cli.App, name string, paused bool) error {
	s, role, err := open(ctx, a)
	if err != nil {
		return err
	}
	defer s.Close()
	for range changeTries {
		r, err := find(ctx, s, role, name)
		if err != nil {
			return err
		}
		moved := r.Paused == paused
		if !moved {
			r.Paused = paused
			n, err := role.Move(ctx, r)
			if err != nil {
				return s.Wrap("change a schedule", err)
			}
			moved = n > 0
		}
		if !moved {
			continue // an engine has changed the schedule since it was read
		}
		if a.JSON {
			return a.PrintJSON(map[string]any{"schedule": name, "paused": paused})
		}
		word := "Resumed"
		if paused {
			word = "Paused"
		}
		return a.Print("%s %s.\n", word, name)
	}
	return cli.Failed("Schedule changes too often", "Engines change schedule %s again and again. Try again.", name)
}

// BackfillOptions are the flags of `engine schedule backfill`.
type BackfillOptions struct {
	From, To string // RFC 3339, or a date
	Preview  bool   // only print the ticks
}

// Backfill records a run for each past tick of a schedule in a period. A tick at the end of
// the period does not count.
func Backfill(ctx context.Context, a *cli.App, name string, o BackfillOptions) error {
	from, err := parseTime("--from", o.From)
	if err != nil {
		return err
	}
	to, err := parseTime("--to", o.To)
	if err != nil {
		return err
	}
	if !from.Before(to) {
		return cli.Failed("Invalid time", "--from must be before --to.")
	}
	s, role, err := open(ctx, a)
	if err != nil {
		return err
	}
	defer s.Close()
	r, err := find(ctx, s, role, name)
	if err != nil {
		return err
	}
	if o.Preview {
		def, err := journal.NewDefinitions(s.Store, s.Sealer).Definition(ctx, r.ID)
		if err != nil {
			return s.Wrap("read the published definition", err)
		}
		for _, plan := range def.Workflow(r.Workflow).Schedules {
			if plan.Name == r.Name {
				return printTicks(a, name, plan.Timetable.Next, from, to, engine.MaxBackfill)
			}
		}
	}
	all, err := engine.Backfill(ctx, engines.Visitor(a, s, engine.Options{}), r, from, to)
	if err != nil && len(all) == 0 {
		return s.Wrap("backfill", err)
	}
	out, failed := []map[string]any{}, error(nil)
	for _, e := range all {
		m := map[string]any{"run": e.Name, "exists": e.Exists}
		switch {
		case e.Err != nil:
			failed = e.Err
			m["error"] = e.Err.Error()
		case !a.JSON && e.Exists:
			a.Note("Run %s exists already.", e.Name)
		case !a.JSON:
			if err := a.Print("%s\n", e.Name); err != nil {
				return err
			}
		}
		out = append(out, m)
	}
	if a.JSON {
		if err := a.PrintJSON(map[string]any{"schedule": name, "runs": out}); err != nil {
			return err
		}
	}
	if failed != nil {
		return s.Wrap("backfill", failed)
	}
	return nil
}

// parseTime parses the value of a flag: a time in the form of RFC 3339, or a date. A date means the
// beginning of that day in UTC.
func parseTime(flag, text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, cli.Failed("Invalid time", "%s is a time such as 2026-03-29T00:00:00Z, or a date such as 2026-03-29.", flag)
}
