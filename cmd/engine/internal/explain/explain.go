package explain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/history"
	"github.com/saga-engine/engine/cmd/engine/internal/module"
	"github.com/saga-engine/engine/cmd/engine/internal/process"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/internal/verbs"
	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/operator"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/story"
)

// Run finds the run with the given name or key, and prints why it makes no progress.
func Run(ctx context.Context, a *cli.App, name string) error {
	s, err := session.OpenReader(ctx, a, ".", ".")
	if err != nil {
		return err
	}
	defer s.Close()
	row, err := history.Find(ctx, a, s, name)
	if err != nil {
		return err
	}
	x := &explained{row: row}
	if x.live, err = s.Store.Live(ctx); err != nil {
		return s.Wrap("list engines", err)
	}
	x.live = slices.DeleteFunc(x.live, func(m store.Member) bool { return process.Ended(m.Address) })
	if x.owner, err = history.OwnerOf(ctx, s, row); err != nil {
		return err
	}
	if x.alerts, err = s.Store.Alerts(ctx, row.Run, 20); err != nil {
		return s.Wrap("read alerts", err)
	}
	if x.inbox, err = s.Store.Messages(ctx, row.Run, 0, history.MaxInboxShown); err != nil {
		return s.Wrap("read the inbox", err)
	}
	r, err := history.Read(ctx, s, row)
	var unreadable *journal.RunError
	switch {
	case errors.As(err, &unreadable):
		x.quarantined(unreadable)
	case err != nil:
		return err
	default:
		x.Explanation = story.Explain(r.State, r.Flow, a.Now())
		if err := x.lateAnswers(ctx, a, s, r); err != nil {
			return err
		}
	}
	if r != nil {
		if err := x.room(ctx, s, r); err != nil {
			return err
		}
		if err := x.children(ctx, s, r); err != nil {
			return err
		}
	}
	if err := x.restarts(ctx, s, r); err != nil {
		return err
	}
	x.engines()
	if r != nil && x.lacks() {
		x.unable(ctx, s)
	}
	if r != nil && !row.State.Final() {
		if err := x.agents(ctx, a, r); err != nil {
			return err
		}
	}
	return x.print(a)
}

// The type explained holds what is known about a run: the explanation of its state, and facts that
// only the store has.
type explained struct {
	story.Explanation
	row    store.RunRow
	live   []store.Member
	owner  *store.Member // the engine that owns the run; this engine may be dead; nil = not known
	alerts []store.AlertRow
	inbox  []store.Message
	// through has the names of the child runs, at any depth, that need a person. The run needs a
	// person because these child runs do.
	through []string
}

func (x *explained) say(format string, args ...any) {
	x.Sentences = append(x.Sentences, fmt.Sprintf(format, args...))
}

// restarts adds sentences about two other runs: the run from which this run has taken over
// results, and the heir of this run. The parameter r is nil if the journal of this run cannot
// be read.
func (x *explained) restarts(ctx context.Context, s *session.Session, r *history.Run) error {
	if r != nil {
		if from := r.State.Run().Origin(); from != nil {
			x.say("It started from step %s, with results of run %s.", render.Clean(from.From), render.Clean(from.Name))
		}
	}
	heir, err := history.Heir(ctx, s, x.row.Run)
	if err == nil && heir != "" {
		x.say("Run %s has taken over its results.", render.Clean(heir))
	}
	return err
}

// quarantined adds sentences about a run whose journal this command cannot read.
func (x *explained) quarantined(err *journal.RunError) {
	x.say("The run is %s, but its stored data cannot be read here: %s.", x.row.State, strings.TrimSuffix(err.Err.Error(), "."))
	if journal.Newer(err) {
		x.say("A newer engine wrote it; engines of this version leave it alone.")
	}
	if err.Hint != "" {
		x.say("%s.", words.UpperFirst(strings.TrimSuffix(err.Hint, ".")))
	}
	x.NeedsHuman = x.row.State.NeedsHuman()
}

// engines adds sentences about the engine that works on the run, and about messages that wait for
// that engine.
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
		x.say("Engine %d, which worked on it, is %s; %s.", x.row.Owner, history.GoneText(x.owner), x.next())
	}
	if al, ok := history.Missing(x.alerts, x.row); ok {
		x.say("An alert of %s says: %s.", words.Stamp(al.At), strings.TrimSuffix(al.Message, "."))
	}
	switch n := len(x.inbox); {
	case n == 1:
		x.say("1 message waits for its owner: %s.", history.MessageText(x.inbox[0]))
	case n > 1:
		x.say("%d messages wait for its owner, the oldest: %s.", n, history.MessageText(x.inbox[0]))
	}
}

