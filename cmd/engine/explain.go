package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/operator"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/story"
)

func explainCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "explain RUN",
		Short: "Say why a run is not moving, and what will move it next and when",
		Long: `Says in one paragraph what a run does or waits for, who works on it, and what will
move it next and when. If a person has to do something, it lists the commands that
would be accepted now.`,
		Args: wants("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.reader().explainRun(cmd.Context(), args[0]) },
	}
}

func (a reader) explainRun(ctx context.Context, name string) error {
	s, err := a.opener().openReader(ctx, ".", ".")
	if err != nil {
		return err
	}
	defer s.close()
	row, err := a.follower().findRun(ctx, s, name)
	if err != nil {
		return err
	}
	x := &explained{row: row}
	if x.live, err = s.store.Live(ctx); err != nil {
		return s.wrap("list engines", err)
	}
	x.live = slices.DeleteFunc(x.live, func(m store.Member) bool { return vanished(m.Address) })
	if x.owner, err = s.history().ownerOf(ctx, row); err != nil {
		return err
	}
	if x.alerts, err = s.store.Alerts(ctx, row.Run, 20); err != nil {
		return s.wrap("read alerts", err)
	}
	if x.inbox, err = s.store.Messages(ctx, row.Run, 0, maxInboxShown); err != nil {
		return s.wrap("read the inbox", err)
	}
	r, err := s.people().fold(ctx, row)
	var unreadable *journal.RunError
	switch {
	case errors.As(err, &unreadable):
		x.quarantined(unreadable)
	case err != nil:
		return err
	default:
		x.Explanation = story.Explain(r.state, r.wf, a.now())
		if err := x.lateAnswers(ctx, a.app, s, r); err != nil {
			return err
		}
	}
	x.engines()
	if r != nil && x.lacks() {
		x.unable(ctx, s)
	}
	if r != nil && !row.State.Final() {
		if err := x.agents(ctx, a.app, r); err != nil {
			return err
		}
	}
	return x.print(a.app)
}

// An explained is what the run says of itself and what only the store knows.
type explained struct {
	story.Explanation
	row    store.RunRow
	live   []store.Member
	owner  *store.Member // nil = no known owner; it may be dead
	alerts []store.AlertRow
	inbox  []store.Message
}

func (x *explained) say(format string, args ...any) {
	x.Sentences = append(x.Sentences, fmt.Sprintf(format, args...))
}

// aside explains a run that cannot be read here.
func (x *explained) quarantined(err *journal.RunError) {
	x.say("The run is %s, but what is stored of it cannot be read here: %s.", x.row.State, strings.TrimSuffix(err.Err.Error(), "."))
	if journal.Newer(err) {
		x.say("A newer engine wrote it; engines of this version leave it alone.")
	}
	if err.Hint != "" {
		x.say("%s.", upperFirst(strings.TrimSuffix(err.Hint, ".")))
	}
	x.NeedsHuman = x.row.State.NeedsHuman()
}

// engines tells who works on the run, and what waits for them.
func (x *explained) engines() {
	if x.row.State.Final() {
		return
	}
	owner := slices.IndexFunc(x.live, func(m store.Member) bool { return m.Engine == x.row.Owner })
	rests := x.row.State.NeedsHuman()
	switch {
	case owner >= 0 && rests:
	case owner >= 0:
		m := x.live[owner]
		x.say("Engine %d at %s works on it.", m.Engine, m.Address)
	case len(x.live) == 0 && rests:
		x.say("No engine is alive: what you decide is recorded and acted on when one is.")
	case len(x.live) == 0:
		x.say("No engine is alive, so nothing moves it: start one with `engine serve`, or `engine apply PATH` with its workflow.")
		x.Remedies = append(x.Remedies, "engine serve")
	case rests:
	case x.row.Owner == 0:
		x.say("No engine has taken it yet; %s.", x.next())
	default:
		x.say("Engine %d, which worked on it, is %s; %s.", x.row.Owner, goneText(x.owner), x.next())
	}
	if al, ok := missing(x.alerts, x.row); ok {
		x.say("An alert of %s says: %s.", stamp(al.At), strings.TrimSuffix(al.Message, "."))
	}
	switch n := len(x.inbox); {
	case n == 1:
		x.say("1 message waits for its owner: %s.", messageText(x.inbox[0]))
	case n > 1:
		x.say("%d messages wait for its owner, the oldest: %s.", n, messageText(x.inbox[0]))
	}
}

// lacks reports whether the engines that are alive were found to lack agents of
// the run.
func (x *explained) lacks() bool {
	_, lacks := missing(x.alerts, x.row)
	return lacks && len(x.live) > 0 && !x.row.State.NeedsHuman()
}

