package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/saga-engine/engine/engine/internal/call"
	"github.com/saga-engine/engine/engine/internal/failpoint"
	"github.com/saga-engine/engine/engine/internal/outage"
	"github.com/saga-engine/engine/engine/internal/owner"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/snapshots"
)

// take takes runs over, and returns how many it got. Before it decodes a run, it records in the
// store that this engine has the run in hand (store.Hands). Usually it takes over many runs
// together. But if another engine died with a run in hand, take takes over this run alone: if this
// engine dies, too, it is clear which run was the cause. If too many engines died with a run in
// hand, take parks the run.
func (t *taker) take(ctx context.Context, runs []status.RunID, how takeoverScope) (int, error) {
	if len(runs) == 0 {
		return 0, nil
	}
	suspects, err := t.n.cfg.Store.Suspects(ctx, t.engine, runs)
	if err != nil {
		return 0, fmt.Errorf("take runs over: %w", err)
	}
	hands, clean := t.runs.Hands, runs
	if len(suspects) > 0 {
		clean = slices.DeleteFunc(slices.Clone(runs), func(run status.RunID) bool { _, suspect := suspects[run]; return suspect })
	}
	leave, err := hands.Enter(ctx)
	if err != nil {
		return 0, err
	}
	taken, err := t.takeTogether(ctx, clean, how, 0)
	leave()
	for _, run := range slices.Sorted(maps.Keys(suspects)) {
		n, x := 0, suspects[run]
		switch {
		case err != nil:
			return taken, err
		// Another engine has the run in hand. Either that engine takes the run over, or it dies
		// and its death counts against the run.
		case x.InHand && t.leaves(run):
		case x.Deaths >= store.MaxDeaths:
			err = t.park(ctx, run, x.Deaths, how)
		default:
			if leave, err = hands.EnterSuspect(ctx); err == nil {
				n, err = t.takeTogether(ctx, []status.RunID{run}, how, x.Deaths)
				leave()
			}
		}
		taken += n
	}
	return taken, err
}

// takeTogether takes runs over together, so that they share commits. It waits until each takeover
// is committed or refused, and returns how many runs it got. Some runs are not taken over:
//   - A run that this engine cannot work on is quarantined, and added to the backoff set.
//   - A run that waits for a person, and has no message that can be read here, is added to the
//     backoff set.
//   - For a run whose agents are missing here, takeTogether only decides the events that need no
//     agent. But if the owner of the run is alive (how.passed), takeTogether decides nothing: it
//     quarantines the run, and adds it to the backoff set.
//
// The parameter `deaths` is the number of engines that died with a run in hand. This number must be
// the same for all given runs.
func (t *taker) takeTogether(ctx context.Context, runs []status.RunID, how takeoverScope, deaths int) (int, error) {
	n := t.n
	if len(runs) == 0 {
		return 0, nil
	}
	how.woken = n.shared.Backoffs.Woken()
	held := make(chan error, 1)
	go func() { held <- t.runs.Hands.PutInHand(ctx, runs...) }()
	defer t.runs.Hands.LetGo(runs...)
	loaded, err := snapshots.Load(ctx, n.cfg.Store, runs...)
	if e := <-held; e != nil {
		err = e // no run may be decoded before the store knows that the runs are in hand
	}
	if err != nil {
		return 0, fmt.Errorf("take runs over: %w", err)
	}
	failpoint.Hit("takeover.loaded")
	results := make(chan error, len(loaded))
	asked := 0
	checked := map[string]error{} // for each AgentSpec.Key, the result of Check
	scratch := &journal.Scratch{}
	elsewhere := t.unstaffed.elsewhere(ctx)
	var asides []*owner.UnstaffedDecision
	for _, l := range loaded {
		if l.Head.State.Final() || l.Head.Owner == t.engine || !how.from(l.Head) {
			continue
		}
		a, lacks, err := t.consider(ctx, l, how, checked, scratch)
		switch {
		case err != nil || lacks == nil:
		case how.passed: // the owner is alive, and may have the missing agents
			err = lacks.Err
		default:
			var row *owner.UnstaffedDecision
			if row, err = t.unstaffed.decide(ctx, *lacks, elsewhere); row != nil {
				asides = append(asides, row)
			}
		}
		var alone *journal.RunError
		switch {
		case errors.As(err, &alone):
			n.backOff(l.Head.Run, alone)
			continue
		case err != nil:
			return 0, fmt.Errorf("take over run %s: %w", naming.RunName(l.Head.Run), err)
		case a == nil: // the run must not be taken over now, or its agents are missing here
			continue
		}
		a.From, a.Done = l.Head.Owner, func(err error) { results <- err }
		a.Deaths, a.Suspect = deaths, deaths > 0 || l.Head.Owner != 0 && !how.passed
		asked++
		t.runs.Adopt(l.Head.Run, *a)
	}
	taken := 0
	for range asked {
		select {
		case err := <-results:
			if err == nil {
				taken++
			}
		case <-t.ctx.Done():
			return taken, fmt.Errorf("take runs over: %w", context.Cause(t.ctx))
		case <-ctx.Done():
			return taken, ctx.Err()
		}
	}
	for _, row := range asides {
		if err := t.unstaffed.awaitCommit(ctx, row); err != nil {
			return taken, err
		}
	}
	return taken, nil
}

