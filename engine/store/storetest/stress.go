package storetest

import (
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/storekit"
)

// Stress lets several engines, each with two writers, work in one store for the time `d`. Meanwhile
// it declares engines dead during their commits, and other engines take over their runs. Answers
// get lost, and other goroutines post messages. Then Stress checks the journals. A journal must
// have no gap, no row of an engine that was not the owner, and no row after the end of the run. It
// must have each row that was reported as committed. The run's head must agree with the journal
// (I1, I2, I3, I10). Stress also checks that every message is still waiting or was consumed by
// exactly one row. Every name must belong to one run, and at most one run may hold a key (I11).
//
// The data of each row says what the row did, so that the journal is enough for these
// checks.
func Stress(t *testing.T, h Harness, d time.Duration) {
	w := newWorld(t, h)
	s := &stress{world: w, seed: uint64(time.Now().UnixNano()), landed: make(map[status.RunID][]note), said: make(map[status.RunID][]store.MessageID), named: make(map[status.RunID]naming.Names)}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", s.seed)
		}
	})
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() { s.timekeeper(ctx, cancel, d) })
	for n := range 4 {
		wg.Go(func() { s.engines(ctx, n) })
	}
	wg.Go(func() { s.executioner(ctx) })
	for n := range 2 {
		wg.Go(func() { s.people(ctx, n) })
	}
	wg.Wait()
	s.judge()
}

// timekeeper ends the work of the engines after the time `d`. On a slow machine, not enough may
// have happened by then. In that case timekeeper waits longer, but no longer than 60 times `d`.
func (s *stress) timekeeper(ctx context.Context, end context.CancelFunc, d time.Duration) {
	defer end()
	look := time.NewTicker(d)
	defer look.Stop()
	for range 60 {
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
		s.mu.Lock()
		enough := s.enoughLocked()
		s.mu.Unlock()
		if enough {
			return
		}
	}
}

// enoughLocked reports whether each kind of event that Stress checks has happened often
// enough.
func (s *stress) enoughLocked() bool {
	return len(s.landed) >= 10 && len(s.named) >= 5 && len(s.found) > 0 && s.fenced > 0 && s.ate > 0
}

// A stress is the state of one call of Stress.
type stress struct {
	*world
	seed uint64

	mu     sync.Mutex // protects the fields below
	alive  []store.EngineID
	runs   status.RunID
	landed map[status.RunID][]note // rows that were reported as committed
	known  []status.RunID          // the runs in the field `landed`
	said   map[status.RunID][]store.MessageID
	named  map[status.RunID]naming.Names // names of each run that was committed with names
	found  []claim
	stale  int
	fenced int
	ate    int // number of rows that consumed messages
}

// A claim is the answer to a submission that found an earlier run with the same name or
// key.
type claim struct {
	names naming.Names
	run   status.RunID // the run that has the name or the key, according to the answer
}

// A note is the data of a row. It holds the engine that wrote the row, whether the row
// takes over the run, a unique number, and the id of the message that the row consumed (0 =
// none).
type note struct {
	seq  int32
	by   store.EngineID
	take bool
	id   uint64
	ate  store.MessageID
}

func (n note) encode() []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(n.by))
	if n.take {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	b = binary.BigEndian.AppendUint64(b, n.id)
	return binary.BigEndian.AppendUint64(b, uint64(n.ate))
}

func decodeNote(seq int32, b []byte) (note, bool) {
	if len(b) != 21 {
		return note{}, false
	}
	return note{seq, store.EngineID(binary.BigEndian.Uint32(b)), b[4] == 1, binary.BigEndian.Uint64(b[5:]), store.MessageID(binary.BigEndian.Uint64(b[13:]))}, true
}

// The method engines lets one engine after another work. When an engine is declared dead, the next
// engine joins.
func (s *stress) engines(ctx context.Context, n int) {
	rnd := rand.New(rand.NewPCG(s.seed, uint64(n)))
	store := []store.Store{s.Store, s.Other}[n%2]
	for ctx.Err() == nil {
		id, err := store.Join(s.ctx, "stress", time.Hour, 2)
		if err != nil {
			s.Errorf("join: %v", err)
			return
		}
		s.mu.Lock()
		s.alive = append(s.alive, id)
		s.mu.Unlock()
		var wg sync.WaitGroup
		for k := range 2 {
			seed := rnd.Uint64()
			wg.Go(func() { s.work(ctx, store, id, k, rand.New(rand.NewPCG(seed, 0))) })
		}
		wg.Wait()
	}
}

// An owned run is one that a writer works on.
type owned struct {
	run status.RunID
	seq int32 // number of the last row
}

