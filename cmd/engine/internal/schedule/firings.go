package schedule

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/engines"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/store/firings"
)

// tickForm is the form of a tick in the name of a firing.
const tickForm = "20060102T150405Z"

// ListFirings prints the newest firings of selections with their reports.
func ListFirings(ctx context.Context, a *cli.App, limit int) error {
	if limit < 1 || limit > 10_000 {
		return cli.Failed("Invalid number", "--limit must be from 1 to 10000.")
	}
	s, role, err := openSelections(ctx, a)
	if err != nil {
		return err
	}
	defer s.Close()
	list, err := role.Firings(ctx, limit)
	if err != nil {
		return s.Wrap("list firings", err)
	}
	if a.JSON {
		out := []map[string]any{}
		for _, f := range list {
			out = append(out, firingJSON(f))
		}
		return a.PrintJSON(map[string]any{"firings": out})
	}
	if len(list) == 0 {
		a.Note("There is no firing. A published schedule with a select block opens one at each tick, and an on_event block for each event; engine select start opens one now.")
		return nil
	}
	table := render.Table{Head: []string{"FIRING", "STATE", "SELECTED", "STARTED", "REFUSED", "FILTERED", "QUARANTINED", "VANISHED", "MISSED", "WHY"}}
	for _, f := range list {
		r := f.Report
		cells := []string{firingName(f), f.State}
		for _, n := range []int64{r.Selected, r.Started, r.Refused, r.Filtered, r.Quarantined, r.Vanished, r.Missed} {
			cells = append(cells, fmt.Sprint(n))
		}
		table.Add(append(cells, dash(f.Error))...)
	}
	if err := table.Write(a.Stdout); err != nil {
		return fmt.Errorf("write to stdout: %w", err)
	}
	return nil
}

// firingName returns the name of a firing: WORKFLOW.SCHEDULE.TICK or, for an event, WORKFLOW:ID.
func firingName(f firings.Firing) string {
	if f.Event != "" {
		return f.Workflow + ":" + f.Event
	}
	return f.Workflow + "." + f.Schedule + "." + f.Tick.UTC().Format(tickForm)
}

// firingJSON returns a firing as a JSON object.
func firingJSON(f firings.Firing) map[string]any {
	r := f.Report
	return map[string]any{
		"firing": firingName(f), "workflow": f.Workflow, "schedule": f.Schedule, "event": f.Event, "tick": timeJSON(f.Tick), "state": f.State,
		"opened_by": f.By, "opened_at": timeJSON(f.At), "ended_at": timeJSON(f.Ended), "from": timeJSON(f.From), "to": timeJSON(f.To),
		"error": f.Error, "holder": f.Holder, "selected": r.Selected, "started": r.Started, "refused": r.Refused, "filtered": r.Filtered,
		"quarantined": r.Quarantined, "vanished": r.Vanished, "missed": r.Missed,
	}
}

// StartOptions are the flags of `engine select start`.
type StartOptions struct {
	At   string // tick of the firing; "" = now
	Args []string
}

// StartFiring opens a firing of a published schedule.
func StartFiring(ctx context.Context, a *cli.App, name string, o StartOptions) error {
	tick := a.Now()
	if o.At != "" {
		var err error
		if tick, err = parseTime("--at", o.At); err != nil {
			return err
		}
	}
	args, err := argValues(o.Args)
	if err != nil {
		return err
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
	tick = tick.UTC().Truncate(time.Second)
	added, err := engine.OpenFiring(ctx, engines.Visitor(a, s, engine.Options{}), engine.FiringRequest{Schedule: r, Tick: tick, Args: args, By: cli.UserName()})
	if err != nil {
		return s.Wrap("open a firing", err)
	}
	firing := name + "." + tick.Format(tickForm)
	switch {
	case a.JSON:
		return a.PrintJSON(map[string]any{"firing": firing, "exists": !added})
	case !added:
		a.Note("No firing was opened: %s exists already, or another firing covers its interval. See `engine select list`.", firing)
		return nil
	}
	if err := a.Print("%s\n", firing); err != nil {
		return err
	}
	return warnIdle(ctx, a, s)
}

// argValues returns the values of the flag --arg.
func argValues(list []string) (map[string]*string, error) {
	if len(list) == 0 {
		return nil, nil
	}
	out := map[string]*string{}
	for _, text := range list {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, cli.Failed("Invalid argument", "--arg has the form NAME=VALUE, such as --arg status=open.")
		}
		out[name] = &value
	}
	return out, nil
}

// CancelFiring ends an open firing. Runs that it has started continue.
func CancelFiring(ctx context.Context, a *cli.App, name string) error {
	s, role, err := openSelections(ctx, a)
	if err != nil {
		return err
	}
	defer s.Close()
	f, err := findFiring(ctx, s, role, name)
	if err != nil {
		return err
	}
	done, err := role.Cancel(ctx, f.ID, "cancelled by "+cli.UserName())
	switch {
	case err != nil:
		return s.Wrap("cancel a firing", err)
	case !done:
		if f.Event != "" {
			return cli.Failed("Firing has ended", "Firing %s is %s. To select the rows again, send an event with another id: `engine event send`.", name, f.State)
		}
		return cli.Failed("Firing has ended", "Firing %s is %s. `engine select start --at` opens a cancelled firing again.", name, f.State)
	case a.JSON:
		return a.PrintJSON(map[string]any{"firing": name, "state": firings.Cancelled})
	}
	return a.Print("Cancelled %s. Runs that it has started continue.\n", name)
}

// maxBad is the largest number of quarantined rows that one command reads.
const maxBad = 1000

