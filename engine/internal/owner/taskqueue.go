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

// A task is work for a shard. Exactly one of the fields `d`, `it`, `call`, `back` and `fn` is set.
// Most tasks need no function, which saves an allocation.
type task struct {
	run  status.RunID // run of the task; 0 = unknown: see the method `about`
	d    *delivery    // event for the run
	it   *commit.Item // transition whose outcome is known
	call *call.Call   // call that has an answer
	back any          // result of a goroutine that worked for the shard: *loadedRun, *loadedMessages or *costlyDecision
	fn   func(context.Context)
}

// about returns the run that a task belongs to. It returns 0 if the task belongs to no single run,
// or if the task does not say to which run it belongs.
func (t *task) about() status.RunID {
	switch {
	case t.it != nil:
		return t.it.Transition.Run
	case t.call != nil:
		return t.call.Run
	}
	return t.run
}

// A taskQueue holds the tasks that wait for one shard, in the order in which they were posted.
// Posting a task never blocks. If it could block, a deadlock would be possible: a shard waits for a
// writer, and this writer waits because it posts a task to the same shard. The field `hint` must be
// set before the queue is used.
type taskQueue struct {
	hint chan struct{} // channel of capacity 1; it receives a value when a task is posted

	mu    sync.Mutex // protects the fields below
	queue []task
	over  bool // the queue accepts no more tasks
}

// post adds a task that calls f. The shard's goroutine calls f after it has done all tasks that
// were added earlier. If the shard has stopped, post does nothing.
func (b *taskQueue) post(f func(context.Context)) { b.give(task{fn: f}) }

// give adds a task to the queue and returns true. If the shard has stopped, give does
// nothing and returns false.
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

// Landed implements commit.Receiver. It adds one task for each item.
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

// take removes and returns all waiting tasks. It reuses the memory of the parameter `batch` for
// later tasks. If the parameter `last` is true and no task waits, take closes the queue.
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

// abandon closes the queue of a shard that hangs, and drops the waiting tasks. Callers that
// wait for an event get call.ErrNotOwner. For a call that has an answer, abandon calls
// Conclude, so that the answer goes to the run's next owner.
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
