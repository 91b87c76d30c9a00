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

// A Scheduler runs the runs that one membership of this engine owns (S8, S13). It handles
// every event in the same order: load the run, unless it is in memory; decide; commit;
// apply; act. Events that arrive while a commit of the run is in flight wait. They are
// decided together, into one journal row. Row n+1 is sent only after row n is committed.
type Scheduler struct {
	common
	shards []*shard
}

// Membership holds the parts of a membership that its Scheduler needs.
type Membership struct {
	Engine    store.EngineID
	Context   context.Context // ends with the membership; only its Done and cause are used
	Committer committer

	// Unable is called, on a separate goroutine, for a run without an owner that has
	// messages and whose agents are missing here.
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

// deliver posts an event to its run. It reports false if this membership is over.
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

// ask delivers an event and waits for the outcome. It returns call.ErrNotOwner if this
// membership ends first: then the outcome is not known.
func (s *Scheduler) ask(ctx context.Context, run status.RunID, d *delivery) error {
	answer := make(chan error, 1)
	d.done = func(err error) { answer <- err }
	s.deliver(run, d)
	select {
	case err := <-answer:
		return err
	case <-s.done:
		select { // the outcome may have arrived just before the end
		case err := <-answer:
			return err
		default:
			return call.ErrNotOwner
		}
	case <-ctx.Done():
		return ctx.Err()
	}
}

// slotFreed notifies a run that waits for an agent that a slot may be free.
func (s *Scheduler) slotFreed(run status.RunID, key string) {
	s.deliver(run, &delivery{
		Answer:  call.Answer{Event: machine.SlotsFreed{}, Arrived: s.n.Clock.Now()},
		decided: func() { s.Queue.told(key) },
	})
}

// TimePassed notifies a run that it is due. It does not wait for the commit, because a
// Supervisor that waits for one run would be late for the others. The next scan finds the
// run again if the event is lost.
func (s *Scheduler) TimePassed(_ context.Context, run status.RunID, e machine.Event) error {
	s.deliver(run, &delivery{Answer: call.Answer{Event: e, Arrived: s.n.Clock.Now()}})
	return nil
}

// InboxChanged notifies the run that messages wait for it.
func (s *Scheduler) InboxChanged(run status.RunID) {
	sh := s.shard(run)
	sh.post(func(ctx context.Context) { sh.inboxChanged(ctx, run) })
}

// Flush waits until all commits are answered and no event waits.
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

// Size returns the number of runs in memory.
func (s *Scheduler) Size() int {
	n := int64(0)
	for _, sh := range s.shards {
		n += sh.size.Load()
	}
	return int(n)
}

// Close gives back the slots of all runs. The caller must call Stop first. Close returns
// the runs that this membership owned, each with the number of its rows that are known to
// be committed. It leaves out the runs of shards that Stop has abandoned: only the store
// knows their state.
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

// Adopt makes this engine the owner of a run if the run's owner is gone.
func (s *Scheduler) Adopt(run status.RunID, a Adoption) {
	sh := s.shard(run)
	sh.give(task{run: run, fn: func(ctx context.Context) { sh.adopt(ctx, run, a) }})
}

// ParkLost commits the row that parks a run, and makes this engine its owner. done is
// called with the outcome. ParkLost returns false if this membership is over.
func (s *Scheduler) ParkLost(run LostRun, done func(error)) bool {
	sh := s.shard(run.Head.Run)
	return sh.give(task{run: run.Head.Run, fn: func(ctx context.Context) { sh.parkLost(ctx, run, done) }})
}

// await asks the run's shard for a place, and sends the place to the channel answer. See
// shard.await.
func (s *Scheduler) await(run status.RunID, answer chan<- place) {
	sh := s.shard(run)
	sh.post(func(context.Context) {
		w, err := sh.await(run)
		answer <- place{w, err}
	})
}

// A place holds the channel on which a run's state is sent, once the run has ended or needs
// a person.
type place struct {
	waiter chan *machine.State // nil = the run is not in memory, or quarantined
	err    error               // reason of the quarantine if the run is quarantined
}

// HandBack releases, one by one, the runs that another engine could continue now.
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

// Start starts the shards. They work until the channel last is closed; see shard.loop. Stop
// waits for them.
func (s *Scheduler) Start(ctx context.Context, last <-chan struct{}) {
	for _, sh := range s.shards {
		go sh.loop(ctx, last)
	}
}

// Tell delivers an event and waits for the outcome; see ask.
func (s *Scheduler) Tell(ctx context.Context, run status.RunID, e machine.Event) error {
	return s.ask(ctx, run, &delivery{Answer: call.Answer{Event: e, Arrived: s.n.Clock.Now()}})
}

// Submit stores a new run and makes this engine its owner. It fills in st.Submitted. It
// returns ErrExists if the id is in use, and an *OpenOutcome if the store did not answer.
func (s *Scheduler) Submit(ctx context.Context, st *Start, at time.Time, e machine.Started) error {
	return s.ask(ctx, e.RunID, &delivery{Answer: call.Answer{Event: e, Arrived: at}, start: st})
}

// Wait waits until a run has ended or needs a person, and returns its state. It reports
// false if the run is not in the memory of this membership. The state is nil if this
// membership stops working on the run first.
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

// Held estimates the memory of all runs of this membership, in bytes.
func (s *Scheduler) Held() int64 {
	sum := int64(0)
	for _, sh := range s.shards {
		sum += sh.held.Load()
	}
	return sum
}

// Longest looks at the tasks that the shards are doing now. It returns how long the oldest
// of them has taken so far, and its run.
func (s *Scheduler) Longest() (most time.Duration, run status.RunID) {
	for _, sh := range s.shards {
		if d, about := sh.turn.takes(); d > most {
			most, run = d, about
		}
	}
	return most, run
}

// Slowest returns the duration of the slowest task of all shards so far. Tasks in progress
// count.
func (s *Scheduler) Slowest() time.Duration {
	most, _ := s.Longest()
	for _, sh := range s.shards {
		most = max(most, time.Duration(sh.turn.most.Load()))
	}
	return most
}

// shardPatience is how long the end of a membership waits for a shard to finish its task. A
// task usually takes microseconds.
const shardPatience = time.Second

// Stop waits for the shards' goroutines. A shard that does not end in time is abandoned:
// none of its later transitions can be committed. The slots of its runs are given back, and
// answers that wait for it go to the next owners of their runs.
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
			late.Reset(0) // no more time for the remaining shards
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
			go func() { // this goroutine ends with the shard's task, at the latest with the process
				<-sh.ended
				sh.close(nil)
			}()
		}
	}
}
