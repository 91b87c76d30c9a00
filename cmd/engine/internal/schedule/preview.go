package schedule

import (
	"context"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/module"
)

// PreviewOptions are the flags of `engine schedule preview`.
type PreviewOptions struct {
	Count  int
	From   string // "" = now
	Agents module.AgentFlags
}

// Preview prints the next ticks of each schedule of a module. It needs no state.
func Preview(ctx context.Context, a *cli.App, path string, o PreviewOptions) error {
	if o.Count < 1 {
		return cli.Failed("Invalid number", "--count must be at least 1.")
	}
	from := a.Now()
	if o.From != "" {
		var err error
		if from, err = parseTime("--from", o.From); err != nil {
			return err
		}
		from = from.Add(-time.Nanosecond) // so that Next also finds a tick at the given time
	}
	l, err := module.Link(ctx, a, path, o.Agents)
	if err != nil {
		return err
	}
	out, found := []map[string]any{}, false
	for _, wf := range l.Def.Names() {
		for _, s := range l.Def.Workflow(wf).Schedules {
			found = true
			zone, err := time.LoadLocation(s.Zone)
			if err != nil {
				return err
			}
			ticks := []string{}
			at := from
			for range o.Count {
				if at = s.Timetable.Next(at); at.IsZero() {
					break
				}
				ticks = append(ticks, at.Format(time.RFC3339))
				if !a.JSON {
					if err := a.Print("%s.%s  %s  %s\n", wf, s.Name, at.Format(time.RFC3339), at.In(zone).Format("Mon 2006-01-02 15:04 MST")); err != nil {
						return err
					}
				}
			}
			out = append(out, map[string]any{"workflow": wf, "schedule": s.Name, "ticks": ticks})
		}
	}
	if a.JSON {
		return a.PrintJSON(map[string]any{"schedules": out})
	}
	if !found {
		a.Note("The module has no schedule.")
	}
	return nil
}

// printTicks prints the ticks of a period, at most as many as the parameter `limit`. The period
// begins with the time `from` and ends before the time `to`: a tick at `from` is printed, and a
// tick at `to` is not. The function `next` returns the first tick after a given time.
func printTicks(a *cli.App, name string, next func(time.Time) time.Time, from, to time.Time, limit int) error {
	ticks := []string{}
	for at := next(from.Add(-time.Nanosecond)); !at.IsZero() && at.Before(to) && len(ticks) < limit; at = next(at) {
		ticks = append(ticks, at.Format(time.RFC3339))
	}
	if a.JSON {
		return a.PrintJSON(map[string]any{"schedule": name, "ticks": ticks})
	}
	for _, tick := range ticks {
		if err := a.Print("%s\n", tick); err != nil {
			return err
		}
	}
	return nil
}
