package engine

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/call"
	"github.com/saga-engine/engine/engine/internal/commit"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/store"
)

// A scheduler moves the runs that one incarnation of this engine owns (S8,
// S13). For every event: load the run, unless it is cached; decide; commit;
// apply; act. Events that come while a run's commit is in flight wait and are
// decided together, into one journal row; row n+1 is not sent before row n is
// known to have landed.
type scheduler struct {
	handing     atomic.Bool // the engine stops, and others live: runs without a call are handed back
	n           *Node
	engine      store.EngineID
	committer   *commit.Committer
	timers      *timers
	queue       *slotQueue
	capacity    invoke.Capacity // what this incarnation takes of the engine's; nil = nothing is limited
	hands       *handKeeper
	shards      []*shard
	done        <-chan struct{} // closed when this incarnation has ended
	loads       sync.WaitGroup  // goroutines that read for shards
	reads       chan struct{}   // bounds how many inboxes are read at once
	clearing    claimset        // ended runs whose inbox is being emptied
	quarantined claimset        // runs that were quarantined
	undecidable backoffSet      // own runs for which only messages wait that cannot be decided here
}

// newScheduler returns a scheduler without a committer.
func newScheduler(n *Node, engine store.EngineID, done <-chan struct{}) *scheduler {
	s := &scheduler{n: n, engine: engine, timers: newTimers(), done: done, reads: make(chan struct{}, 16)}
	s.capacity = newLedger(n.cfg.Capacity)
	s.queue = newSlotQueue(s.capacity, s.slotFreed)
	for range n.cfg.Options.Shards {
		s.shards = append(s.shards, newShard(s))
	}
	return s
}

func (s *scheduler) shard(run machine.RunID) *shard {
	return s.shards[uint64(run)%uint64(len(s.shards))]
}

// A delivery is an event on its way to a run.
type delivery struct {
	call.Answer
	done    func(error)     // told once what became of it; nil = not called
	call    *call.Call      // whose answer it is, told like done; nil = none's
	decided func()          // called once it was decided, or dropped; nil = not called
	start   *start          // the run's first event
	message store.MessageID // that said it; 0 = none
	data    []byte          // of the message
	kept    bool            // it came too late to count and is kept as evidence
	quiet   bool            // nothing may start because of it
}

// A start is what the first transition of a run needs besides its event.
type start struct {
	workflow  store.WorkflowID
	flow      *dsl.Workflow
	specs     map[string]invoke.AgentSpec
	names     store.Names
	public    string          // the run's name
	submitted store.Submitted // set when landed
}

// finish tells the waiting caller what became of the delivery.
func (d *delivery) finish(err error) {
	if d.decided != nil {
		d.decided()
		d.decided = nil
	}
	if d.done != nil {
		d.done(err)
		d.done = nil
	}
	if c := d.call; c != nil {
		d.call = nil
		c.Reported(d.Answer, err)
	}
}

// answers reports whether the event is an agent's answer.
func (d *delivery) answers() bool { return !d.CompleteBy.IsZero() }

// deliver posts an event to its run. It reports false where this incarnation has
// ended.
func (s *scheduler) deliver(run machine.RunID, d *delivery) bool {
	return s.shard(run).give(task{run: run, d: d})
}

// Conclude implements call.Member.
func (s *scheduler) Conclude(c *call.Call) bool { return s.shard(c.Run).give(task{call: c}) }

// Deliver implements call.Member.
func (s *scheduler) Deliver(run machine.RunID, a call.Answer, told func(error)) bool {
	return s.deliver(run, &delivery{Answer: a, done: told})
}

// Done implements call.Member.
func (s *scheduler) Done() <-chan struct{} { return s.done }

// ask delivers an event and waits for what becomes of it. Returns ErrNotOwner
// if this incarnation ends first: what became of it is then not known.
func (s *scheduler) ask(ctx context.Context, run machine.RunID, d *delivery) error {
	answer := make(chan error, 1)
	d.done = func(err error) { answer <- err }
	s.deliver(run, d)
	select {
	case err := <-answer:
		return err
	case <-s.done:
		select { // it may have been told just before the end
		case err := <-answer:
			return err
		default:
			return ErrNotOwner
		}
	case <-ctx.Done():
		return ctx.Err()
	}
}

// slotFreed tells a run that waits for an agent that it may try again.
func (s *scheduler) slotFreed(run machine.RunID, key string) {
	s.deliver(run, &delivery{
		Answer:  call.Answer{Event: machine.SlotsFreed{}, Arrived: s.n.clock.Now()},
		decided: func() { s.queue.told(key) },
	})
}

// timePassed tells a run that something of it is due. It does not wait for the
// commit: a Supervisor that waited for one run would be late for the others,
// and what gets lost is found by its next pass.
func (s *scheduler) timePassed(_ context.Context, run machine.RunID, e machine.Event) error {
	s.deliver(run, &delivery{Answer: call.Answer{Event: e, Arrived: s.n.clock.Now()}})
	return nil
}

// inboxChanged tells that messages wait for a run.
func (s *scheduler) inboxChanged(run machine.RunID) {
	sh := s.shard(run)
	sh.post(func(ctx context.Context) { sh.inboxChanged(ctx, run) })
}

// flush waits until no commit is on its way and no event waits.
func (s *scheduler) flush(ctx context.Context) error {
	for _, sh := range s.shards {
		select {
		case <-sh.quiet():
		case <-s.done:
			return ErrNotOwner
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// size returns how many runs are in memory.
func (s *scheduler) size() int {
	n := int64(0)
	for _, sh := range s.shards {
		n += sh.size.Load()
	}
	return int(n)
}

// close gives back what the runs had reserved and returns the runs that were
// owned, with the number of rows that are known to have landed. It is called after
// the shards' goroutines have ended, but for those that were left behind: which
// runs these own only the store knows.
func (s *scheduler) close() map[machine.RunID]int32 {
	s.loads.Wait()
	runs := map[machine.RunID]int32{}
	for _, sh := range s.shards {
		if !sh.left {
			sh.close(runs)
		}
	}
	return runs
}

// close gives back what the shard's runs had reserved, and notes in owned, unless
// that is nil, those that were owned.
func (sh *shard) close(owned map[machine.RunID]int32) {
	for _, id := range slices.Sorted(maps.Keys(sh.runs)) {
		r := sh.runs[id]
		var told []*delivery
		if r.commit != nil {
			r.commit.release(sh.s.capacity)
			told = r.commit.deliveries
		}
		for _, d := range slices.Concat(told, r.pending) {
			d.finish(ErrNotOwner) // the sender finds the run's next owner
		}
		if r.phase != phaseQuarantined && r.owned && owned != nil {
			owned[id] = r.seq
		}
		for _, w := range r.waiters {
			close(w)
		}
	}
	sh.runs = nil
}

// notOwner reports whether an error says that the run is not this
// incarnation's any more.
func notOwner(err error) bool {
	return errors.Is(err, ErrNotOwner) || errors.Is(err, store.ErrFenced) || errors.Is(err, store.ErrLapsed)
}

// overFor reports whether an error says that this incarnation is over.
func overFor(err error) bool {
	var loss *store.LossError
	return notOwner(err) || errors.As(err, &loss)
}
