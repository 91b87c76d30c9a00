package plugin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/saga-engine/engine/sdk"
	pb "github.com/saga-engine/engine/sdk/plugin/internal/proto"
	"github.com/saga-engine/engine/sdk/schema"
)

// A puppet is an agent's half of a session, in this process, that does what a
// test tells it.
type puppet struct {
	pb.UnimplementedAgentServer
	window uint32
	heard  chan *pb.Invocation
	sizes  chan int // of the batches
	say    chan *pb.ResultBatch
	end    chan error
}

func newPuppet(window uint32) *puppet {
	return &puppet{
		window: window, heard: make(chan *pb.Invocation, 10_000), sizes: make(chan int, 10_000),
		say: make(chan *pb.ResultBatch), end: make(chan error, 1),
	}
}

// Session implements the protocol.
func (p *puppet) Session(stream pb.Agent_SessionServer) error {
	if err := stream.Send(&pb.ResultBatch{Window: p.window}); err != nil {
		return err
	}
	go func() {
		for {
			batch, err := stream.Recv()
			if err != nil {
				return
			}
			p.sizes <- len(batch.GetInvocations())
			for _, inv := range batch.GetInvocations() {
				p.heard <- inv
			}
		}
	}()
	for {
		select {
		case batch := <-p.say:
			if err := stream.Send(batch); err != nil {
				return err
			}
		case err := <-p.end:
			return err
		case <-stream.Context().Done():
			return nil
		}
	}
}

// next returns what the agent hears next.
func (p *puppet) next(t *testing.T) *pb.Invocation {
	t.Helper()
	select {
	case inv := <-p.heard:
		return inv
	case <-time.After(10 * time.Second):
		t.Fatal("the agent heard nothing")
		return nil
	}
}

// silent checks that the agent hears nothing that is on its way already.
func (p *puppet) silent(t *testing.T, host *Process) {
	t.Helper()
	s := host.session
	s.mu.Lock()
	sent := s.busy
	s.mu.Unlock()
	if int(p.window) < sent {
		t.Errorf("%d calls are out, the window is %d", sent, p.window)
	}
	if len(p.heard) > 0 {
		t.Errorf("the agent heard %v", <-p.heard)
	}
}

func (p *puppet) good(ids ...uint64) *pb.ResultBatch {
	batch := &pb.ResultBatch{}
	for _, id := range ids {
		reply := replyToWire(sdk.Reply{Outcome: sdk.OutcomeResult, Output: []byte(`{}`)})
		batch.Results = append(batch.Results, &pb.Result{Id: id, Event: &pb.Result_Reply{Reply: reply}})
	}
	return batch
}

