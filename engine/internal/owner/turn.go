package owner

import (
	"sync/atomic"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store/naming"
)

// A turn is the task that a shard works on now. Any goroutine may read it.
type turn struct {
	began atomic.Int64 // unix nanoseconds; 0 = nothing
	run   atomic.Int64 // the run it is about; 0 = none in particular
	most  atomic.Int64 // nanoseconds that the slowest task took
}

// start notes that a task begins, and that the one before it is over.
func (t *turn) start(run status.RunID) { t.next(run, time.Now().UnixNano()) }

// end notes that the shard waits for work, or for the committer.
func (t *turn) end() {
	if t.began.Load() != 0 {
		t.next(0, 0)
	}
}

// next begins a task at a time, in unix nanoseconds; 0 = there is none.
func (t *turn) next(run status.RunID, at int64) {
	if began := t.began.Load(); began != 0 {
		over := at
		if over == 0 {
			over = time.Now().UnixNano()
		}
		t.most.Store(max(t.most.Load(), over-began)) // only the shard's goroutine writes
	}
	t.run.Store(int64(run))
	t.began.Store(at)
}

// takes returns for how long the task has been going on, and its run.
func (t *turn) takes() (time.Duration, status.RunID) {
	at := t.began.Load()
	if at == 0 {
		return 0, 0
	}
	return time.Since(time.Unix(0, at)), status.RunID(t.run.Load())
}

// Longest returns for how long the slowest task of all shards has been going on,
// and its run.
func (s *Scheduler) Longest() (most time.Duration, run status.RunID) {
	for _, sh := range s.shards {
		if d, about := sh.turn.takes(); d > most {
			most, run = d, about
		}
	}
	return most, run
}

// Slowest returns how long the slowest task of all shards took, or has been going on.
func (s *Scheduler) Slowest() time.Duration {
	most, _ := s.Longest()
	for _, sh := range s.shards {
		most = max(most, time.Duration(sh.turn.most.Load()))
	}
	return most
}

// shardPatience is how long the end of a membership waits for a shard to end its task. A
// task usually takes microseconds.
const shardPatience = time.Second

// Stop waits for the shards' goroutines. A shard that does not end in time is abandoned:
// none of its later transitions can land. Slots that its runs had reserved are given back,
// and answers that wait for it go to the next owners of their runs.
func (s *Scheduler) Stop() {
	late := time.NewTimer(shardPatience)
	defer late.Stop()
	for _, sh := range s.shards {
		select {
		case <-sh.ended:
			continue
		default:
		}
		select {
		case <-sh.ended:
		case <-late.C:
			late.Reset(0) // the shards after it get no further time
			sh.left = true
			age, run := sh.turn.takes()
			about := []any{"engine", s.engine, "busy", age.Round(time.Millisecond).String()}
			if run != 0 {
				about = append(about, "run", naming.RunName(run))
			}
			s.n.cfg.Logger.Error("a shard does not end and is left behind; its runs are free for other engines", about...)
			sh.abandon()
			if l, ok := s.capacity.(*ledger); ok {
				l.close()
			}
			go func() { // ends when the task ends, at the latest with the process
				<-sh.ended
				sh.close(nil)
			}()
		}
	}
}
