package owner

import (
	"context"
	"sync"

	"github.com/saga-engine/engine/engine/internal/call"
	"github.com/saga-engine/engine/engine/internal/commit"
	"github.com/saga-engine/engine/engine/internal/lists"
	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/machine/status"
)

// A task is work for a shard: an event for a run, a transition that the store has answered,
// a call that was answered, or a function. Most tasks need no function, which saves an
// allocation.
type task struct {
	run  status.RunID
	d    *delivery
	it   *commit.Item
	call *call.Call // the call that was answered
	back any        // result of a goroutine that worked for the shard: *loadedRun, *loadedMessages or *costlyDecision
	fn   func(context.Context)
}

// about returns the run that a task belongs to; 0 if it belongs to no single run.
func (t *task) about() status.RunID {
	switch {
	case t.it != nil:
		return t.it.Transition.Run
	case t.call != nil:
		return t.call.Run
	}
	return t.run
}

// A taskQueue holds the tasks that wait for one shard, in the order in which they were
// posted. Posting never blocks: shards wait for writers and writers post to shards, so they
// could block each other for ever. The field hint must be set before use.
type taskQueue struct {
	hint chan struct{} // a channel of capacity 1; it holds a value after something was posted

	mu    sync.Mutex // protects following fields
	queue []task
	over  bool // the queue accepts no more tasks
}

// post makes the shard's goroutine run f, after the tasks that were posted before. A task
// that is posted after the shard has stopped is dropped.
func (b *taskQueue) post(f func(context.Context)) { b.give(task{fn: f}) }

// give posts a task. It reports false if the shard has stopped.
func (b *taskQueue) give(t task) bool {
	b.mu.Lock()
	taken := !b.over
	if taken {
		b.queue = append(b.queue, t)
	}
	b.mu.Unlock()
	if taken {
		wait.Wake(b.hint)
	}
	return taken
}

// Landed implements commit.Receiver.
func (b *taskQueue) Landed(items []*commit.Item) {
	b.mu.Lock()
	taken := !b.over
	if taken {
		for _, it := range items {
			b.queue = append(b.queue, task{it: it})
		}
	}
	b.mu.Unlock()
	if taken {
		wait.Wake(b.hint)
	}
}

// take returns all waiting tasks. It reuses the memory of batch for the next tasks. If last
// is true and no task waits, the queue is closed.
func (b *taskQueue) take(batch []task, last bool) []task {
	b.mu.Lock()
	defer b.mu.Unlock()
	batch, b.queue = b.queue, lists.Blank(batch)
	b.over = b.over || last && len(batch) == 0
	return batch
}

// empty reports whether no task waits.
func (b *taskQueue) empty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.queue) == 0
}

// abandon closes the queue of a shard that hangs. Callers who wait for an event, or for the
// answer of a call, get an error that this engine does not own the run any more.
func (b *taskQueue) abandon() {
	b.mu.Lock()
	tasks := b.queue
	b.queue, b.over = nil, true
	b.mu.Unlock()
	for _, t := range tasks {
		switch {
		case t.d != nil:
			t.d.finish(call.ErrNotOwner)
		case t.call != nil:
			t.call.Conclude()
		}
	}
}
