package owner

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/call"
	"github.com/saga-engine/engine/engine/internal/commit"
	"github.com/saga-engine/engine/engine/internal/lists"
	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/store"
)

// A shard is one goroutine that owns the cached states of its share of the runs. No other
// goroutine reads or writes them; others post tasks.
type shard struct {
	s    *Scheduler
	hint chan struct{}

	size atomic.Int64 // runs in memory
	held atomic.Int64 // bytes that the runs take, estimated
	turn turn         // what it does now

	ended chan struct{} // closed when the goroutine has ended
	left  bool          // it did not end in time; only the goroutine that ends the membership uses it

	mu    sync.Mutex // protects following fields
	queue []task
	over  bool // the shard takes no more tasks

	// Only the shard's goroutine uses the rest.
	runs      map[machine.RunID]*ownedRun
	scratch   machine.Scratch // of decisions
	rows      journal.Scratch
	allowance dsl.Allowance // of the decision at hand
	slotsOf   map[string]machine.Slot
	spares    spares
	outbox    []*commit.Item  // transitions to be given to the committer
	commits   int             // commits of this shard on their way
	idle      []chan struct{} // closed when no commit is on its way and no event waits
}

func newShard(s *Scheduler) *shard {
	return &shard{s: s, hint: make(chan struct{}, 1), ended: make(chan struct{}), runs: map[machine.RunID]*ownedRun{}}
}

// A task is something that a shard has to do: an event for a run, a transition
// that has landed, a call that was answered, or anything else. Most of them need no closure.
type task struct {
	run  machine.RunID
	d    *delivery
	it   *commit.Item
	call *call.Call // that was answered
	fn   func(context.Context)
}

// post has the shard's goroutine run f, after the tasks posted before. It never blocks,
// because shards wait for writers, and writers post to shards. A task that is posted after
// the shard has stopped is dropped.
func (sh *shard) post(f func(context.Context)) { sh.give(task{fn: f}) }

// give is post for tasks. It reports false where the shard has stopped.
func (sh *shard) give(t task) bool {
	sh.mu.Lock()
	taken := !sh.over
	if taken {
		sh.queue = append(sh.queue, t)
	}
	sh.mu.Unlock()
	if taken {
		wait.Wake(sh.hint)
	}
	return taken
}

// Landed implements commit.Receiver.
func (sh *shard) Landed(items []*commit.Item) {
	sh.mu.Lock()
	taken := !sh.over
	if taken {
		for _, it := range items {
			sh.queue = append(sh.queue, task{it: it})
		}
	}
	sh.mu.Unlock()
	if taken {
		wait.Wake(sh.hint)
	}
}

// commitRow has a row committed that is not decided from events. done is called by the
// shard's goroutine. It returns false if this membership ends: then done is not called.
func (sh *shard) commitRow(ctx context.Context, t store.Transition, done func(commit.Landing)) bool {
	sh.commits++
	err := sh.s.Committer.Commit(ctx, &commit.Item{Transition: t, To: sh, For: func(l commit.Landing) {
		sh.commits--
		done(l)
	}})
	if err != nil {
		sh.commits--
	}
	return err == nil
}

// inARow is how many tasks a shard does before it gives their transitions to the
// committer. If the first transition woke the committer, the committer would compete for
// a CPU, and each batch would hold few transitions.
const inARow = 64

// flush gives the decided transitions to the committer. It blocks while the committer is
// full: a slow store slows deciding down that way. After an error the membership ends, and
// no caller waits for the rest.
func (sh *shard) flush(ctx context.Context) {
	if len(sh.outbox) == 0 {
		return
	}
	sh.turn.end() // a shard that waits for the store does not count as stuck
	now := time.Now()
	for i, it := range sh.outbox {
		it.Queued = now
		_ = sh.s.Committer.Commit(ctx, it)
		sh.outbox[i] = nil
	}
	sh.outbox = sh.outbox[:0]
}

// do carries out a task.
func (sh *shard) do(ctx context.Context, t *task) {
	switch {
	case t.d != nil:
		sh.accept(ctx, t.run, t.d)
	case t.it != nil:
		sh.answered(ctx, t.it)
	case t.call != nil:
		sh.heard(ctx, t.call)
	default:
		t.fn(ctx)
	}
}

// loop carries out tasks until last is closed, and then the tasks that are left. One of
// those may be a landed row, whose calls this process must start or report as not sent.
// After ctx has ended the shard decides nothing new.
func (sh *shard) loop(ctx context.Context, last <-chan struct{}) {
	defer close(sh.ended)
	var batch []task
	for ended := false; ; {
		sh.mu.Lock()
		batch, sh.queue = sh.queue, lists.Blank(batch)
		sh.over = sh.over || ended && len(batch) == 0
		sh.mu.Unlock()
		for i := range batch {
			sh.turn.start(batch[i].about())
			sh.do(ctx, &batch[i])
			batch[i] = task{}
			if (i+1)%inARow == 0 {
				sh.flush(ctx)
			}
		}
		sh.turn.end()
		sh.flush(ctx)
		if len(batch) > 0 {
			sh.size.Store(int64(len(sh.runs)))
			sh.rest()
			continue
		}
		if ended {
			return
		}
		select {
		case <-sh.hint:
		case <-last:
			ended = true
		}
	}
}

// rest closes the channels that quiet has returned.
func (sh *shard) rest() {
	if sh.commits > 0 || len(sh.idle) == 0 {
		return
	}
	sh.mu.Lock()
	waiting := len(sh.queue)
	sh.mu.Unlock()
	if waiting > 0 {
		return
	}
	for _, c := range sh.idle {
		close(c)
	}
	sh.idle = nil
}

// quiet returns a channel that is closed when no commit is in flight and no event waits.
func (sh *shard) quiet() <-chan struct{} {
	c := make(chan struct{})
	sh.post(func(context.Context) { sh.idle = append(sh.idle, c) })
	return c
}
