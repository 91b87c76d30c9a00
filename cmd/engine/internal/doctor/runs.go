package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/history"
	"github.com/saga-engine/engine/cmd/engine/internal/module"
	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/cmd/internal/pause"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/agents"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/health"
)

const (
	// maxOpenLooked is the highest number of open runs that the doctor reads.
	maxOpenLooked = 10000
	// maxVerified is the highest number of open runs whose history the doctor checks. It checks
	// the newest runs. The number is low because the check reads all rows of these runs.
	maxVerified = 320
	// If a lease ends in less than leaseAlarm, the doctor reads it a second time.
	leaseAlarm = 3 * time.Second
	// leaseLook is the pause before the doctor reads a lease for the second time.
	leaseLook = time.Second
	// staleAlert is how long an alert may wait to be pushed before the doctor warns.
	staleAlert = 10 * time.Minute
	// staleQueue is how long a run may wait for an engine to take it before the doctor warns.
	staleQueue = 5 * time.Minute
)

// engines reports which engines are alive, and warns if too few are.
func (c *checkup) engines(ctx context.Context) error {
	var err error
	if c.live, err = c.s.Store.Live(ctx); err != nil {
		return c.s.Wrap("list engines", err)
	}
	if c.open, err = c.s.Store.Runs(ctx, store.RunFilter{States: history.OpenStates(), Limit: maxOpenLooked}); err != nil {
		return c.s.Wrap("list open runs", err)
	}
	moving := 0
	for _, r := range c.open {
		if !r.State.NeedsHuman() {
			moving++
		}
	}
	switch {
	case len(c.live) == 0 && moving > 0:
		c.say("engines", health.Error, "Start one with `engine serve`.", "No engine is alive, and %s.", waits(moving))
	case len(c.live) == 0:
		c.say("engines", health.OK, "", "No engine is alive, and no run waits for one.")
	case len(c.live) == 1 && c.s.Postgres == "":
		c.say("engines", health.OK, "", "One engine works on the embedded state: %s. The embedded state allows only one.", history.MemberText(c.live[0]))
	case len(c.live) == 1 && moving > 0: // S84: only one engine works on a PostgreSQL database
		c.say("engines", health.Warning, "Run `engine serve` on another machine too.",
			"Only one engine, %s, works on %s: if it dies, nothing moves until it is replaced.", history.MemberText(c.live[0]), render.Count(moving, "open run"))
	default:
		var names []string
		for _, m := range c.live {
			names = append(names, history.MemberText(m))
		}
		c.say("engines", health.OK, "", "%s alive: %s.", render.Count(len(c.live), "engine"), strings.Join(names, ", "))
	}
	return nil
}

// queue warns about runs that no engine has taken for a long time although engines are alive.
// A run that waits has no failure, so nothing else reports it (S65).
func (c *checkup) queue(context.Context) error {
	var oldest time.Time
	late := 0
	for _, r := range c.open {
		if r.State != status.RunQueued || r.Owner != 0 || c.a.Now().Sub(r.CreatedAt) < staleQueue {
			continue
		}
		if late++; oldest.IsZero() || r.CreatedAt.Before(oldest) {
			oldest = r.CreatedAt
		}
	}
	if late > 0 && len(c.live) > 0 {
		c.say("queue", health.Warning, "Start another engine with `engine serve`, or see with `engine explain RUN` which agent is missing.",
			"No engine has taken %s; the oldest waits for %s.", render.Count(late, "queued run"), render.Span(c.a.Now().Sub(oldest).Truncate(time.Second)))
	}
	return nil
}

func waits(n int) string {
	if n == 1 {
		return "1 open run waits"
	}
	return fmt.Sprintf("%d open runs wait", n)
}

// leases warns about engines that do not renew their lease. If a lease ends soon, the method
// reads all leases again after leaseLook. A healthy engine renews its lease long before the
// end.
func (c *checkup) leases(ctx context.Context) error {
	near := map[store.EngineID]store.Member{}
	for _, m := range c.live {
		// m.Left comes from the store's clock, because the clock of this machine may be wrong.
		if m.Left < leaseAlarm {
			near[m.Engine] = m
		}
	}
	if len(near) == 0 {
		return nil
	}
	if err := pause.For(ctx, leaseLook); err != nil {
		return err
	}
	live, err := c.s.Store.Live(ctx)
	if err != nil {
		return c.s.Wrap("list engines", err)
	}
	for _, m := range live {
		if was, ok := near[m.Engine]; ok && m.LeaseUntil.Equal(was.LeaseUntil) {
			c.say("lease", health.Warning, "Look at its log: it may be frozen, overloaded, or cut off from the database.",
				"Engine %s does not renew its lease, which ends at %s; others then take its runs over.", history.MemberText(m), words.Stamp(m.LeaseUntil))
		}
	}
	return nil
}