// consider computes the state of a run and decides how to take the run over. It returns an Adoption
// if this engine has the run's agents, and an Unstaffed if agents are missing here. It returns
// neither if the run must not be taken over now. It returns a *RunError if this engine cannot work
// on the run. The parameter `checked` holds the results of earlier checks of agents, by
// AgentSpec.Key.
func (t *taker) consider(ctx context.Context, l snapshots.Loaded, how takeoverScope, checked map[string]error, scratch *journal.Scratch) (*owner.Adoption, *owner.Unstaffed, error) {
	n, now := t.n, t.n.shared.Clock.Now()
	story, err := n.shared.Fold(ctx, l, scratch)
	if err != nil {
		return nil, nil, err
	}
	a := &owner.Adoption{Story: &story}
	due, timed := story.State.NextDue()
	rests := n.rests(story)
	a.Read = true
	if l.Waiting {
		if a.Messages, err = t.runs.Messages(ctx, l.Head.Run, owner.InboxLimit); err != nil {
			return nil, nil, err
		}
	}
	switch {
	case rests && !readable(a.Messages):
		if !timed {
			due = now.Add(20 * n.cfg.Options.MaxScan)
		}
		n.shared.Backoffs.Rest(l.Head.Run, due, how.woken)
		return nil, nil, nil
	case how.due && (!timed || due.After(now)) && !readable(a.Messages):
		return nil, nil, nil
	}
	if a.Specs, err = n.shared.Specs.Specs(story.Flow, story.State.Vars()); err != nil {
		return nil, nil, &journal.RunError{Run: int64(l.Head.Run), Name: l.Head.Name, Err: err}
	}
	if equipped(a.Specs, checked) {
		return a, nil, nil
	}
	x := &owner.Unstaffed{Loaded: l.Loaded, Story: story, Specs: a.Specs, Messages: a.Messages, Why: map[string]string{}}
	for _, agent := range slices.Sorted(maps.Keys(a.Specs)) {
		spec := a.Specs[agent]
		if _, ok := checked[spec.Key]; !ok {
			checked[spec.Key] = n.shared.Check(ctx, spec)
		}
		err := checked[spec.Key]
		switch {
		case err == nil:
			continue
		case ctx.Err() != nil:
			return nil, nil, ctx.Err()
		case x.Err == nil:
			x.Err = &journal.RunError{Run: int64(l.Head.Run), Name: l.Head.Name, Err: err, Hint: journal.HintFor(err)}
		}
		x.Why[agent] = err.Error()
	}
	if x.Err != nil {
		return nil, x, nil
	}
	return a, nil, nil
}

// equipped returns true if the earlier checks in the parameter `checked` show that this engine can
// call all given agents. It returns false if an agent cannot be called or was not checked yet.
func equipped(specs map[string]invoke.AgentSpec, checked map[string]error) bool {
	for _, spec := range specs {
		if err, ok := checked[spec.Key]; !ok || err != nil {
			return false
		}
	}
	return true
}

// readable reports whether this engine can decode at least one of the messages.
func readable(messages []owner.Message) bool {
	for _, l := range messages {
		if l.Err == nil {
			return true
		}
	}
	return false
}

// orphans fences the given dead engines, and takes over their runs. If how.owned is false, it also
// takes the runs without an owner. It returns how many runs it got.
func (t *taker) orphans(ctx context.Context, dead []store.EngineID, how takeoverScope) (int, error) {
	st, o := t.n.cfg.Store, t.n.cfg.Options
	gone := map[store.EngineID]bool{0: true}
	for _, engine := range dead {
		ok, err := st.Fence(ctx, engine)
		if err != nil {
			return 0, fmt.Errorf("fence engine %d: %w", engine, err)
		}
		gone[engine] = ok
	}
	from := how.from
	how.from = func(h store.Head) bool { return gone[h.Owner] && from(h) }
	owners := store.OwnerDead | store.OwnerNone
	if how.owned {
		owners = store.OwnerDead
	}
	pages := newPager(ctx, func(ctx context.Context, runs []status.RunID) (int, error) { return t.take(ctx, runs, how) })
	var err error
	for after := status.RunID(0); pages.ctx.Err() == nil; {
		var runs []status.RunID
		if runs, err = t.n.find(pages.ctx, store.RunFilter{Owners: owners, After: after, Limit: o.ClaimBatch}); err != nil {
			err = fmt.Errorf("find runs without an owner: %w", err)
			break
		}
		if len(runs) == 0 {
			break
		}
		after = runs[len(runs)-1]
		if free := t.withoutBackoff(runs); len(runs) == o.ClaimBatch {
			pages.add(free)
		} else { // this page is not full, so it is probably the last page
			pages.now(free)
		}
	}
	taken, failed := pages.wait()
	if failed != nil {
		return taken, failed
	}
	if err != nil {
		return taken, err
	}
	// Fence the dead engines again. Then the store forgets those that have no runs any more.
	for _, engine := range dead {
		if !gone[engine] {
			continue
		}
		if _, err := st.Fence(ctx, engine); err != nil {
			return taken, fmt.Errorf("fence engine %d: %w", engine, err)
		}
	}
	return taken, nil
}