// work commits batches with one writer until the engine is declared dead or ctx ends.
func (s *stress) work(ctx context.Context, st store.Store, id store.EngineID, n int, rnd *rand.Rand) {
	wr, err := st.OpenWriter(s.ctx, id, n)
	if errors.Is(err, store.ErrFenced) {
		return
	}
	if err != nil {
		s.Errorf("open writer: %v", err)
		return
	}
	defer func() {
		if err := wr.Close(); err != nil {
			s.Errorf("close writer: %v", err)
		}
	}()
	var mine []owned
	for round := 0; ctx.Err() == nil; round++ {
		batch, err := s.moves(st, id, n, rnd, mine)
		if err != nil {
			s.Errorf("read messages: %v", err)
			return
		}
		if round%8 == 7 {
			taken, err := s.takeovers(st, id, n)
			if err != nil {
				s.Errorf("find orphans: %v", err)
				return
			}
			if len(taken) > 0 {
				batch = taken
			}
		}
		out, err := wr.Commit(s.ctx, batch)
		if errors.Is(err, store.ErrFenced) {
			s.mu.Lock()
			s.fenced++
			s.mu.Unlock()
			return
		}
		if err != nil {
			s.Errorf("commit: %v", err)
			return
		}
		mine = s.learn(mine, batch, out)
	}
}

// moves returns a batch with some new runs, and with the next row for most runs of the
// writer. Some rows consume the first message that waits for their run.
func (s *stress) moves(st store.Store, id store.EngineID, n int, rnd *rand.Rand, mine []owned) ([]store.Transition, error) {
	var batch []store.Transition
	for _, o := range mine {
		if rnd.IntN(3) == 0 {
			continue
		}
		t := next(o.run, o.seq+1)
		said := note{by: id, id: rnd.Uint64()}
		if rnd.IntN(4) == 0 {
			waiting, err := st.Messages(s.ctx, o.run, 0, 1)
			if err != nil {
				return nil, err
			}
			if len(waiting) > 0 {
				said.ate = waiting[0].ID
				t.Consumed = []store.MessageID{said.ate}
			}
		}
		t.Data = said.encode()
		switch rnd.IntN(12) {
		case 0:
			t.State, t.NextCheck = status.RunSucceeded, store.Never
			if rnd.IntN(3) > 0 {
				t.State = status.RunCancelled // a cancelled run does not hold its key
			}
		case 1:
			t.State, t.NextCheck = status.RunCompensating, t.At.Add(time.Minute)
		case 2:
			t.NextCheck = t.At.Add(time.Hour)
		case 3:
			t.Steps = []store.StepRow{{Node: 1, State: status.StepRunning, Attempt: int(t.Seq), CompleteBy: t.At.Add(time.Minute)}}
		}
		batch = append(batch, t)
	}
	for range rnd.IntN(3) {
		if len(mine) > 60 {
			break
		}
		s.mu.Lock()
		s.runs += 2
		run := 1<<50 + s.runs + status.RunID(n)
		s.mu.Unlock()
		t := store.Transition{
			Run: run, At: base, Workflow: s.flow, State: status.RunRunning, Owner: &id, NextCheck: base.Add(time.Hour),
			Data: note{by: id, id: rnd.Uint64()}.encode(),
		}
		if rnd.IntN(3) > 0 { // use only few different names and keys, so that engines compete for them
			t.Names = &naming.Names{Name: "name-" + strconv.Itoa(rnd.IntN(2000)), Workflow: flowName}
			if rnd.IntN(2) > 0 {
				t.Names.Key = "key-" + strconv.Itoa(rnd.IntN(40))
			}
		}
		batch = append(batch, t)
	}
	return sorted(batch), nil
}

// people posts messages to runs of all owners and states. It posts half of the messages
// twice, like a person who received no answer the first time.
func (s *stress) people(ctx context.Context, n int) {
	rnd := rand.New(rand.NewPCG(s.seed, uint64(100+n)))
	st := []store.Store{s.Store, s.Other}[n%2]
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s.mu.Lock()
		var run status.RunID
		if len(s.known) > 0 {
			run = s.known[len(s.known)-1-rnd.IntN(min(len(s.known), 20))]
		}
		s.mu.Unlock()
		if run == 0 {
			continue
		}
		m, times := store.Message{Run: run, Kind: store.MessageVerb}, 1
		if rnd.IntN(2) == 0 {
			times = 2
			m.Dedup = strconv.FormatUint(rnd.Uint64(), 36)
		}
		ids := make(map[store.MessageID]bool)
		for range times {
			id, err := st.Post(s.ctx, m)
			if err != nil {
				s.Errorf("post: %v", err)
				return
			}
			ids[id] = true // there is a second id if a row consumed the first message before the second Post
		}
		s.mu.Lock()
		s.said[run] = slices.AppendSeq(s.said[run], maps.Keys(ids))
		s.mu.Unlock()
	}
}

