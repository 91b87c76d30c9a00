package owner

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/saga-engine/engine/engine/internal/call"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// A Scheduler moves the runs that one membership of this engine owns (S8,
// S13). For every event: load the run, unless it is cached; decide; commit;
// apply; act. Events that come while a run's commit is in flight wait and are
// decided together, into one journal row; row n+1 is not sent before row n is
// known to have landed.
type Scheduler struct {
	common
	shards []*shard
}

// Membership is what a Scheduler needs of the membership for which it works.
type Membership struct {
	Engine    store.EngineID
	Context   context.Context // ends with the membership; only its Done and cause are used
	Committer committer

	// Unable is called, on a goroutine of its own, for a run without an owner for which
	// messages wait and whose agents are missing here.
	Unable func(ctx context.Context, run status.RunID)
}

// New returns a Scheduler. It starts no goroutine; Start does.
func New(n *Shared, m Membership) *Scheduler {
	s := &Scheduler{common: common{
		n: n, engine: m.Engine, done: m.Context.Done(), unable: m.Unable, commits: m.Committer, capacity: newLedger(n.cfg.Capacity),
		Timers: newTimers(), Hands: newHandKeeper(n, m.Engine, m.Context), reads: make(chan struct{}, 16),
	}}
	s.Queue = newSlotQueue(s.capacity, s.slotFreed)
	for range n.cfg.Options.Shards {
		s.shards = append(s.shards, newShard(&s.common))
	}
	return s
}

func (s *Scheduler) shard(run status.RunID) *shard {
	return s.shards[uint64(run)%uint64(len(s.shards))]
}

// deliver posts an event to its run. It reports false where this membership has
// ended.
func (s *Scheduler) deliver(run status.RunID, d *delivery) bool {
	return s.shard(run).give(task{run: run, d: d})
}

// Conclude implements call.Member.
func (s *Scheduler) Conclude(c *call.Call) bool { return s.shard(c.Run).give(task{call: c}) }

// Deliver implements call.Member.
func (s *Scheduler) Deliver(run status.RunID, a call.Answer, told func(error)) bool {
	return s.deliver(run, &delivery{Answer: a, done: told})
}

// Done implements call.Member.
func (s *Scheduler) Done() <-chan struct{} { return s.done }

// ask delivers an event and waits for what becomes of it. Returns call.ErrNotOwner
// if this membership ends first: what became of it is then not known.
func (s *Scheduler) ask(ctx context.Context, run status.RunID, d *delivery) error {
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
			return call.ErrNotOwner
		}
	case <-ctx.Done():
		return ctx.Err()
	}
}

// slotFreed tells a run that waits for an agent that it may try again.
func (s *Scheduler) slotFreed(run status.RunID, key string) {
	s.deliver(run, &delivery{
		Answer:  call.Answer{Event: machine.SlotsFreed{}, Arrived: s.n.Clock.Now()},
		decided: func() { s.Queue.told(key) },
	})
}

// TimePassed tells a run that something of it is due. It does not wait for the
// commit: a Supervisor that waited for one run would be late for the others,
// and what gets lost is found by its next pass.
func (s *Scheduler) TimePassed(_ context.Context, run status.RunID, e machine.Event) error {
	s.deliver(run, &delivery{Answer: call.Answer{Event: e, Arrived: s.n.Clock.Now()}})
	return nil
}

// InboxChanged tells that messages wait for a run.
func (s *Scheduler) InboxChanged(run status.RunID) {
	sh := s.shard(run)
	sh.post(func(ctx context.Context) { sh.inboxChanged(ctx, run) })
}