// runs reports how many runs need attention. `engine list --status attention` lists the same runs:
// notifications are left out.
func (c *checkup) runs(ctx context.Context) error {
	selected := history.Selection{RunFilter: store.RunFilter{States: history.AttentionStates(), Limit: maxOpenLooked}}
	found, err := history.Listed(ctx, c.s, selected)
	if err != nil {
		return c.s.Wrap("list runs that need attention", err)
	}
	if found, err = history.WithOverdue(ctx, c.s, selected, found); err != nil {
		return err
	}
	own := len(found)
	if found, _, err = history.WithParents(ctx, c.s, selected, found); err != nil {
		return err
	}
	if n := len(found); n > 0 { // the newest run comes first
		need, them := fmt.Sprintf("%d runs need attention; the oldest", n), "them"
		if n == 1 {
			need, them = "1 run needs attention; it", "it"
		}
		if through := n - own; through > 0 {
			need = fmt.Sprintf("%d runs need attention, %d of them through a child run; the oldest", n, through)
		}
		c.say("runs", health.Warning, "`engine list --status attention` shows "+them+", `engine explain RUN` says what to do.",
			"%s is %s old.", need, render.Span(c.a.Now().Sub(found[n-1].CreatedAt).Truncate(time.Second)))
	} else {
		c.say("runs", health.OK, "", "No run needs attention.")
	}
	if len(c.open) == maxOpenLooked {
		c.say("runs", health.OK, "", "Only the newest %d open runs were looked at.", maxOpenLooked)
	}
	return nil
}

// histories checks the history of the newest open runs, and reports each history that was
// changed or is damaged.
func (c *checkup) histories(ctx context.Context) error {
	if _, err := c.s.ReadKey(ctx); err != nil {
		return nil // no history can be checked without the keys; the method `key` reports that
	}
	var v history.Verification
	runs := c.open[:min(len(c.open), maxVerified)]
	for page := range slices.Chunk(runs, history.VerifyPage) {
		if err := history.Verify(ctx, c.s, &v, page); err != nil {
			return err
		}
	}
	for _, r := range v.Bad {
		var broken *journal.HistoryError
		if errors.As(r.Err, &broken) {
			_, what := history.ProblemOf(r)
			c.say("history", health.Error, "`engine db verify` checks all runs. "+history.VerifyNext, "The history of run %s does not verify. %s", r.Head.Name, what)
		}
	}
	if len(v.Bad) == 0 && v.Runs > 0 {
		c.say("history", health.OK, "", "The history of %s verifies; `engine db verify` checks all runs.", render.Count(v.Runs, "open run"))
	}
	return nil
}

// definitions reads the workflows that open runs have now, and reports those that cannot be read.
// If a run was moved, only the workflow to which it was moved is read: the run does not need its
// first workflow any more.
func (c *checkup) definitions(ctx context.Context) error {
	for _, r := range c.open {
		id := cmp.Or(r.Moved, r.Workflow)
		use := c.flow[id]
		if use == nil {
			use = &flowUse{}
			c.flow[id] = use
			flow, err := c.s.Defs.Workflow(ctx, id)
			if err != nil {
				c.say("definition", health.Error, "", "Workflow %q, definition %s, has open runs such as %s but cannot be read: %s.",
					r.WorkflowName, words.Short(r.Digest), r.Name, strings.TrimSuffix(err.Error(), "."))
			} else {
				use.flow = flow
			}
		}
		use.runs++
	}
	return nil
}

// redundancy warns about agents that have only one agent process on all engines together. If this
// process dies, no call of the agent succeeds until a new process is ready (S84).
func (c *checkup) redundancy(context.Context) error {
	// Each key is the name of an agent. Its value has the names of the workflows that use this
	// agent.
	single := map[string][]string{}
	for _, use := range c.flow {
		if use.flow == nil {
			continue
		}
		for name, agent := range use.flow.Agents {
			if agent.Instances*max(1, len(c.live)) < 2 && !slices.Contains(single[name], use.flow.Name) {
				single[name] = append(single[name], use.flow.Name)
			}
		}
	}
	for _, name := range words.Sorted(single) {
		slices.Sort(single[name])
		hint := fmt.Sprintf("Give it `instances = 2` in agent %q, or run a second engine.", name)
		if c.s.Postgres == "" {
			hint = fmt.Sprintf("Give it `instances = 2` in agent %q.", name)
		}
		c.say("agent "+name, health.Warning, hint, "A single instance carries %s.", workflows(single[name]))
	}
	return nil
}

