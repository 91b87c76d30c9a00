package owner

import (
	"context"
	"time"

	"github.com/saga-engine/engine/engine/internal/call"
	"github.com/saga-engine/engine/engine/internal/commit"
	"github.com/saga-engine/engine/engine/internal/failpoint"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/store"
)

// A LostRun is a run with which too many engines died, as it stands in the store.
type LostRun struct {
	Head   store.Head
	Seq    int32        // number of its next row
	Before journal.Link // of its last row
	At     time.Time
	Event  machine.EngineLost
}

// parkLost commits the row that parks a run, and makes this engine its owner. done
// is told what became of it.
func (sh *shard) parkLost(ctx context.Context, run LostRun, done func(error)) {
	n, head, event := sh.s.n, run.Head, run.Event
	if sh.runs[head.Run] != nil { // it is being worked on here
		done(nil)
		return
	}
	rec := machine.Lost(run.At, event, head.State)
	t := store.Transition{Run: head.Run, Seq: run.Seq, At: run.At, Owner: &sh.s.engine, NextCheck: store.Never}
	AddRecord(&t, rec, machine.NewState())
	data, _, err := journal.EncodeRow(n.cfg.Sealer, &sh.rows, run.Before, head.Run, run.Seq, run.At, []machine.Record{rec})
	if err != nil {
		done(err)
		return
	}
	t.Data = data
	failpoint.HitEvent("record.before", event)
	ok := sh.commitRow(ctx, t, func(l commit.Landing) {
		if l.Err == nil {
			failpoint.HitEvent("record.after", event)
			n.cfg.Logger.Error("run is parked: engines ended with it in hand", "run", head.Name, "code", machine.CodeEngineLost, "deaths", event.Deaths, "message", event.Why)
			n.Quarantined.Gone(head.Run)
			n.Followers.Tell(head.Run)
		}
		done(l.Err)
	})
	if !ok { // this membership ends
		done(call.ErrNotOwner)
	}
}