// takeovers returns a batch that takes over orphans. One writer of an engine takes only
// runs with even ids, and the other only runs with odd ids, so that the two do not compete.
func (s *stress) takeovers(st store.Store, id store.EngineID, n int) ([]store.Transition, error) {
	ids, err := IDs(st.Runs(s.ctx, Orphans(0, 40)))
	if err != nil {
		return nil, err
	}
	var batch []store.Transition
	for _, run := range ids {
		if int(run)%2 != n {
			continue
		}
		h, rows, err := store.LoadRun(s.ctx, st, run)
		if err != nil {
			return nil, err
		}
		if h.State.Final() {
			continue // another engine has taken the run over and ended it meanwhile
		}
		last := rows[len(rows)-1].Seq
		t := next(run, last+1)
		t.Owner, t.NextCheck = &id, h.NextCheck
		t.Data = note{by: id, take: true, id: uint64(id)<<32 | uint64(t.Seq)}.encode()
		batch = append(batch, t)
	}
	return sorted(batch), nil
}

func sorted(batch []store.Transition) []store.Transition {
	slices.SortFunc(batch, func(a, b store.Transition) int { return int(a.Run - b.Run) })
	return batch
}

// learn records the outcomes of a batch. It returns the runs on which the writer still works: the
// runs in the parameter `mine` and the new runs. It leaves out runs that have ended, and runs that
// another engine has taken over.
func (s *stress) learn(mine []owned, batch []store.Transition, out []store.Outcome) []owned {
	s.mu.Lock()
	defer s.mu.Unlock()
	seq := make(map[status.RunID]int32)
	for i, t := range batch {
		switch n, _ := decodeNote(t.Seq, t.Data); {
		case out[i].Landed:
			if s.landed[t.Run] == nil {
				s.known = append(s.known, t.Run)
			}
			s.landed[t.Run] = append(s.landed[t.Run], n)
			if len(t.Consumed) > 0 {
				s.ate++
			}
			if t.Names != nil {
				s.named[t.Run] = *t.Names
				if want := (store.Submitted{Run: t.Run, Name: t.Names.Name}); out[i].Submitted != want {
					s.Errorf("run %d: submitted = %+v, want %+v", t.Run, out[i].Submitted, want)
				}
			}
			seq[t.Run] = t.Seq
			if t.State.Final() {
				seq[t.Run] = -1
			}
		case t.Names != nil && out[i].Err == nil && out[i].Submitted.Exists:
			s.found = append(s.found, claim{*t.Names, out[i].Submitted.Run})
		case t.Names != nil && errors.Is(out[i].Err, store.ErrFenced):
		case errors.Is(out[i].Err, store.ErrStale):
			s.stale++
			seq[t.Run] = -1
		default:
			s.Errorf("run %d seq %d: %v", t.Run, t.Seq, out[i].Err)
		}
	}
	var kept []owned
	for _, o := range mine {
		if n, ok := seq[o.run]; !ok {
			kept = append(kept, o)
		} else if n >= 0 {
			kept = append(kept, owned{o.run, n})
		}
		delete(seq, o.run)
	}
	for run, n := range seq {
		if n >= 0 {
			kept = append(kept, owned{run, n})
		}
	}
	return kept
}

// executioner declares working engines dead from time to time, and makes requests and
// answers get lost.
func (s *stress) executioner(ctx context.Context) {
	rnd := rand.New(rand.NewPCG(s.seed, 99))
	tick := time.NewTicker(40 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if rnd.IntN(2) == 0 {
			s.Lose(s.T, rnd.IntN(2) == 0)
			continue
		}
		s.mu.Lock()
		var victim store.EngineID
		if len(s.alive) > 2 {
			i := rnd.IntN(len(s.alive))
			victim = s.alive[i]
			s.alive = slices.Delete(s.alive, i, i+1)
		}
		s.mu.Unlock()
		if victim == 0 {
			continue
		}
		s.Expire(s.T, victim)
		if dead, err := s.Other.Fence(s.ctx, victim); err != nil || !dead {
			s.Errorf("fence: dead = %v, err = %v", dead, err)
		}
	}
}

