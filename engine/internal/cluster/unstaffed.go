package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/internal/commit"
	"github.com/saga-engine/engine/engine/internal/failpoint"
	"github.com/saga-engine/engine/engine/internal/owner"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// AlertAgentMissing is the code of an alert of kind overdue, see engine.AlertAgentMissing.
const AlertAgentMissing = "agent_missing"

// maxSeen is the largest number of engines that an alert names.
const maxSeen = 8

// A cause holds the reasons to make a decision about an unstaffed run.
type cause struct {
	spoken bool // a person has sent a verb
	due    bool // the run's time has passed, and perhaps no other engine notices that
	late   bool // the run has been overdue for longer than Options.grace: an alert may be needed
}

// grace returns how long a run of another engine must be overdue before this engine takes it
// over. Until then, its owner may still continue it.
func (o Options) grace() time.Duration { return max(o.Lease, 2*o.MaxScan) }

// The type unstaffed decides events of runs that this engine could take over if it had their
// agents.
type unstaffed struct {
	n      *Local
	engine store.EngineID
	runs   *owner.Scheduler
	ctx    context.Context // ends with the membership; used only to notice the end and its reason
}

// decide decides the waiting events of an unstaffed run, if this is possible without an agent. It
// notes the run as quarantined, puts the run into the backoff set, and starts to commit a row; the
// method `awaitCommit` waits for the outcome. decide returns nil if there is nothing to write. The
// function in the parameter `elsewhere` reports whether other engines have runs of a workflow in
// progress.
func (t *unstaffed) decide(ctx context.Context, x owner.Unstaffed, elsewhere func(string) (bool, error)) (*owner.UnstaffedDecision, error) {
	n := t.n
	n.noteQuarantined(x.Head.Run, x.Err)
	overdue := x.OverdueFrom().Add(n.cfg.Options.grace())
	now := n.shared.Clock.Now()
	n.shared.Backoffs.AddUnstaffed(x.Head.Run, now, n.cfg.Options.MaxScan, x.Wake(now, n.cfg.Options.grace()), len(x.Messages) > 0)
	why := cause{
		spoken: slices.ContainsFunc(x.Messages, func(l owner.Message) bool { return l.Err == nil && l.Kind == store.MessageVerb }),
		due:    x.Due(n.cfg.Options.grace()).Compare(now) <= 0,
		late:   !overdue.After(now) && n.shared.Backoffs.ReportedAt(x.Head.Run) != len(x.Rows),
	}
	if why == (cause{}) {
		return nil, nil
	}
	a := &owner.UnstaffedDecision{Unstaffed: x, Landed: make(chan commit.Landing, 1)}
	if err := t.record(ctx, a, why, elsewhere); err != nil {
		return nil, err
	}
	if a.Transition.Data == nil {
		if a.Alerted {
			n.shared.Backoffs.Reported(x.Head.Run, len(x.Rows))
		}
		return nil, nil
	}
	t.runs.CommitUnstaffed(a)
	return a, nil
}

// record decides an unstaffed run and builds the next row of its journal in a.Transition. If
// there is nothing to write, a.Transition.Data stays nil. The row starts no call: steps that
// could start are held, and the hold names the missing agent.
func (t *unstaffed) record(ctx context.Context, a *owner.UnstaffedDecision, why cause, elsewhere func(string) (bool, error)) error {
	state := a.Story.State
	alarm := why.late && !why.spoken && owner.Moves(state.Status())
	if alarm {
		var err error
		if alarm, err = t.mayAlert(ctx, a, elsewhere); err != nil || !alarm && !why.due {
			return err
		}
	}
	late, err := t.runs.DecideUnstaffed(a, why.spoken)
	if err != nil {
		return &journal.RunError{Run: int64(a.Head.Run), Name: a.Head.Name, Err: err, Hint: "another version of the engine may be able to go on"}
	}
	if alarm && owner.Moves(state.Status()) {
		live, err := t.n.cfg.Store.Live(ctx)
		if err != nil {
			return fmt.Errorf("list engines: %w", err)
		}
		a.Alerted = true
		a.Transition.Alerts = append(a.Transition.Alerts, store.Alert{Kind: "overdue", Code: AlertAgentMissing, Message: naming.CleanText(missingAgentsMessage(&a.Unstaffed, t.engine, live))})
	}
	if len(a.Records) == 0 && len(a.Transition.Alerts) == 0 && len(a.Transition.Consumed) == 0 {
		return nil
	}
	for _, l := range late { // a late reply must be kept as evidence before the row removes its message
		if !t.n.shared.KeepSurely(ctx, l) {
			return context.Cause(ctx)
		}
		t.n.cfg.Observer.LateReply(l.Run, machine.AttemptID{Node: int(l.Node), Call: int(l.Call)})
	}
	return a.Row()
}

