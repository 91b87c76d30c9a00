package owner

import (
	"sync/atomic"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
)

// A turn describes the task that a shard is doing now. Any goroutine may read it.
type turn struct {
	// began is the start of the task in unix nanoseconds; 0 = the shard is idle, or waits for the
	// committer.
	began atomic.Int64
	// run is the run of the task; 0 = the task belongs to no single run, or the run is not known.
	run  atomic.Int64
	most atomic.Int64 // duration of the slowest task so far, in nanoseconds
}

// start records that a task begins and that the task before it has ended.
func (t *turn) start(run status.RunID) { t.next(run, time.Now().UnixNano()) }

// end records that the shard waits for work or for the committer.
func (t *turn) end() {
	if t.began.Load() != 0 {
		t.next(0, 0)
	}
}

// next ends the present task, if there is one, and begins the next. The parameter `at` is the start
// of the next task in unix nanoseconds; 0 = there is no next task.
func (t *turn) next(run status.RunID, at int64) {
	if began := t.began.Load(); began != 0 {
		over := at
		if over == 0 {
			over = time.Now().UnixNano()
		}
		t.most.Store(max(t.most.Load(), over-began)) // no race: only the shard's goroutine writes the field `most`
	}
	t.run.Store(int64(run))
	t.began.Store(at)
}

// takes returns how long the present task has taken so far, and the run of the task; 0 = not known.
// It returns 0 and 0 if the shard is idle or waits for the committer.
func (t *turn) takes() (time.Duration, status.RunID) {
	at := t.began.Load()
	if at == 0 {
		return 0, 0
	}
	return time.Since(time.Unix(0, at)), status.RunID(t.run.Load())
}
