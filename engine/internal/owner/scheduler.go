package owner

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/saga-engine/engine/engine/internal/call"
	"github.com/saga-engine/engine/engine/internal/limits"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// A Scheduler works on the runs that one membership of this engine owns (S8, S13). For every event
// it does the same: load the run, unless the run is in memory; decide the event and apply the
// record; commit the transition; start the calls. While a commit of the run is in flight, new
// events wait. They are decided together, as many as fit into one journal row. Row n+1 of a run is
// sent only after row n is committed.
type Scheduler struct {
	common
	shards []*shard
	// Limits keeps this engine within its part of the limits that engines share; nil = there are
	// no limits.
	Limits *limits.Limits
}

// A Membership holds the parameters of New: what the Scheduler needs of its membership.
type Membership struct {
	Engine    store.EngineID
	Context   context.Context // ends with the membership; used only to notice the end and its reason
	Committer committer

	// Unable is called, on a separate goroutine, for a run without an owner that has
	// messages and whose agents are missing here.
	Unable func(ctx context.Context, run status.RunID)
}

// New returns a Scheduler. New starts no goroutine: the method Start does.
func New(n *Shared, m Membership) *Scheduler {
	s := &Scheduler{common: common{
		n: n, engine: m.Engine, done: m.Context.Done(), unable: m.Unable, commits: m.Committer,
		Timers: newTimers(), Hands: newHandKeeper(n, m.Engine, m.Context), reads: make(chan struct{}, 16),
	}}
	s.limit()
	s.Queue = newSlotQueue(s.capacity, s.slotFreed)
	for range n.cfg.Options.Shards {
		s.shards = append(s.shards, newShard(&s.common))
	}
	return s
}

func (s *Scheduler) shard(run status.RunID) *shard {
	return s.shards[uint64(run)%uint64(len(s.shards))]
}

// deliver posts an event to the run's shard and returns true. If the shard has stopped,
// deliver does nothing and returns false.
func (s *Scheduler) deliver(run status.RunID, d *delivery) bool {
	return s.shard(run).give(task{run: run, d: d})
}

// Conclude implements call.Member.
func (s *Scheduler) Conclude(c *call.Call) bool { return s.shard(c.Run).give(task{call: c}) }

// Deliver implements call.Member.
func (s *Scheduler) Deliver(run status.RunID, a call.Answer, reported func(error)) bool {
	return s.deliver(run, &delivery{Answer: a, done: reported})
}

// Done implements call.Member.
func (s *Scheduler) Done() <-chan struct{} { return s.done }

// ask delivers an event and waits until its decision is committed. It returns the error of the
// decision or of the commit; nil = none. It returns call.ErrNotOwner if this membership ends
// first: then the outcome is not known.
func (s *Scheduler) ask(ctx context.Context, run status.RunID, d *delivery) error {
	answer := make(chan error, 1)
	d.done = func(err error) { answer <- err }
	s.deliver(run, d)
	select {
	case err := <-answer:
		return err
	case <-s.done:
		select { // the answer may have arrived just before the membership ended
		case err := <-answer:
			return err
		default:
			return call.ErrNotOwner
		}
	case <-ctx.Done():
		return ctx.Err()
	}
}

// slotFreed notifies a run that the agent with this AgentSpec.Key may have a free slot. After
// the run has decided whether it uses the slot, the SlotQueue may notify the next run.
func (s *Scheduler) slotFreed(run status.RunID, key string) {
	s.deliver(run, &delivery{
		Answer:  call.Answer{Event: machine.SlotsFreed{}, Arrived: s.n.Clock.Now()},
		decided: func() { s.Queue.decided(key) },
	})
}

// TimePassed passes the event e to a run that is due. It does not wait for the commit, because a
// Supervisor that waits for one run would be late for the other runs. If the event is lost, the
// next scan finds the run again. TimePassed always returns nil.
func (s *Scheduler) TimePassed(_ context.Context, run status.RunID, e machine.Event) error {
	s.deliver(run, &delivery{Answer: call.Answer{Event: e, Arrived: s.n.Clock.Now()}})
	return nil
}

// InboxChanged makes the run's shard read the run's inbox, because messages may wait there.
func (s *Scheduler) InboxChanged(run status.RunID) {
	sh := s.shard(run)
	sh.post(func(ctx context.Context) { sh.inboxChanged(ctx, run) })
}