func workflows(names []string) string {
	if len(names) == 1 {
		return "workflow " + names[0]
	}
	return "workflows " + strings.Join(names, ", ")
}

// plugins checks that this machine has the agent binaries that open runs need, with their versions
// and checksums.
func (c *checkup) plugins(ctx context.Context, f module.AgentFlags) error {
	catalog, err := module.Catalog(c.a, c.a.Path("."), nil, f)
	if err != nil {
		return err
	}
	type pin struct{ plugin, version, checksum string }
	runs := map[pin]int{}
	var order []pin
	for _, use := range c.flow {
		if use.flow == nil {
			continue
		}
		for _, agent := range use.flow.Agents {
			p := pin{agent.Plugin, agent.Version, agent.Checksum}
			if runs[p] == 0 {
				order = append(order, p)
			}
			runs[p] += use.runs
		}
	}
	slices.SortFunc(order, func(x, y pin) int {
		return strings.Compare(x.plugin+"\x00"+x.version+"\x00"+x.checksum, y.plugin+"\x00"+y.version+"\x00"+y.checksum)
	})
	level, where := health.Error, ""
	if c.s.Postgres != "" && len(c.live) > 0 {
		level, where = health.Warning, " on this machine; other engines may have it"
	}
	for _, p := range order {
		name := "agent " + p.plugin
		if err := catalog.Present(ctx, p.plugin, p.version, p.checksum); err != nil {
			var changed *agents.ChecksumError
			what := "is missing"
			if errors.As(err, &changed) {
				what = "has changed"
			}
			c.say(name, level, strings.TrimSpace(module.Hint(err)), "%s, to which %s pinned, %s%s: %s.",
				strings.TrimSpace("Version "+orAny(p.version)), pinnedRuns(runs[p]), what, where, strings.TrimSuffix(err.Error(), "."))
			continue
		}
		c.say(name, health.OK, "", "Version %s is here, for %s.", orAny(p.version), render.Count(runs[p], "open run"))
	}
	return nil
}

func pinnedRuns(n int) string {
	if n == 1 {
		return "1 open run is"
	}
	return fmt.Sprintf("%d open runs are", n)
}

func orAny(version string) string {
	if version == "" {
		return "any"
	}
	return version
}

// alerts reports slow decisions, and alerts that were not yet pushed to a program or a webhook.
func (c *checkup) alerts(ctx context.Context) error {
	const many = 1000
	if err := c.decisions(ctx, many); err != nil {
		return err
	}
	waiting, err := c.s.Store.Undelivered(ctx, many)
	if err != nil {
		return c.s.Wrap("list alerts that were not pushed", err)
	}
	if len(waiting) == 0 {
		c.say("alerts", health.OK, "", "Every alert was pushed.")
		return nil
	}
	age := c.a.Now().Sub(waiting[0].At)
	level := health.OK
	if age > staleAlert {
		level = health.Warning
	}
	count := render.Count(len(waiting), "alert")
	if len(waiting) == many {
		count = fmt.Sprintf("%d alerts or more", many)
	}
	c.say("alerts", level, "`engine serve --on-alert PROGRAM` or `--alert-webhook URL` pushes them, and its log says why that fails; `engine list --alerts` shows them.",
		"%s not pushed, the oldest of %s.", count, words.Stamp(waiting[0].At))
	return nil
}

// decisions reports slow decisions. It looks for them in the newest alerts, and reads at most
// `many` alerts.
func (c *checkup) decisions(ctx context.Context, many int) error {
	alerts, err := c.s.Store.Alerts(ctx, 0, many)
	if err != nil {
		return c.s.Wrap("list alerts", err)
	}
	slow := slices.DeleteFunc(alerts, func(a store.AlertRow) bool { return a.Kind != engine.AlertSlow })
	if len(slow) == 0 {
		c.say("decisions", health.OK, "", "No run took long to decide.")
		return nil
	}
	last := slow[0]
	c.say("decisions", health.Warning, "Such runs wait for each other; other runs continue. `engine explain "+last.Name+"` shows the run.",
		"%s took long to decide, the last one %s of workflow %s at %s: %s.", render.Count(len(slow), "run"), last.Name, last.Workflow, words.Stamp(last.At), last.Message)
	return nil
}
