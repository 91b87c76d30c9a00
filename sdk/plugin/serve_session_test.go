package plugin

import (
	"context"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/saga-engine/engine/sdk"
)

// However many calls an agent has, none waits for another one's function to
// return: all of these return only when all have begun.
func TestAllCallsBegin(t *testing.T) {
	const calls = 2*maxIdle + maxBatch
	var begun atomic.Int64
	all := make(chan struct{})
	a := sdk.New("meeting", "1.0.0")
	sdk.Action(a, "meet", func(ctx context.Context, _ *sdk.Call, _ sdk.None) (sdk.None, error) {
		if begun.Add(1) == calls {
			close(all)
		}
		select {
		case <-all:
			return sdk.None{}, nil
		case <-ctx.Done():
			return sdk.None{}, ctx.Err()
		}
	})
	schema, err := a.Schema()
	if err != nil {
		t.Fatal(err)
	}
	p := hostOf(t, newServer(a, schema, newLife(""), slog.New(slog.DiscardHandler), DefaultPayloadLimit))
	p.schema = schema
	for range 2 { // the second time there are goroutines at hand
		var group sync.WaitGroup
		for range calls {
			group.Go(func() {
				req := request("meet", `{}`)
				req.CompleteBy = time.Now().Add(20 * time.Second)
				if r, err := p.Invoke(t.Context(), req, nil); err != nil || r.Outcome != sdk.OutcomeResult {
					t.Errorf("%+v, %v; %d of %d calls have begun", r, err, begun.Load(), calls)
				}
			})
		}
		group.Wait()
		if t.Failed() {
			return
		}
		begun.Store(0)
		all = make(chan struct{})
	}
}

// sent is a stream that notes how many answers each message has.
type sent struct {
	grpc.ServerStream
	messages []int
}

func (s *sent) SendMsg(m any) error {
	s.messages = append(s.messages, len(m.(*results).list))
	return nil
}

func newSent(calls int) (*sent, *link) {
	s := &sent{}
	l := &link{stream: s, limit: batchBytes, jobs: map[uint64]*job{}}
	l.quiet = sync.NewCond(&l.mu)
	for id := range calls {
		l.jobs[uint64(id)] = &job{}
	}
	return s, l
}

func (l *link) say(id int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = append(l.queue, outgoing{id: uint64(id), time: &allowance{start: time.Now(), left: time.Hour, completeBy: time.Now().Add(time.Hour)}})
}

// Answers that are ready together share messages, also where each has a
// goroutine of its own.
func TestAnswersShareMessages(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so that they take turns
	const answers = 100
	s, l := newSent(answers)
	var all sync.WaitGroup
	for id := range answers {
		all.Go(func() {
			l.say(id)
			l.flush(true)
		})
	}
	all.Wait()
	total := 0
	for _, n := range s.messages {
		total += n
	}
	if total != answers || len(s.messages) > answers/4 {
		t.Errorf("messages of %v answers, want all %d in few", s.messages, answers)
	}
}

// What must not wait is sent while somebody lets others go first, with what that
// one would have sent.
func TestSignsOfLifeDoNotWait(t *testing.T) {
	s, l := newSent(2)
	l.yielding = true
	l.say(1)
	l.flush(true)
	if len(s.messages) != 0 {
		t.Fatalf("messages of %v answers, want none yet", s.messages)
	}
	l.say(2)
	l.flush(false)
	if !slices.Equal(s.messages, []int{2}) {
		t.Fatalf("messages of %v answers, want one of 2", s.messages)
	}
	l.yielding = false
	l.flush(true)
	if len(s.messages) != 1 {
		t.Fatalf("messages of %v answers, want no empty one", s.messages)
	}
}

// Calls that wait take the places of those that have begun.
func TestPendingCallsTakeNoMoreThanTheyNeed(t *testing.T) {
	_, l := newSent(0)
	l.ctx, l.called = t.Context(), true // nobody comes for them
	const waiting = 10
	var next uint64
	begin := func() {
		next++
		l.begin(next, sdk.Request{CompleteBy: time.Now().Add(time.Hour), Remaining: time.Hour})
	}
	for range waiting {
		begin()
	}
	for want := uint64(1); want < 10_000; want++ {
		begin()
		if j := l.takeJobLocked(); j.id != want {
			t.Fatalf("call %d comes, want %d", j.id, want)
		}
	}
	if c := cap(l.pending); c > 8*waiting {
		t.Errorf("room for %d calls while %d wait", c, waiting)
	}
}

// A buffer has the length that was asked for, whatever was in the pool.
func TestBuffers(t *testing.T) {
	var p buffers
	for _, n := range []int{1, minBuffer, 100, minBuffer + 1, 0, maxBuffer, 3 * maxBuffer, 200, batchBytes} {
		b := p.Get(n)
		if len(*b) != n || cap(*b) < minBuffer {
			t.Errorf("a buffer of %d has length %d, room for %d", n, len(*b), cap(*b))
		}
		for i := range *b {
			(*b)[i] = 0xff
		}
		p.Put(b)
	}
}
