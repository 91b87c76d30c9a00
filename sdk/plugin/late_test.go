package plugin

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/saga-engine/engine/sdk"
	pb "github.com/saga-engine/engine/sdk/plugin/internal/proto"
	"github.com/saga-engine/engine/sdk/schema"
)

// clocks are the ways in which complete-by can have passed or not.
func clocks(now time.Time) map[string]struct {
	start, completeBy time.Time
	late              bool
} {
	return map[string]struct {
		start, completeBy time.Time
		late              bool
	}{
		"neither":        {now, now.Add(time.Hour), false},
		"the wall clock": {now, now.Add(-time.Second), true},
		"the time left":  {now.Add(-2 * time.Minute), now.Add(time.Hour), true},
	}
}

// S28: complete-by has passed when either clock says so, on either side.
func TestLateByEitherClock(t *testing.T) {
	now := time.Now()
	for name, test := range clocks(now) {
		c := &call{start: test.start, left: time.Minute, req: sdk.Request{CompleteBy: test.completeBy}}
		if got := c.late(now); got != test.late {
			t.Errorf("%s: the engine's side says late=%t, want %t", name, got, test.late)
		}
		a := allowance{start: test.start, left: time.Minute, completeBy: test.completeBy}
		if got := a.over(now); got != test.late {
			t.Errorf("%s: the agent's side says over=%t, want %t", name, got, test.late)
		}
	}
}

// S28: a call whose time is over when it comes is not begun by the agent's side,
// and takes no place there.
func TestCallThatComesTooLateIsNotBegun(t *testing.T) {
	for name, req := range map[string]sdk.Request{
		"the wall clock": {CompleteBy: time.Now().Add(-time.Nanosecond), Remaining: time.Hour},
		"the time left":  {CompleteBy: time.Now().Add(time.Hour), Remaining: -time.Nanosecond},
	} {
		_, l := newSent(0)
		l.ctx, l.called = t.Context(), true // nobody comes for them
		l.begin(1, req)
		if len(l.jobs) != 0 || len(l.pending) != 0 {
			t.Errorf("%s: %d calls, %d of them wait, want none", name, len(l.jobs), len(l.pending))
		}
	}
}

// overtaken is a call that was sent, whose time is over by each way in turn, and
// whose timer has not gone off yet.
func overtaken(t *testing.T, test func(t *testing.T, c *call, late *int)) {
	for name, clock := range clocks(time.Now()) {
		if !clock.late {
			continue
		}
		t.Run(name, func(t *testing.T) {
			late := 0
			c := &call{
				start: clock.start, left: time.Minute, req: request("echo", `{}`), timer: time.NewTimer(time.Hour),
				options: CallOptions{OnExpired: func() time.Duration { return time.Hour }, OnLate: func(sdk.Reply) { late++ }},
			}
			c.req.CompleteBy = clock.completeBy
			test(t, c, &late)
		})
	}
}

// S28: an answer after complete-by does not count where it overtakes the timer
// that would have said so.
func TestAnswerThatOvertakesItsTimer(t *testing.T) {
	overtaken(t, func(t *testing.T, c *call, late *int) {
		var ends []end
		c.session = &session{calls: map[uint64]*call{1: c}, wake: make(chan struct{}, 1), busy: 1}
		c.id, c.state, c.process = 1, callSent, &Process{schema: schema.Schema{Name: "x"}}
		c.done = func(r sdk.Reply, err error) { ends = append(ends, end{r, err}) }
		c.session.take([]answer{{id: 1, final: true, reply: sdk.Reply{Outcome: sdk.OutcomeResult, Output: []byte(`{}`)}}}, time.Now())
		if len(ends) != 1 || !errors.Is(ends[0].err, context.DeadlineExceeded) || ends[0].reply.Outcome != sdk.OutcomeInvalid || *late != 1 {
			t.Errorf("ends %+v, %d late answers, want DeadlineExceeded and the answer as evidence", ends, *late)
		}
	})
}

// S28: the same for a session that ends before the timer has gone off: the call
// is over for its time and not lost.
func TestSessionThatEndsAfterCompleteBy(t *testing.T) {
	overtaken(t, func(t *testing.T, c *call, _ *int) {
		var ends []end
		c.session = &session{calls: map[uint64]*call{1: c}, wake: make(chan struct{}, 1), busy: 1}
		c.id, c.state, c.process = 1, callSent, &Process{schema: schema.Schema{Name: "x"}, child: newChild(&OpenOptions{}, nil)}
		c.done = func(r sdk.Reply, err error) { ends = append(ends, end{r, err}) }
		c.endLocked(errors.New("gone"), time.Now())()
		if len(ends) != 1 || !errors.Is(ends[0].err, context.DeadlineExceeded) {
			t.Errorf("ends %+v, want DeadlineExceeded", ends)
		}
	})
}