// unable adds what a person can do about a run whose agents no engine has.
func (x *explained) unable(ctx context.Context, s *session) {
	x.say("Start an engine where its agents are installed, or cancel the run.")
	x.Remedies = append(x.Remedies, "engine serve")
	op := &operator.Operator{Store: s.store, Sealer: s.sealer, Defs: s.defs}
	if op.Try(ctx, x.row.Run, machine.CancelRequested{}) == nil {
		x.Remedies = append(x.Remedies, fmt.Sprintf("engine cancel %s", quoteArg(x.row.Name)))
	}
}

// next says who will take the run.
func (x *explained) next() string {
	if x.lacks() {
		return "no engine that is alive could take it when it was last tried"
	}
	if len(x.live) == 1 {
		return fmt.Sprintf("engine %d at %s, the only one alive, takes it at its next pass if it has the agents", x.live[0].Engine, x.live[0].Address)
	}
	const most = 8
	var seen []string
	for i, m := range x.live {
		if i == most {
			seen = append(seen, fmt.Sprintf("%d more", len(x.live)-i))
			break
		}
		seen = append(seen, memberText(m))
	}
	return fmt.Sprintf("one of the %d engines alive (%s) takes it at its next pass if it has the agents", len(x.live), strings.Join(seen, ", "))
}

// agents tells which agents of the run this machine does not have.
func (x *explained) agents(ctx context.Context, a *app, r *shownRun) error {
	if r.row.OwnerAlive {
		return nil // it is the owner's machine that matters
	}
	catalog, err := a.opener().catalog(a.path("."), nil, agentFlags{})
	if err != nil {
		return err
	}
	for _, name := range sortedNames(r.wf.Agents) {
		agent := r.wf.Agents[name]
		if err := catalog.Present(ctx, agent.Plugin, agent.Version, agent.Checksum); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			x.say("On this machine agent %s cannot be used: %s; an engine that has it can go on with the run.%s",
				agent.Plugin, strings.TrimSuffix(err.Error(), "."), hintText(err))
		}
	}
	return nil
}

// lateAnswers adds what late answers would settle.
func (x *explained) lateAnswers(ctx context.Context, a *app, s *session, r *shownRun) error {
	if !x.NeedsHuman {
		return nil
	}
	all, err := s.history().lateReplies(ctx, r)
	if err != nil {
		return err
	}
	op := &operator.Operator{Store: s.store, Sealer: s.sealer, Defs: s.defs}
	seen := map[string]bool{}
	for _, l := range all {
		step := story.Node(r.state, r.wf, int(l.Node)).Name
		if step == "" || seen[step] {
			continue
		}
		seen[step] = true
		found, err := a.speaker().lateSettlement(ctx, s, r, step)
		if err != nil {
			continue // it says nothing that could be used: show lists it
		}
		if op.Try(ctx, r.row.Run, machine.SettleRequested{Step: step, As: found.As, Output: found.Output, Reason: "?"}) != nil {
			continue // nothing is in doubt
		}
		x.say("A late answer about %s is known: %s.", step, l.outcomeText())
		x.Remedies = append([]string{fmt.Sprintf("engine settle %s --step %s --from-late-reply --reason TEXT", quoteArg(r.row.Name), quoteArg(step))}, x.Remedies...)
	}
	return nil
}

func (x *explained) print(a *app) error {
	if a.json {
		m := map[string]any{
			"run": x.row.Name, "status": x.row.State.String(), "text": x.String(), "sentences": x.Sentences,
			"needs_human": x.NeedsHuman, "remedies": append([]string{}, x.Remedies...),
			"engines_alive": len(x.live), "messages_waiting": len(x.inbox),
		}
		alive := slices.ContainsFunc(x.live, func(m store.Member) bool { return m.Engine == x.row.Owner })
		owner := map[string]any{"engine": int32(x.row.Owner), "alive": alive}
		if !alive && x.owner != nil && x.owner.Left <= 0 {
			owner["gone_since"] = x.owner.LeaseUntil.UTC()
		}
		m["owner"] = owner
		if al, ok := missing(x.alerts, x.row); ok && !alive {
			m["agents_missing"] = alertJSON(al)
		}
		if !x.Next.IsZero() {
			m["next"] = x.Next.In(time.UTC)
		}
		return a.printJSON(m)
	}
	if err := a.print("%s\n", render.Clean(x.String())); err != nil {
		return err
	}
	for i, r := range x.Remedies {
		if i == 0 {
			if err := a.print("\n"); err != nil {
				return err
			}
		}
		if err := a.print("  %s\n", render.Clean(r)); err != nil {
			return err
		}
	}
	return nil
}