// ListQuarantine prints the quarantined rows of a firing.
func ListQuarantine(ctx context.Context, a *cli.App, name string) error {
	s, role, err := openSelections(ctx, a)
	if err != nil {
		return err
	}
	defer s.Close()
	_, list, err := quarantined(ctx, s, role, name)
	if err != nil {
		return err
	}
	if a.JSON {
		out := []map[string]any{}
		for _, b := range list {
			out = append(out, map[string]any{"key": b.Key, "at": timeJSON(b.At), "error": b.Error})
		}
		return a.PrintJSON(map[string]any{"firing": name, "rows": out})
	}
	if len(list) == 0 {
		a.Note("Firing %s has no quarantined row.", name)
		return nil
	}
	table := render.Table{Head: []string{"KEY", "AT", "ERROR"}}
	for _, b := range list {
		table.Add(dash(b.Key), timeText(b.At), b.Error)
	}
	if err := table.Write(a.Stdout); err != nil {
		return fmt.Errorf("write to stdout: %w", err)
	}
	if len(list) == maxBad {
		a.Note("Only the first %d rows are shown.", maxBad)
	}
	return nil
}

// RetryQuarantine starts the runs of quarantined rows of a firing. If `keys` are given, it takes
// only the rows with these keys.
func RetryQuarantine(ctx context.Context, a *cli.App, name string, keys []string) error {
	s, role, err := openSelections(ctx, a)
	if err != nil {
		return err
	}
	defer s.Close()
	f, list, err := quarantined(ctx, s, role, name)
	if err != nil {
		return err
	}
	if len(keys) > 0 {
		if list, err = chosen(list, keys, name); err != nil {
			return err
		}
	}
	done, err := engine.RetryQuarantined(ctx, engines.Visitor(a, s, engine.Options{}), f, list)
	if err != nil {
		return s.Wrap("retry quarantined rows", err)
	}
	out, left := []map[string]any{}, 0
	for _, d := range done {
		out = append(out, map[string]any{"key": d.Bad.Key, "run": d.Run, "error": d.Error})
		text := d.Run
		switch {
		case d.Error != "":
			left++
			text = "stays: " + d.Error
		case d.Run == "":
			text = "refused: another run has its unique key, or a limit is full"
		}
		if !a.JSON {
			if err := a.Print("%s  %s\n", dash(d.Bad.Key), text); err != nil {
				return err
			}
		}
	}
	if a.JSON {
		if err := a.PrintJSON(map[string]any{"firing": name, "rows": out}); err != nil {
			return err
		}
	}
	if left > 0 {
		return cli.Failed("Rows stay in the quarantine", "%d of %d rows could start no run. Correct them in their tables, then run the command again.", left, len(done))
	}
	return nil
}

// chosen returns the quarantined rows with the given keys.
func chosen(list []firings.Bad, keys []string, name string) (out []firings.Bad, err error) {
	byKey := map[string]firings.Bad{}
	for _, b := range list {
		byKey[b.Key] = b
	}
	for _, k := range keys {
		b, ok := byKey[k]
		if !ok {
			return nil, cli.Failed("Unknown key", "Firing %s has no quarantined row with the key %q. `engine select quarantine list %s` shows those that it has.", name, k, name)
		}
		out = append(out, b)
	}
	return out, nil
}

// openSelections opens the state of --dsn and returns it with its firings.
func openSelections(ctx context.Context, a *cli.App) (*session.Session, firings.Store, error) {
	s, err := session.OpenSpeaker(ctx, a)
	if err != nil {
		return nil, nil, err
	}
	role, ok := firings.Of(s.Store)
	if !ok {
		s.Close()
		return nil, nil, noSelections(s)
	}
	return s, role, nil
}

// noSelections returns the error for a state that is not a PostgreSQL database.
func noSelections(s *session.Session) error {
	return cli.Failed("No business tables", "A select block reads business tables of the same PostgreSQL database, and %s is no such database. Use --dsn with a PostgreSQL database.", s.Shown)
}

// findFiring returns the firing with the name WORKFLOW.SCHEDULE.TICK or WORKFLOW:ID.
func findFiring(ctx context.Context, s *session.Session, role firings.Store, name string) (*firings.Firing, error) {
	if workflow, event, ok := strings.Cut(name, ":"); ok {
		f, err := role.FindEvent(ctx, workflow, event)
		if err != nil {
			return nil, s.Wrap("find a firing", err)
		}
		if f != nil {
			return f, nil
		}
	} else if parts := strings.Split(name, "."); len(parts) == 3 {
		if tick, err := time.Parse(tickForm, parts[2]); err == nil {
			f, err := role.Find(ctx, parts[0], parts[1], tick)
			if err != nil {
				return nil, s.Wrap("find a firing", err)
			}
			if f != nil {
				return f, nil
			}
		}
	}
	return nil, cli.Failed("Unknown firing", "There is no firing %q in %s. Its name has the form WORKFLOW.SCHEDULE.TICK, or WORKFLOW:ID for an event. `engine select list` shows the firings.", name, s.Shown)
}

// quarantined returns a firing and its quarantined rows.
func quarantined(ctx context.Context, s *session.Session, role firings.Store, name string) (*firings.Firing, []firings.Bad, error) {
	f, err := findFiring(ctx, s, role, name)
	if err != nil {
		return nil, nil, err
	}
	list, err := role.Quarantined(ctx, f.ID, 0, maxBad)
	if err != nil {
		return nil, nil, s.Wrap("list quarantined rows", err)
	}
	return f, list, nil
}