// room adds sentences about a run that waits for its unique key, or for a place under its
// concurrency limit. The sentences say which runs hold the key or the places, and when this run
// starts. For any other run, room does nothing.
func (x *explained) room(ctx context.Context, s *session.Session, r *history.Run) error {
	key, err := history.KeyWaitOf(ctx, s, r)
	if err != nil {
		return err
	}
	if key != nil {
		x.say("It waits for %s. It replaces that run, and starts when that run has ended. If that run reaches the goal first, this run is cancelled.", key.Text())
		x.Remedies = append(x.Remedies, "engine explain "+words.Quote(key.Holder))
	}
	room, err := history.InLineOf(ctx, s, r)
	if err != nil || room == nil {
		return err
	}
	x.say("It waits for %s.", room.Text())
	line := "no other run waits"
	if n := room.Places.Waiting - 1; n > 0 {
		line = render.Count(n, "other run") + " waits in line, too"
		if n > 1 {
			line = render.Count(n, "other run") + " wait in line, too"
		}
	}
	x.say("A run is admitted when one of them has ended: the run with the highest priority first, and a run that waits rises by one point in 6s. This run has priority %d; %s.",
		room.Line.Priority(), line)
	return nil
}

// lacks reports whether an alert says that no living engine has all agents of the run. It returns
// false if no engine is alive at all, or if the run needs a person.
func (x *explained) lacks() bool {
	_, lacks := history.Missing(x.alerts, x.row)
	return lacks && len(x.live) > 0 && !x.row.State.NeedsHuman()
}

// unable adds a sentence that says what a person can do if no living engine has the agents of
// the run.
func (x *explained) unable(ctx context.Context, s *session.Session) {
	x.say("Start an engine where its agents are installed, or cancel the run.")
	x.Remedies = append(x.Remedies, "engine serve")
	op := &operator.Operator{Store: s.Store, Sealer: s.Sealer, Defs: s.Defs}
	if op.Try(ctx, x.row.Run, machine.CancelRequested{}) == nil {
		x.Remedies = append(x.Remedies, fmt.Sprintf("engine cancel %s", words.Quote(x.row.Name)))
	}
}

// next returns a text that says which engine will become the owner of the run.
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
		seen = append(seen, history.MemberText(m))
	}
	return fmt.Sprintf("one of the %d engines alive (%s) takes it at its next pass if it has the agents", len(x.live), strings.Join(seen, ", "))
}

// agents adds a sentence for each agent of the run that cannot be used on this machine.
func (x *explained) agents(ctx context.Context, a *cli.App, r *history.Run) error {
	if r.Row.OwnerAlive {
		return nil // the owner works on the run, so it has the agents
	}
	catalog, err := module.Catalog(a, a.Path("."), nil, module.AgentFlags{})
	if err != nil {
		return err
	}
	for _, name := range words.Sorted(r.Flow.Agents) {
		agent := r.Flow.Agents[name]
		if err := catalog.Present(ctx, agent.Plugin, agent.Version, agent.Checksum); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			x.say("On this machine agent %s cannot be used: %s; an engine that has it can continue the run.%s",
				agent.Plugin, strings.TrimSuffix(err.Error(), "."), module.Hint(err))
		}
	}
	return nil
}

// lateAnswers adds sentences about the late replies that could settle a step, and adds the commands
// that settle this step. It adds nothing if the run needs no person.
func (x *explained) lateAnswers(ctx context.Context, a *cli.App, s *session.Session, r *history.Run) error {
	if !x.NeedsHuman {
		return nil
	}
	all, err := history.LateReplies(ctx, s, r)
	if err != nil {
		return err
	}
	op := &operator.Operator{Store: s.Store, Sealer: s.Sealer, Defs: s.Defs}
	seen := map[string]bool{}
	for _, l := range all {
		step := story.Node(r.State, r.Flow, int(l.Node)).Name
		if step == "" || seen[step] {
			continue
		}
		seen[step] = true
		found, err := verbs.LateSettlement(ctx, s, r, step)
		if err != nil {
			continue // the late replies cannot settle the step; `engine show` lists them
		}
		if op.Try(ctx, r.Row.Run, machine.SettleRequested{Step: step, As: found.As, Output: found.Output, Reason: "?"}) != nil {
			continue // the run would refuse the settlement, because the step's outcome is known
		}
		x.say("A late answer about %s is known: %s.", step, l.OutcomeText())
		x.Remedies = append([]string{fmt.Sprintf("engine settle %s --step %s --from-late-reply --reason TEXT", words.Quote(r.Row.Name), words.Quote(step))}, x.Remedies...)
	}
	return nil
}

func (x *explained) print(a *cli.App) error {
	if a.JSON {
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
		if al, ok := history.Missing(x.alerts, x.row); ok && !alive {
			m["agents_missing"] = history.AlertJSON(al)
		}
		if len(x.through) > 0 {
			m["needs_person_through"] = x.through
		}
		if !x.Next.IsZero() {
			m["next"] = x.Next.In(time.UTC)
		}
		return a.PrintJSON(m)
	}
	if err := a.Print("%s\n", render.Clean(x.String())); err != nil {
		return err
	}
	for i, r := range x.Remedies {
		if i == 0 {
			if err := a.Print("\n"); err != nil {
				return err
			}
		}
		if err := a.Print("  %s\n", render.Clean(r)); err != nil {
			return err
		}
	}
	return nil
}
