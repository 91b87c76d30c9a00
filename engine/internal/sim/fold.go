package sim

import (
	"context"
	"fmt"
	"strconv"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine"
)

// A story is what a run's journal says, folded as its rows land. It is kept
// beside the engines, so that what they keep in memory is not believed.
type story struct {
	id      machine.RunID
	name    string
	state   *machine.State
	rows    int
	records []machine.Record
	facts   []machine.Fact
	alerts  map[string]int // that the facts call for, by kind
	started map[attempt]int
	sent    map[attempt]int
	asked   map[int64]int // by message: times answered
}

// An attempt names calls as agents see them. A repeated round may use a number
// again, so they are counted.
type attempt struct {
	step   string
	number int
}

// landed checks a run after each commit: only its owner wrote, and nobody whom
// the store had declared dead (I3); its row is what its journal says (I10); and
// its bound is no later than what is due (promise 13).
func (w *world) landed(ctx context.Context, by engine.EngineID, dead bool, run machine.RunID) {
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
	row, err := w.store.Find(ctx, strconv.FormatInt(int64(run), 10))
	if err != nil {
		w.faultLocked("find run %d: %v", run, err)
		return
	}
	if more, err := w.store.Rows(ctx, run, int32(s.rows), 1); err != nil || len(more) > 0 {
		return // another row has landed since: whoever landed it looks
	}
	status := s.state.Status()
	if row.State != status {
		w.faultLocked("%s: replay says %v, the row says %v (I10)", s.name, status, row.State)
	}
	if row.Owner != by {
		w.faultLocked("%s: engine %d wrote, but engine %d owns it (I3)", s.name, by, row.Owner)
	}
	if due, ok := s.state.NextDue(); ok && !status.Final() && row.NextCheck.After(due) {
		w.faultLocked("%s: bound %v is later than what is due at %v (promise 13)", s.name, row.NextCheck, due)
	}
}

func (w *world) storyLocked(run machine.RunID) *story {
	s := w.stories[run]
	if s == nil {
		s = &story{id: run, state: machine.NewState(), alerts: map[string]int{}, started: map[attempt]int{}, sent: map[attempt]int{}, asked: map[int64]int{}}
		w.stories[run] = s
		w.order = append(w.order, s)
	}
	return s
}

// foldLocked applies the rows that are new.
func (w *world) foldLocked(ctx context.Context, s *story) bool {
	rows, err := w.store.Rows(ctx, s.id, int32(s.rows), 1000)
	if err != nil {
		w.faultLocked("read run %d: %v", s.id, err)
		return false
	}
	for _, row := range rows {
		if int(row.Seq) != s.rows {
			w.faultLocked("run %d: row %d follows row %d (I10)", s.id, row.Seq, s.rows-1)
			return false
		}
		s.rows++
		records, err := engine.DecodeRow(nil, s.id, row)
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

func (w *world) applyLocked(s *story, rec machine.Record) {
	if s.state.Records() > 0 && rec.At().Before(s.state.Last()) {
		w.faultLocked("%s: time falls from %v to %v within the run", s.name, s.state.Last(), rec.At())
	}
	facts := rec.Facts(w.flow, s.state)
	s.state.Apply(rec)
	s.name = s.state.Name()
	s.records = append(s.records, rec)
	for _, f := range facts {
		s.facts = append(s.facts, f)
		w.traceLocked("%s %s", s.name, tell(f))
		switch f.Kind {
		case machine.FactAttemptStarted:
			s.started[attempt{f.Step, f.Attempt}]++
		case machine.FactVerb:
			s.asked[f.Ask]++
		}
	}
}

// tell writes a fact for the story.
func tell(f machine.Fact) string {
	undo := ""
	if f.Undo {
		undo = " undo"
	}
	return fmt.Sprintf("%s %s%s #%d %s %s %s %s", f.Kind, f.Step, undo, f.Attempt, f.Purpose, f.Status, f.Code, f.Message)
}