// Flush waits until no commit is on its way and no event waits.
func (s *Scheduler) Flush(ctx context.Context) error {
	for _, sh := range s.shards {
		select {
		case <-sh.quiet():
		case <-s.done:
			return call.ErrNotOwner
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Size returns how many runs are in memory.
func (s *Scheduler) Size() int {
	n := int64(0)
	for _, sh := range s.shards {
		n += sh.size.Load()
	}
	return int(n)
}

// Close gives back what the runs had reserved. It returns the runs that were owned, with
// the number of their rows that are known to have landed. It is called after Stop. Runs of
// shards that Stop has left behind are not in the result: only the store knows them.
func (s *Scheduler) Close() map[status.RunID]int32 {
	s.loads.Wait()
	runs := map[status.RunID]int32{}
	for _, sh := range s.shards {
		if !sh.left {
			sh.close(runs)
		}
	}
	return runs
}

// Adopt has this engine become the owner of a run, if its owner is gone.
func (s *Scheduler) Adopt(run status.RunID, a Adoption) {
	sh := s.shard(run)
	sh.give(task{run: run, fn: func(ctx context.Context) { sh.adopt(ctx, run, a) }})
}

// ParkLost commits the row that parks a run, and makes this engine its owner. done is
// told what became of it. It returns false where this membership has ended.
func (s *Scheduler) ParkLost(run LostRun, done func(error)) bool {
	sh := s.shard(run.Head.Run)
	return sh.give(task{run: run.Head.Run, fn: func(ctx context.Context) { sh.parkLost(ctx, run, done) }})
}

// await sends where a run's state will be sent, once it has ended or needs a person;
// see shard.await.
func (s *Scheduler) await(run status.RunID, answer chan<- place) {
	sh := s.shard(run)
	sh.post(func(context.Context) {
		w, err := sh.await(run)
		answer <- place{w, err}
	})
}

// A place is where a run's state will be sent; nil = the run is not here.
type place struct {
	waiter chan *machine.State
	err    error // of a run that is quarantined
}

// HandBack gives up, one by one, the runs that another engine could go on with now.
func (s *Scheduler) HandBack() {
	s.handing.Store(true)
	for _, sh := range s.shards {
		sh.post(func(ctx context.Context) {
			for _, id := range slices.Sorted(maps.Keys(sh.runs)) {
				sh.release(ctx, sh.runs[id])
			}
		})
	}
}

// Start has the shards work until last is closed; see shard.loop. stop waits for them.
func (s *Scheduler) Start(ctx context.Context, last <-chan struct{}) {
	for _, sh := range s.shards {
		go sh.loop(ctx, last)
	}
}

// Tell delivers an event and waits for what becomes of it; see ask.
func (s *Scheduler) Tell(ctx context.Context, run status.RunID, e machine.Event) error {
	return s.ask(ctx, run, &delivery{Answer: call.Answer{Event: e, Arrived: s.n.Clock.Now()}})
}

// Submit has a new run stored and makes this engine its owner. It fills in what became
// of it. Returns ErrExists if the id is taken, and an *openOutcome if the store did not
// answer.
func (s *Scheduler) Submit(ctx context.Context, st *Start, at time.Time, e machine.Started) error {
	return s.ask(ctx, e.RunID, &delivery{Answer: call.Answer{Event: e, Arrived: at}, start: st})
}

// Wait waits for a run that is in this membership's memory, and reports
// whether it was.
func (s *Scheduler) Wait(ctx context.Context, run status.RunID) (*machine.State, bool, error) {
	answer := make(chan place, 1)
	s.await(run, answer)
	var waiter chan *machine.State
	select {
	case p := <-answer:
		if p.err != nil {
			return nil, false, p.err
		}
		waiter = p.waiter
	case <-s.done:
		return nil, false, nil
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
	if waiter == nil {
		return nil, false, nil
	}
	select {
	case state := <-waiter:
		return state, true, nil
	case <-s.done:
		return nil, true, nil
	case <-ctx.Done():
		return nil, true, ctx.Err()
	}
}

// Held returns about how many bytes the runs in memory take.
func (s *Scheduler) Held() int64 {
	sum := int64(0)
	for _, sh := range s.shards {
		sum += sh.held.Load()
	}
	return sum
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