// judge checks every journal, every message, every name and every key.
func (s *stress) judge() {
	rows := 0
	for run, reported := range s.landed {
		rows += s.judgeRun(run, reported)
	}
	posted, eaten := 0, 0
	for run, ids := range s.said {
		posted += len(ids)
		eaten += s.judgeMessages(run, ids)
	}
	s.judgeNames()
	if !s.enoughLocked() || eaten == 0 {
		s.Errorf("%d runs, %d under names, %d submissions told of another, %d fenced writers, %d of %d messages consumed: too little happened to prove anything",
			len(s.landed), len(s.named), len(s.found), s.fenced, eaten, posted)
	}
	s.Logf("%d runs, %d under names, %d submissions told of another, %d rows, %d stale, %d fenced writers, %d of %d messages consumed",
		len(s.landed), len(s.named), len(s.found), rows, s.stale, s.fenced, eaten, posted)
}

// judgeNames checks that every run that was committed with names has these names, and that
// no two runs hold the same key. If the answer to a submission was an earlier run,
// judgeNames checks that this run has the name or the key of the submission.
func (s *stress) judgeNames() {
	held := make(map[string]status.RunID)
	for run, n := range s.named {
		r, err := store.Complete(s.Store).Find(s.ctx, n.Name)
		if err != nil || r.Run != run || r.Key != n.Key {
			s.Errorf("find %q = run %d with key %q, err = %v, want run %d with key %q", n.Name, r.Run, r.Key, err, run, n.Key)
		}
		if n.Key == "" || !storekit.HoldsKey(r.State) {
			continue
		}
		if other := held[n.Key]; other != 0 {
			s.Errorf("runs %d and %d hold the key %q", run, other, n.Key)
		}
		held[n.Key] = run
	}
	for _, c := range s.found {
		switch has, ok := s.named[c.run]; {
		case ok && has.Name != c.names.Name && (c.names.Key == "" || has.Key != c.names.Key):
			s.Errorf("a submission as %+v was told of run %d, which has %+v", c.names, c.run, has)
		case !ok: // the engine was declared dead before it could record that it committed this run
			if r, err := store.Complete(s.Store).Find(s.ctx, strconv.FormatInt(int64(c.run), 10)); err != nil || r.Name != c.names.Name && r.Key != c.names.Key {
				s.Errorf("a submission as %+v was told of run %d: %+v, err = %v", c.names, c.run, r, err)
			}
		}
	}
}

// judgeMessages checks that each message of a run is still waiting or was consumed by
// exactly one row. It returns the number of rows of the run that consumed a message.
func (s *stress) judgeMessages(run status.RunID, ids []store.MessageID) (eaten int) {
	waiting, err := s.Store.Messages(s.ctx, run, 0, 1<<20)
	if err != nil {
		s.Errorf("messages of run %d: %v", run, err)
		return 0
	}
	places := make(map[store.MessageID]int)
	for _, m := range waiting {
		places[m.ID]++
	}
	_, rows := s.load(run)
	for _, r := range rows {
		if n, ok := decodeNote(r.Seq, r.Data); ok && n.ate != 0 {
			places[n.ate]++
			eaten++
		}
	}
	for _, id := range ids {
		if places[id] != 1 {
			s.Errorf("run %d: message %d is in %d places, want it waiting or consumed once", run, id, places[id])
		}
		delete(places, id)
	}
	if len(places) > 0 {
		s.Errorf("run %d: messages that nobody posted: %v", run, places)
	}
	return eaten
}

func (s *stress) judgeRun(run status.RunID, reported []note) int {
	head, rows := s.load(run) // load checks for gaps
	var (
		owner store.EngineID
		fence int32
		there = make(map[note]bool)
	)
	for _, r := range rows {
		n, ok := decodeNote(r.Seq, r.Data)
		if !ok {
			s.Errorf("run %d seq %d: data = %x", run, r.Seq, r.Data)
			return len(rows)
		}
		there[n] = true
		if r.Seq == 0 || n.take {
			owner, fence = n.by, r.Seq
		}
		if n.by != owner {
			s.Errorf("run %d seq %d: written by %d while %d owned it", run, r.Seq, n.by, owner)
		}
	}
	for _, n := range reported {
		if !there[n] {
			s.Errorf("run %d seq %d: reported as landed, but another row stands there", run, n.seq)
		}
	}
	if head.Owner != owner || head.Fence != fence {
		s.Errorf("run %d: owner = %d, fence = %d, want the fold %d, %d", run, head.Owner, head.Fence, owner, fence)
	}
	if head.State.Final() == head.FinishedAt.IsZero() {
		s.Errorf("run %d: %v, finished at %v", run, head.State, head.FinishedAt)
	}
	if head.State.Final() && !head.FinishedAt.Equal(rows[len(rows)-1].At) {
		s.Errorf("run %d: a row after the end: finished at %v, last row at %v", run, head.FinishedAt, rows[len(rows)-1].At)
	}
	return len(rows)
}