// A cancelled call may reach the end of CancelGrace after complete-by, but before its timer: the
// wall clock was set forward. Then complete-by is reported, too, and the call ends for its time.
func TestCancelledCallThatEndsAfterCompleteBy(t *testing.T) {
	overtaken(t, func(t *testing.T, c *call, _ *int) {
		var ends []end
		expired := 0
		c.session = &session{calls: map[uint64]*call{1: c}, wake: make(chan struct{}, 1), busy: 1}
		c.id, c.state, c.cancelled, c.process = 1, callSent, context.Canceled, &Process{schema: schema.Schema{Name: "x"}}
		c.options.OnExpired = func() time.Duration { expired++; return time.Hour }
		c.done = func(r sdk.Reply, err error) { ends = append(ends, end{r, err}) }
		c.abandon()
		c.timeout() // had gone off before it could be stopped
		if len(ends) != 1 || !errors.Is(ends[0].err, context.DeadlineExceeded) || expired != 1 {
			t.Errorf("ends %+v, complete-by reported %d times; want DeadlineExceeded, and once", ends, expired)
		}
	})
}

// The same for a call that goes alone, whose stream ends.
func TestLoneCallThatEndsAfterCompleteBy(t *testing.T) {
	overtaken(t, func(t *testing.T, c *call, _ *int) {
		expired := 0
		c.process = &Process{schema: schema.Schema{Name: "x"}}
		c.options.OnExpired = func() time.Duration { expired++; return time.Hour }
		_, err := c.lost(t.Context(), errors.New("gone"))
		if !errors.Is(err, context.DeadlineExceeded) || expired != 1 {
			t.Errorf("error %v, complete-by reported %d times; want DeadlineExceeded, and once", err, expired)
		}
	})
}

// lone answers calls that go alone, at once.
type lone struct {
	pb.UnimplementedAgentServer
}

func (lone) Session(stream pb.Agent_SessionServer) error {
	if err := stream.Send(&pb.ResultBatch{}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

func (lone) Invoke(stream pb.Agent_InvokeServer) error {
	if _, err := stream.Recv(); err != nil {
		return err
	}
	return stream.Send(replyToEvent(sdk.Reply{Outcome: sdk.OutcomeResult, Output: []byte(`{}`)}))
}

// S28: and for a call that goes alone.
func TestLoneAnswerThatOvertakesItsTimer(t *testing.T) {
	p := hostOf(t, lone{})
	overtaken(t, func(t *testing.T, c *call, late *int) {
		c.process = p
		reply, err := c.unary(t.Context())
		if !errors.Is(err, context.DeadlineExceeded) || reply.Outcome != sdk.OutcomeInvalid || *late != 1 {
			t.Errorf("reply=%+v, %v, %d late answers, want DeadlineExceeded and the answer as evidence", reply, err, *late)
		}
	})
}

// A second engine cannot take control of a process: the end of the first one
// would not end it any more.
func TestOneEngineIsInControl(t *testing.T) {
	a := testAgent()
	schema, err := a.Schema()
	if err != nil {
		t.Fatal(err)
	}
	taken := 0
	l := newLife("")
	l.exit = func(string) {}
	s := newServer(a, schema, l, slog.New(slog.DiscardHandler), DefaultPayloadLimit)
	s.controlled = func() { taken++ }
	p := hostOf(t, s)
	if err := p.takeControl(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.release)
	second := hostOf(t, s)
	if err := second.takeControl(t.Context()); status.Code(errors.Unwrap(err)) != codes.AlreadyExists {
		t.Errorf("a second engine: %v, want AlreadyExists", err)
	}
	if taken != 1 {
		t.Errorf("control was taken %d times, want once", taken)
	}
}

// An output that the engine takes is not refused by the agent's side.
func TestPayloadLimitReachesTheAgent(t *testing.T) { both(t, testPayloadLimitReachesTheAgent) }

func testPayloadLimitReachesTheAgent(t *testing.T, protocol int) {
	p := open(t, OpenOptions{Protocol: protocol, PayloadLimit: 3 * DefaultPayloadLimit})
	if r := invoke(t, p, request("big", `{"ms":2097152}`)); r.Outcome != sdk.OutcomeResult {
		r.Output = nil
		t.Errorf("reply = %+v, want a result", r)
	}
}

// S28: what was queued in time and could not be sent in time is not sent.
func TestLateAnswerIsNotSent(t *testing.T) {
	s, l := newSent(0)
	for name, clock := range clocks(time.Now()) {
		l.queue = append(l.queue, outgoing{id: 1, time: &allowance{start: clock.start, left: time.Minute, completeBy: clock.completeBy}})
		before := len(s.messages)
		l.flush(false)
		if sent := len(s.messages) > before; sent == clock.late {
			t.Errorf("%s: sent=%t, want %t", name, sent, !clock.late)
		}
	}
}
