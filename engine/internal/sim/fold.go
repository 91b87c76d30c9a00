package sim

import (
	"context"
	"fmt"
	"strconv"

	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/story"
)

// landed checks a run after each commit of a journal row. The store must not have declared the
// engine that wrote the row dead, and this engine must own the run (I3). In two cases, the run may
// have no owner: if it has only one row, or if the engine that wrote the row has released it. The
// entry of the run in the store's list of runs must have the status that the journal gives (I10).
// The next_check in this entry must not be later than the run's earliest due time (promise 13).
func (w *world) landed(ctx context.Context, by store.EngineID, dead bool, run status.RunID, seq int32) {
	ctx = context.WithoutCancel(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	if dead {
		w.faultLocked("run %d: engine %d wrote after it was declared dead (I3)", run, by)
	}
	s := w.storyLocked(run)
	if !w.foldLocked(ctx, s) {
		return
	}
	row, err := store.Complete(w.store).Find(ctx, strconv.FormatInt(int64(run), 10))
	if err != nil {
		w.faultLocked("find run %d: %v", run, err)
		return
	}
	if more, err := w.store.Rows(ctx, run, int32(s.rows), 1); err != nil || len(more) > 0 {
		// Another row was committed meanwhile. The run is checked in the call of landed for that
		// row.
		return
	}
	if int(seq) != s.rows-1 {
		return
	}
	status := s.state.Status()
	if row.State != status {
		w.faultLocked("%s: replay says %v, the row says %v (I10)", s.name, status, row.State)
	}
	// The owner releases the run when the owner stops.
	handed := row.Owner == 0 && s.row.Owner == by
	// Only the first row of a run may have no owner.
	if row.Owner != by && !handed && (row.Owner != 0 || s.rows > 1) {
		w.faultLocked("%s: engine %d wrote, but engine %d owns it (I3)", s.name, by, row.Owner)
	}
	if !handed {
		w.judgeTakeoverLocked(s, row.Head)
	}
	s.row = row.Head
	if w.kin != nil {
		w.kin.landedLocked(ctx, s, row)
	}
	if due, ok := s.state.NextDue(); ok && !status.Final() && !s.state.Run().Lost() && row.NextCheck.After(due) {
		w.faultLocked("%s: bound %v is later than what is due at %v (promise 13)", s.name, row.NextCheck, due)
	}
}

// foldLocked reads the new rows of a run and applies them to s. It returns false if it has
// found a fault in them.
func (w *world) foldLocked(ctx context.Context, s *runLog) bool {
	rows, err := w.store.Rows(ctx, s.id, int32(s.rows), 1000)
	if err != nil {
		w.faultLocked("read run %d: %v", s.id, err)
		return false
	}
	s.history.Run = s.id
	if err := s.history.Follow(rows); err != nil {
		w.faultLocked("%v (I13)", err)
		return false
	}
	for _, row := range rows {
		if int(row.Seq) != s.rows {
			w.faultLocked("run %d: row %d follows row %d (I10)", s.id, row.Seq, s.rows-1)
			return false
		}
		s.rows++
		records, err := journal.DecodeRow(nil, s.id, row)
		if err != nil {
			w.faultLocked("run %d: row %d: %v", s.id, row.Seq, err)
			return false
		}
		for _, rec := range records {
			w.applyLocked(s, rec)
		}
	}
	return true
}

func (w *world) applyLocked(s *runLog, rec machine.Record) {
	if int(s.state.Run().Records) > 0 && rec.At().Before(s.state.Last()) {
		w.faultLocked("%s: time falls from %v to %v within the run", s.name, s.state.Last(), rec.At())
	}
	if s.flow == nil {
		s.flow = w.flow
		if ev, ok := rec.Event().(machine.Started); ok && ev.Name == poisonName {
			s.flow = w.def.Workflow("poison")
		}
		w.kin.beginLocked(s, rec)
		mover{w.kin}.originLocked(s, rec)
	}
	mover{w.kin}.movedLocked(s, rec)
	w.kin.reachedLocked(s, rec)
	facts, before := story.Facts(s.flow, s.state, rec), s.state.Status()
	s.state.Apply(rec)
	if after := s.state.Status(); after.NeedsHuman() && after != before {
		s.turns[after.String()]++
	}
	s.name = s.state.Name()
	s.records = append(s.records, rec)
	switch ev := rec.Event().(type) {
	case machine.CancelRequested:
		s.stopped = s.stopped || ev.NoCompensate
		w.kin.cancelledLocked(s, rec, ev)
	case machine.CompensateRequested:
		if ev.Skip {
			s.skipped[s.kin.first(ev.Step)] = true
		}
	}
	for _, f := range facts {
		s.facts = append(s.facts, f)
		w.traceLocked("%s %s", s.name, factText(f))
		switch f.Kind {
		case story.FactAttemptStarted:
			s.started[attempt{s.kin.first(f.Step), f.Attempt}]++
			w.kin.forwardLocked(s, f)
			s.kin.calls(f.Step)
			if len(s.unheard) > 0 {
				w.faultLocked("%s: attempt %d of %s starts before %d verbs that waited when its owner took it", s.name, f.Attempt, f.Step, len(s.unheard))
			}
		case story.FactAttemptFinished:
			if k := (attempt{s.kin.first(f.Step), f.Attempt}); f.Status == "ok" && !w.kin.answeredLocked(s, f) && s.heard[k] == 0 {
				w.faultLocked("%s: attempt %d of %s is done, but no answer came in time (S28)", s.name, f.Attempt, f.Step)
			}
		case story.FactVerb, story.FactSignalReceived:
			if f.Status == "accepted" {
				s.accepted++
			}
			if f.Ask != 0 {
				s.answers[f.Ask] = append(s.answers[f.Ask], f)
				delete(s.unheard, f.Ask)
			}
		}
	}
}

// judgeTakeoverLocked checks a change of the owner (I2). An engine may take a run in three
// cases: the run has no owner; the store has declared the owner dead; or the run is overdue by
// at least the duration of a lease.
func (w *world) judgeTakeoverLocked(s *runLog, now store.Head) {
	was := s.row
	if was.Run == 0 || was.Owner == now.Owner || was.Owner == 0 || w.buried[was.Owner] {
		return
	}
	if late := w.now().Sub(was.NextCheck); late < w.conditions.lease {
		w.faultLocked("%s: engine %d took it from engine %d, which is alive and %v late (I2)", s.name, now.Owner, was.Owner, late)
	}
}

// factText returns a fact as one line of text.
func factText(f story.Fact) string {
	undo := ""
	if f.Undo {
		undo = " undo"
	}
	return fmt.Sprintf("%s %s%s #%d %s %s %s %s", f.Kind, f.Step, undo, f.Attempt, f.Purpose, f.Status, f.Code, f.Message)
}