// Flush waits until the store has answered all commits and no task waits. It returns an
// error if this membership or ctx ends first.
func (s *Scheduler) Flush(ctx context.Context) error {
	for _, sh := range s.shards {
		select {
		case <-sh.idle():
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

// Close gives back the slots that are reserved for pending commits. A call in flight gives back its
// own slot. The caller must call Stop first. Close returns the runs that this membership owned,
// each with the number of its rows that are known to be committed. The result does not contain
// quarantined runs. It also does not contain the runs of shards that Stop has abandoned, because
// only the store knows their state.
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

// Adopt starts to take over a run. The parameter `a` holds the details. Later the function a.Done
// is called with the outcome, unless this membership ends first.
func (s *Scheduler) Adopt(run status.RunID, a Adoption) {
	sh := s.shard(run)
	sh.give(task{run: run, fn: func(ctx context.Context) { sh.adopt(ctx, run, a) }})
}

// ParkLost starts to commit a row that parks a run and makes this engine the run's owner. It
// returns true, and later the shard passes the outcome to the function in the parameter `done`. But
// if this membership ends first, this function may never be called. If the shard has stopped,
// ParkLost returns false, and this function is not called.
func (s *Scheduler) ParkLost(run LostRun, done func(error)) bool {
	sh := s.shard(run.Head.Run)
	return sh.give(task{run: run.Head.Run, fn: func(ctx context.Context) { sh.parkLost(ctx, run, done) }})
}

// await posts a task to the run's shard. The task calls shard.await and sends the result to the
// channel `answer`.
func (s *Scheduler) await(run status.RunID, answer chan<- awaited) {
	sh := s.shard(run)
	sh.post(func(context.Context) {
		w, err := sh.await(run)
		answer <- awaited{w, err}
	})
}

// An awaited is the result of shard.await. The channel in its field `waiter` receives the run's
// state once the run has ended or needs a person.
type awaited struct {
	waiter chan *machine.State // nil = the run is not in memory, or the run is quarantined
	err    error               // reason why the run is quarantined; nil = the run is not quarantined
}

// HandBack makes the shards release those runs that have no call of an agent in flight and that
// another engine could continue now. It does not wait for the commits.
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

// Start starts the goroutines of the shards. They end after the channel in the parameter `last` is
// closed; see shard.loop. The method Stop waits for them.
func (s *Scheduler) Start(ctx context.Context, last <-chan struct{}) {
	for _, sh := range s.shards {
		go sh.loop(ctx, last)
	}
}

// DeliverAndWait delivers an event and waits until its decision is committed. It returns the error
// of the decision or of the commit; nil = none. It returns call.ErrNotOwner if this membership ends
// first: then the outcome is not known.
func (s *Scheduler) DeliverAndWait(ctx context.Context, run status.RunID, e machine.Event) error {
	return s.ask(ctx, run, &delivery{Answer: call.Answer{Event: e, Arrived: s.n.Clock.Now()}})
}

// Submit stores a new run, makes this engine the run's owner, and sets st.Submitted. If the store
// finds an earlier run with the same name or unique key, Submit stores nothing and sets
// st.Submitted to the earlier run. It returns ErrExists if another run has the same id, and an
// *OpenOutcome if the store did not answer.
func (s *Scheduler) Submit(ctx context.Context, st *Start, at time.Time, e machine.Started) error {
	if s.Limits != nil {
		s.Limits.Prepare(ctx, st.Specs)
	}
	return s.ask(ctx, e.RunID, &delivery{Answer: call.Answer{Event: e, Arrived: at}, start: st})
}

// Wait waits until a run has ended or needs a person, and returns the run's state and true. If the
// run is not in the memory of this membership, Wait returns nil and false at once. If this
// membership owns the run and has quarantined it, Wait returns the reason as error at once. If this
// membership stops working on the run while Wait waits, Wait returns nil and true.
func (s *Scheduler) Wait(ctx context.Context, run status.RunID) (*machine.State, bool, error) {
	answer := make(chan awaited, 1)
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

// Memory estimates the memory of all runs of this membership, in bytes.
func (s *Scheduler) Memory() int64 {
	sum := int64(0)
	for _, sh := range s.shards {
		sum += sh.memory.Load()
	}
	return sum
}

// Longest looks at the tasks that the shards are doing now. It returns how long the oldest task has
// taken so far, and the run of this task. The run is 0 if the task does not belong to one run, or
// does not say to which run it belongs. Both results are 0 if each shard is idle or waits for the
// committer.
func (s *Scheduler) Longest() (most time.Duration, run status.RunID) {
	for _, sh := range s.shards {
		if d, about := sh.turn.takes(); d > most {
			most, run = d, about
		}
	}
	return most, run
}

// Slowest returns the duration of the slowest task of all shards so far. A task in progress counts
// with the time that it has taken so far.
func (s *Scheduler) Slowest() time.Duration {
	most, _ := s.Longest()
	for _, sh := range s.shards {
		most = max(most, time.Duration(sh.turn.most.Load()))
	}
	return most
}

// shardPatience is how long the end of a membership waits until all shards have finished their
// tasks. A task usually takes microseconds.
const shardPatience = time.Second

// Stop waits for the goroutines of the shards. It abandons a shard that does not end in time: the
// store will commit no later transition of this shard. In this case Stop gives back all slots of
// the membership, and passes the answers of calls that wait in the shard to the next owners of
// their runs.
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
			s.n.cfg.Logger.Error("a shard did not end and is abandoned; other engines can take over its runs", about...)
			sh.abandon()
			if l, ok := s.capacity.(*ledger); ok {
				l.close()
			}
			go func() { // if the shard hangs for ever, this goroutine stays until the process ends
				<-sh.ended
				sh.close(nil)
			}()
		}
	}
}

// limit makes the Capacity of the membership. It wraps the Capacity of the node, so that the engine
// also uses no more than its part of the limits that all engines of the database share. If the node
// has no Capacity, the membership has none.
func (s *Scheduler) limit() {
	of := s.n.cfg.Capacity
	if of == nil {
		return
	}
	s.Limits = limits.New(of, limits.Config{
		Store: s.n.cfg.Store, Engine: s.engine, Clock: s.n.Clock, Outage: s.n.Outage,
		Waiting: func(key string) int { return s.Queue.ahead(key) },
		Free:    func(key string) { s.Queue.Free(key) },
		Later:   func(key string) { s.Queue.dismiss(key) },
		Halted:  s.n.Calls.Stopped,
	})
	s.limits, s.capacity = s.Limits, newLedger(s.Limits)
}