// hostOf is the host's half of a process that lives and is this one.
func hostOf(t *testing.T, agent pb.AgentServer) *Process {
	t.Helper()
	o := OpenOptions{Path: "puppet"}.withDefaults()
	p := &Process{
		child: newChild(&o, newLines(o.Logger, time.Now)), options: o, rpc: dial(t, agent, new(atomic.Int64)),
		schema: schema.Schema{Name: "puppet", Actions: map[string]schema.Action{"echo": {}}},
	}
	if err := p.openSession(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p
}

type end struct {
	reply sdk.Reply
	err   error
}

// begin starts a call.
func begin(t *testing.T, p *Process, left time.Duration) (*Ongoing, <-chan end) {
	t.Helper()
	req := request("echo", `{}`)
	req.CompleteBy = time.Now().Add(left)
	ends := make(chan end, 2)
	var n atomic.Int32
	g := p.Start(t.Context(), req, CallOptions{}, func(reply sdk.Reply, err error) {
		if n.Add(1) > 1 {
			t.Error("a call ended twice")
		}
		ends <- end{reply, err}
	})
	return g, ends
}

func awaitEnd(t *testing.T, ends <-chan end) end {
	t.Helper()
	select {
	case e := <-ends:
		return e
	case <-time.After(10 * time.Second):
		t.Fatal("a call did not end")
		return end{}
	}
}

// No more calls are out than the agent takes; the others wait here, certainly
// unsent, and an answer, a deadline or a lost call makes room for the next one.
func TestWindow(t *testing.T) {
	agent := newPuppet(2)
	p := hostOf(t, agent)
	_, one := begin(t, p, time.Minute)
	_, two := begin(t, p, 700*time.Millisecond)
	if a, b := agent.next(t).GetId(), agent.next(t).GetId(); a != 1 || b != 2 {
		t.Fatalf("calls %d and %d, want 1 and 2", a, b)
	}
	unwanted, three := begin(t, p, time.Minute)
	_, four := begin(t, p, 50*time.Millisecond)
	_, five := begin(t, p, time.Minute)
	_, six := begin(t, p, time.Minute)
	unwanted.Cancel()
	if e := awaitEnd(t, three); !errors.Is(e.err, ErrNotSent) || !errors.Is(e.err, context.Canceled) {
		t.Errorf("cancelled while it waited: %+v, want ErrNotSent and Canceled", e)
	}
	if e := awaitEnd(t, four); !errors.Is(e.err, ErrNotSent) || !errors.Is(e.err, context.DeadlineExceeded) {
		t.Errorf("too late while it waited: %+v, want ErrNotSent and DeadlineExceeded", e)
	}
	agent.silent(t, p)

	agent.say <- agent.good(1)
	if e := awaitEnd(t, one); e.err != nil || e.reply.Outcome != sdk.OutcomeResult {
		t.Errorf("answered: %+v", e)
	}
	if id := agent.next(t).GetId(); id != 5 {
		t.Errorf("then call %d, want 5", id)
	}
	if e := awaitEnd(t, two); !errors.Is(e.err, context.DeadlineExceeded) || errors.Is(e.err, ErrNotSent) {
		t.Errorf("not answered: %+v, want DeadlineExceeded", e)
	}
	// The agent is told about the one, and hears of the other.
	for range 2 {
		if inv := agent.next(t); inv.GetCancel() != nil && inv.GetId() != 2 || inv.GetCancel() == nil && inv.GetId() != 6 {
			t.Errorf("heard %v, want the cancel of 2 and call 6", inv)
		}
	}
	agent.say <- agent.good(6, 5)
	for _, ends := range []<-chan end{five, six} {
		if e := awaitEnd(t, ends); e.err != nil || e.reply.Outcome != sdk.OutcomeResult {
			t.Errorf("answered: %+v", e)
		}
	}
}

// S30: when the stream ends, what the agent may have seen is unknown, and what it
// has certainly not seen was not sent.
func TestSessionEnds(t *testing.T) {
	agent := newPuppet(1)
	p := hostOf(t, agent)
	_, one := begin(t, p, time.Minute)
	agent.next(t)
	_, two := begin(t, p, time.Minute)
	agent.end <- errors.New("enough")
	if e := awaitEnd(t, one); e.err != nil || e.reply.Outcome != sdk.OutcomeUnknown || e.reply.Code != sdk.CodeAgentLost {
		t.Errorf("sent: %+v, want unknown agent_lost", e)
	}
	if e := awaitEnd(t, two); !errors.Is(e.err, ErrNotSent) {
		t.Errorf("not sent: %+v, want ErrNotSent", e)
	}
	if p.liveSession() != nil {
		t.Error("the session goes on")
	}
}

// Answers that were given before do not come again, whatever the agent says.
func TestAnswersOfOthers(t *testing.T) {
	agent := newPuppet(0)
	p := hostOf(t, agent)
	for id := range uint64(3) {
		_, one := begin(t, p, time.Minute)
		agent.next(t)
		agent.say <- agent.good(0, id, 1<<63, 77) // of nobody, of one that is over, of none
		agent.say <- agent.good(id+1, id+1, id+1)
		if e := awaitEnd(t, one); e.err != nil || e.reply.Outcome != sdk.OutcomeResult {
			t.Errorf("answered: %+v", e)
		}
	}
}

// A batch is what queued while the one before it was on its way, up to its limits
// in number and bytes. A large payload goes alone.
func TestBatchLimits(t *testing.T) {
	s := &session{limit: 10_000, calls: map[uint64]*call{}}
	add := func(n int, payload int) {
		for range n {
			c := &call{req: request("echo", strings.Repeat("x", payload)), state: callWaiting}
			c.size = callBound(&c.req)
			s.waiting = append(s.waiting, c)
		}
	}
	add(2, 1000)
	add(1, 20_000) // as large as the limit of a message may be
	add(30, 1000)
	add(600, 0)
	s.limit = 12_000
	var got []int
	for s.fill() {
		got = append(got, len(s.out.calls))
		if data := s.out.append(nil); len(data) > s.limit && len(s.out.calls) > 1 {
			t.Errorf("a batch of %d calls has %d bytes", len(s.out.calls), len(data))
		}
	}
	sum := 0
	for _, n := range got {
		sum += n
		if n > maxBatch {
			t.Errorf("a batch of %d calls", n)
		}
	}
	if sum != 633 || got[0] != 2 || got[1] != 1 {
		t.Errorf("batches of %v, want 2, then one alone, 633 in all", got)
	}
	for range 3 * maxBatch {
		s.cancels = append(s.cancels, 1)
	}
	for n := 0; s.fill(); n++ {
		if len(s.out.cancels) != maxBatch || n > 2 {
			t.Errorf("batch %d with %d cancels", n, len(s.out.cancels))
		}
	}
}

// Calls that wait in vain do not pile up.
func TestWaitingInVain(t *testing.T) {
	agent := newPuppet(1)
	p := hostOf(t, agent)
	begin(t, p, time.Minute)
	agent.next(t)
	for range 10 * maxBatch {
		g, ends := begin(t, p, time.Minute)
		g.Cancel()
		awaitEnd(t, ends)
	}
	p.session.mu.Lock()
	defer p.session.mu.Unlock()
	if n := len(p.session.waiting); n > 2*maxBatch {
		t.Errorf("%d calls wait, want none that is over", n)
	}
}

// One call that hangs, panics or ends its goroutine hurts no other, and one that
// floods with events waits for itself.
func TestOneCallHurtsOnlyItself(t *testing.T) {
	release := make(chan struct{})
	a := sdk.New("bad", "1.0.0")
	sdk.Action(a, "hang", func(context.Context, *sdk.Call, sdk.None) (sdk.None, error) {
		<-release
		return sdk.None{}, nil
	})
	sdk.Action(a, "panic", func(context.Context, *sdk.Call, sdk.None) (sdk.None, error) { panic("out of cheese") })
	sdk.Action(a, "exit", func(context.Context, *sdk.Call, sdk.None) (sdk.None, error) {
		runtime.Goexit()
		return sdk.None{}, nil
	})
	sdk.Action(a, "flood", func(ctx context.Context, c *sdk.Call, _ sdk.None) (sdk.None, error) {
		for ctx.Err() == nil {
			c.Heartbeat(0.5, strings.Repeat("x", 1000))
		}
		return sdk.None{}, ctx.Err()
	}, sdk.Heartbeats())
	sdk.Action(a, "echo", func(_ context.Context, _ *sdk.Call, in anyIn) (anyOut, error) { return anyOut(in), nil })
	schema, err := a.Schema()
	if err != nil {
		t.Fatal(err)
	}
	l := newLife("")
	p := hostOf(t, newServer(a, schema, l, slog.New(slog.DiscardHandler), DefaultPayloadLimit))
	p.schema = schema
	var all sync.WaitGroup
	bad := func(n int, action string, want func(end) bool) {
		for range n {
			all.Go(func() {
				req := request(action, `{}`)
				req.CompleteBy = time.Now().Add(2 * time.Second)
				reply, err := p.Invoke(t.Context(), req, nil)
				if !want(end{reply, err}) {
					t.Errorf("%s: %+v, %v", action, reply, err)
				}
			})
		}
	}
	silent := func(e end) bool { return errors.Is(e.err, context.DeadlineExceeded) }
	internal := func(e end) bool {
		return e.err == nil && e.reply.Outcome == sdk.OutcomeUnknown && e.reply.Code == sdk.CodeInternal
	}
	bad(20, "hang", silent)
	bad(20, "panic", internal)
	bad(20, "exit", internal)
	bad(4, "flood", func(e end) bool { return silent(e) || e.reply.Code == sdk.CodeAborted })
	for n := range 200 {
		if r := invoke(t, p, request("echo", fmt.Sprintf(`{"value":%d}`, n))); string(r.Output) != fmt.Sprintf(`{"value":%d}`, n) {
			t.Fatalf("reply = %+v", r)
		}
	}
	all.Wait()
	close(release)
	for deadline := time.Now().Add(10 * time.Second); ; {
		l.mu.Lock()
		left := len(l.running)
		l.mu.Unlock()
		if left == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d functions still run", left)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// The end of a session ends the contexts of its calls.
func TestSessionEndsAtTheAgent(t *testing.T) {
	ended := make(chan error, 1)
	begun := make(chan struct{})
	a := sdk.New("waits", "1.0.0")
	sdk.Action(a, "wait", func(ctx context.Context, _ *sdk.Call, _ sdk.None) (sdk.None, error) {
		close(begun)
		<-ctx.Done()
		ended <- ctx.Err()
		return sdk.None{}, ctx.Err()
	})
	client, _ := serveInProcess(t, a)
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := client.Session(ctx)
	if err != nil {
		t.Fatal(err)
	}
	call := &pb.Invocation{Id: 1, Request: &pb.Invocation_Call{Call: callToWire(request("wait", `{}`))}}
	for range 2 { // the second one is no new call
		if err := stream.Send(&pb.InvocationBatch{Invocations: []*pb.Invocation{call}}); err != nil {
			t.Fatal(err)
		}
	}
	<-begun
	cancel()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the context's end: %v, want Canceled", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the call goes on")
	}
}

// S28: complete-by may be noticed by the agent's word before its own timer has
// said so. The timer that comes second does not end the listening.
func TestTimerBehindTheAgentsWord(t *testing.T) {
	s := &session{calls: map[uint64]*call{}, wake: make(chan struct{}, 1)}
	var late, ended int
	c := &call{
		session: s, id: 1, state: callSent, timer: time.NewTimer(time.Hour), process: &Process{schema: schema.Schema{Name: "x"}},
		options: CallOptions{OnExpired: func() time.Duration { return time.Hour }, OnLate: func(sdk.Reply) { late++ }},
		done:    func(sdk.Reply, error) { ended++ },
	}
	s.calls[1] = c
	s.mu.Lock()
	s.expireLocked(c)
	s.mu.Unlock()
	c.timeout() // had gone off before it could be stopped
	c.listen()
	if ended != 0 || c.state != callListening {
		t.Fatalf("ended %d times, state %d: it is not listened to", ended, c.state)
	}
	s.take([]answer{{id: 1, final: true, reply: sdk.Reply{Outcome: sdk.OutcomeUnknown, Code: "x"}}}, time.Now())
	if late != 1 || ended != 1 {
		t.Errorf("%d late answers, ended %d times, want one and one", late, ended)
	}
}
