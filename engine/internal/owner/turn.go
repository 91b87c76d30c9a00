package owner

import (
	"sync/atomic"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
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