// withoutBackoff returns the given runs, but leaves out runs in the backoff set that a takeover
// must skip now.
func (t *taker) withoutBackoff(runs []status.RunID) []status.RunID {
	now := t.n.shared.Clock.Now()
	var out []status.RunID
	for _, run := range runs {
		if !t.n.shared.Backoffs.Stops(run, now) {
			out = append(out, run)
		}
	}
	return out
}

// adopt does the work of Node.Adopt: it takes over one run, and waits for the outcome. It
// returns nil if this engine owns the run already or if the run has ended. It returns an
// error if the owner is alive, or if this engine cannot work on the run.
func (t *taker) adopt(ctx context.Context, run status.RunID) error {
	n := t.n
	l, err := n.shared.ReadRun(ctx, run)
	head := l.Head
	switch {
	case err != nil:
		return fmt.Errorf("take over run %s: %w", naming.RunName(run), err)
	case head.Owner == t.engine || head.State.Final():
		return nil
	}
	if head.Owner != 0 {
		dead, err := n.cfg.Store.Fence(ctx, head.Owner)
		switch {
		case err != nil:
			return fmt.Errorf("fence engine %d: %w", head.Owner, err)
		case !dead:
			return fmt.Errorf("take over run %s: %w", naming.RunName(run), call.ErrNotOwner)
		}
	}
	known, err := n.cfg.Store.Suspects(ctx, t.engine, []status.RunID{run})
	if err != nil {
		return fmt.Errorf("take over run %s: %w", naming.RunName(run), err)
	}
	deaths := known[run].Deaths
	switch {
	case known[run].InHand:
		return fmt.Errorf("take over run %s: another engine is taking it over: %w", naming.RunName(run), call.ErrNotOwner)
	case deaths >= store.MaxDeaths:
		return &journal.RunError{Run: int64(run), Name: head.Name, Err: errors.New(lostWhy(deaths)), Hint: "`engine explain` says what can be done"}
	}
	hands := t.runs.Hands
	enter := hands.Enter
	if deaths > 0 {
		enter = hands.EnterSuspect
	}
	leave, err := enter(ctx)
	if err != nil {
		return fmt.Errorf("take over run %s: %w", naming.RunName(run), err)
	}
	defer leave()
	defer hands.LetGo(run)
	if err := hands.PutInHand(ctx, run); err != nil {
		return fmt.Errorf("take over run %s: %w", naming.RunName(run), err)
	}
	story, err := n.shared.Fold(ctx, l, &journal.Scratch{})
	if err != nil {
		return err
	}
	specs, err := n.shared.Specs.Specs(story.Flow, story.State.Vars())
	if err != nil {
		return &journal.RunError{Run: int64(run), Name: head.Name, Err: err}
	}
	if err := n.shared.Equipped(ctx, run, head.Name, specs); err != nil {
		return err
	}
	answer := make(chan error, 1)
	t.runs.Adopt(run, owner.Adoption{From: head.Owner, Specs: specs, Deaths: deaths, Suspect: deaths > 0 || head.Owner != 0, Done: func(err error) { answer <- err }})
	select {
	case err = <-answer:
	case <-t.ctx.Done():
		err = call.ErrNotOwner
	case <-ctx.Done():
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("take over run %s: %w", naming.RunName(run), err)
	}
	return nil
}

// unable decides on the messages of a run that has no owner and whose agents are missing
// here.
func (t *taker) unable(ctx context.Context, run status.RunID) {
	_, err := t.take(ctx, []status.RunID{run}, takeoverScope{from: func(h store.Head) bool { return h.Owner == 0 }})
	if err != nil && ctx.Err() == nil && !overFor(err) {
		t.n.shared.Outage.Failed(outage.Unstaffed, err, "run", naming.RunName(run))
	} else if err == nil {
		t.n.shared.Outage.Worked(outage.Unstaffed, time.Time{})
	}
}