// awaitCommit waits until the row of the decision a is committed or refused. After the commit it
// notifies the observer, logs the alerts, and updates the backoff of the run. If the store refused
// the row, it quarantines the run. awaitCommit returns an error only if it cannot wait any longer.
func (t *unstaffed) awaitCommit(ctx context.Context, a *owner.UnstaffedDecision) error {
	var l commit.Landing
	select {
	case l = <-a.Landed:
	case <-t.ctx.Done():
		return context.Cause(t.ctx)
	case <-ctx.Done():
		return ctx.Err()
	}
	n, run := t.n, a.Head.Run
	switch {
	// Another engine has written to the run first, or this membership is over.
	case errors.Is(l.Err, store.ErrStale), overFor(l.Err):
		return nil
	case l.Err != nil:
		n.backOff(run, &journal.RunError{Run: int64(run), Name: a.Head.Name, Err: fmt.Errorf("the store refuses row %d: %w", a.Transition.Seq, l.Err)})
		return nil
	}
	for _, rec := range a.Records {
		failpoint.HitEvent("record.after", rec.Event())
	}
	if len(a.Facts) > 0 {
		n.cfg.Observer.Facts(run, a.Story.Facts+1, a.Facts)
	}
	for _, al := range a.Transition.Alerts {
		n.cfg.Logger.Warn("alert", "run", a.Head.Name, "kind", al.Kind, "step", al.Step, "code", al.Code, "message", al.Message)
	}
	n.shared.Followers.Notify(run)
	if a.Transition.State.Final() {
		n.shared.Quarantined.Gone(run)
		n.shared.Backoffs.Take(run)
		return nil
	}
	now := n.shared.Clock.Now()
	a.Head.Owner, a.Head.NextCheck = 0, a.Transition.NextCheck
	n.shared.Backoffs.AddUnstaffed(run, now, n.cfg.Options.MaxScan, a.Wake(now, n.cfg.Options.grace()), false)
	if a.Alerted {
		n.shared.Backoffs.Reported(run, len(a.Rows)+1)
	}
	return nil
}

// mayAlert reports whether an alert about the missing agents of the run is due. It returns
// false if such an alert was raised since the last change of the run. It also returns false
// if other engines work on runs of the same workflow, because one of these engines will
// probably take over this run.
func (t *unstaffed) mayAlert(ctx context.Context, a *owner.UnstaffedDecision, elsewhere func(string) (bool, error)) (bool, error) {
	alerts, err := t.n.cfg.Store.Alerts(ctx, a.Head.Run, 20)
	if err != nil {
		return false, fmt.Errorf("look for an alert: %w", err)
	}
	since, err := moved(&a.Unstaffed, t.n.cfg.Sealer)
	if err != nil {
		return false, err
	}
	for _, al := range alerts {
		if al.Kind == "overdue" && al.Code == AlertAgentMissing && !al.At.Before(since) {
			a.Alerted = true
			return false, nil
		}
	}
	busy, err := elsewhere(a.Story.Flow.Name)
	return !busy, err
}

// moved returns the time of the last row of the run that holds a record of an event other than
// TimePassed. It ignores records of TimePassed, because an engine without the run's agents may have
// written them. If there is no such row, or if it is before the rows that were read, moved returns
// the time of the first row that was read.
func moved(x *owner.Unstaffed, sealer crypt.Sealer) (time.Time, error) {
	for i := len(x.Rows) - 1; i > 0; i-- {
		records, err := journal.DecodeRow(sealer, x.Head.Run, x.Rows[i])
		if err != nil {
			return time.Time{}, err
		}
		for _, rec := range records {
			if _, passed := rec.Event().(machine.TimePassed); !passed {
				return x.Rows[i].At, nil
			}
		}
	}
	return x.Rows[0].At, nil
}

// missingAgentsMessage returns the text of an alert. The text says which agents are missing on this
// engine, whose number is the parameter `self`. It also says which engines are alive.
func missingAgentsMessage(x *owner.Unstaffed, self store.EngineID, live []store.Member) string {
	var missing []string
	for _, agent := range slices.Sorted(maps.Keys(x.Why)) {
		name := x.Specs[agent].Plugin
		if v := x.Specs[agent].Version; v != "" {
			name += " " + v
		}
		missing = append(missing, fmt.Sprintf("%s (%s)", name, x.Why[agent]))
	}
	var seen []string
	for i, m := range live {
		if i == maxSeen {
			seen = append(seen, fmt.Sprintf("%d more", len(live)-i))
			break
		}
		seen = append(seen, fmt.Sprintf("engine %d at %s", m.Engine, m.Address))
	}
	return fmt.Sprintf("no engine continues the run; engine %d lacks agent %s; engines seen: %s",
		self, strings.Join(missing, ", "), strings.Join(seen, ", "))
}

// elsewhere returns a function that reports whether other live engines have runs of a
// workflow in progress. If so, one of these engines probably has the agents of the workflow.
// The function asks the store only once for each workflow.
func (t *unstaffed) elsewhere(ctx context.Context) func(flow string) (bool, error) {
	known := map[string]bool{}
	return func(flow string) (bool, error) {
		if busy, ok := known[flow]; ok {
			return busy, nil
		}
		rows, err := t.n.cfg.Store.Runs(ctx, store.RunFilter{
			Workflow: flow, States: []status.RunState{status.RunRunning, status.RunWaiting, status.RunCompensating}, Limit: 1000,
		})
		if err != nil {
			return false, fmt.Errorf("look for runs of workflow %q in progress: %w", flow, err)
		}
		known[flow] = slices.ContainsFunc(rows, func(r store.RunRow) bool { return r.OwnerAlive && r.Owner != 0 && r.Owner != t.engine })
		return known[flow], nil
	}
}
