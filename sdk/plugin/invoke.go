package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/saga-engine/engine/sdk"
	pb "github.com/saga-engine/engine/sdk/plugin/internal/proto"
)

// Invoke sends one call and waits for its end. onEvent, if not nil, receives the
// agent's heartbeats and checkpoints, in order, before Invoke returns.
// Request.Remaining is set here.
//
// The reply is the agent's own, checked against its schema, or an unknown
// outcome: sdk.CodeAgentLost if the process or the connection was lost,
// sdk.CodeBadReply if the reply was too large or made no sense (S35). An input
// over the payload limit is a definite sdk.CodeInvalid.
//
// The error is ctx's, or context.DeadlineExceeded when complete-by passes first
// (S28): then there is no reply. When ctx is cancelled the agent is told, and may
// still answer for OpenOptions.CancelGrace. An error that is ErrNotSent says that
// the agent never saw the call.
func (p *Process) Invoke(ctx context.Context, req sdk.Request, onEvent func(sdk.Event)) (sdk.Reply, error) {
	return p.Call(ctx, req, CallOptions{OnEvent: onEvent})
}

// CallOptions says who hears what of a call besides its reply. Zero fields hear
// nothing.
type CallOptions struct {
	// OnEvent receives the agent's heartbeats and checkpoints, in order.
	OnEvent func(sdk.Event)
	// OnExpired is called once when complete-by passes without a reply, by
	// another goroutine perhaps. It returns for how long the call is listened to
	// all the same; 0 = no longer.
	OnExpired func() time.Duration
	// OnLate receives what the agent answers in that time, checked like any
	// reply: evidence against an agent that does not keep silent (S28).
	OnLate func(sdk.Reply)
}

// Call is Invoke with options. While an expired call is listened to, Call has
// not returned; its error is context.DeadlineExceeded in any case.
func (p *Process) Call(ctx context.Context, req sdk.Request, o CallOptions) (sdk.Reply, error) {
	c := &call{process: p, req: req, options: o, start: time.Now()}
	if err := c.check(ctx); err != nil {
		return sdk.Reply{}, fmt.Errorf("plugin: invoke %s.%s: %w: %w", p.schema.Name, req.Action, ErrNotSent, err)
	}
	if err := validText(req); err != nil {
		return sdk.Reply{Outcome: sdk.OutcomeFailed, Code: sdk.CodeInvalid, Permanent: true, Message: err.Error()}, nil
	}
	msg := &pb.InvokeRequest{Request: &pb.InvokeRequest_Call{Call: callToWire(c.req)}}
	if size := proto.Size(msg); len(req.Input) > p.options.PayloadLimit || size > p.options.PayloadLimit+messageRoom {
		return sdk.Reply{
			Outcome: sdk.OutcomeFailed, Code: sdk.CodeInvalid, Permanent: true,
			Message: fmt.Sprintf("the input has %d bytes, the limit is %d", len(req.Input), p.options.PayloadLimit),
		}, nil
	}
	return c.run(ctx, msg)
}

// validText finds text that the wire does not carry; otherwise sending would fail
// in the middle and leave an outcome that is not known.
func validText(r sdk.Request) error {
	for name, text := range map[string]string{
		"action": r.Action, "idempotency key": r.IdempotencyKey, "forward key": r.ForwardKey,
		"run": r.Run, "workflow": r.Workflow, "step": r.Step, "trace parent": r.TraceParent,
	} {
		if !utf8.ValidString(text) {
			return fmt.Errorf("the %s is not valid UTF-8", name)
		}
	}
	return nil
}

// call is one Invoke.
type call struct {
	process *Process
	req     sdk.Request
	options CallOptions
	start   time.Time
	left    time.Duration
	expired atomic.Bool // complete-by passed while the call was out
	expiry  sync.Once
}

// expire notes that complete-by has passed, and ends the call now or when it
// has been listened to long enough.
func (c *call) expire(end func()) {
	c.expiry.Do(func() {
		c.expired.Store(true)
		listen := time.Duration(0)
		if c.options.OnExpired != nil {
			listen = c.options.OnExpired()
		}
		if listen <= 0 {
			end()
			return
		}
		time.AfterFunc(listen, end) // harmless once the call is over
	})
}

// check finds out what keeps the call from being sent.
func (c *call) check(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := c.process.Err(); err != nil {
		return err
	}
	c.left = c.req.TimeLeft(c.start)
	if c.left <= 0 {
		return fmt.Errorf("%w: %w", errDeadline, context.DeadlineExceeded)
	}
	c.req.Remaining = c.left
	return nil
}

func (c *call) run(ctx context.Context, msg *pb.InvokeRequest) (sdk.Reply, error) {
	// The stream has no deadline of its own: gRPC would send it along, and the
	// agent's side would then answer on its own at that time (S28).
	sctx, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	timer := time.AfterFunc(c.left, func() { c.expire(end) })
	defer timer.Stop()
	stopEarly := context.AfterFunc(ctx, end)
	stream, err := c.process.rpc.Invoke(sctx)
	if err != nil {
		stopEarly()
		return sdk.Reply{}, fmt.Errorf("plugin: invoke %s.%s: %w: %w", c.process.schema.Name, c.req.Action, ErrNotSent, c.cause(ctx, err))
	}
	// From here on the agent may have seen the call. Send reports its own
	// failure as io.EOF, and Recv has the cause.
	if err := stream.Send(msg); err != nil && !errors.Is(err, io.EOF) {
		return c.lost(ctx, err)
	}
	if !stopEarly() {
		return c.lost(ctx, ctx.Err())
	}
	defer context.AfterFunc(ctx, func() {
		if stream.Send(&pb.InvokeRequest{Request: &pb.InvokeRequest_Cancel{Cancel: &pb.Cancel{}}}) != nil {
			end()
			return
		}
		grace := time.NewTimer(c.process.options.CancelGrace)
		defer grace.Stop()
		select {
		case <-grace.C:
			end()
		case <-sctx.Done():
		}
	})()
	for {
		ev, err := stream.Recv()
		if err != nil {
			return c.lost(ctx, err)
		}
		r := ev.GetReply()
		if c.late() {
			c.expire(end)
			if r != nil {
				if c.options.OnLate != nil {
					c.options.OnLate(c.accept(replyFromWire(r)))
				}
				return sdk.Reply{}, c.silence()
			}
			continue
		}
		if r != nil {
			return c.accept(replyFromWire(r)), nil
		}
		c.tell(ev)
	}
}

// late reports whether complete-by has passed, by either clock.
func (c *call) late() bool {
	now := time.Now()
	return c.expired.Load() || now.Sub(c.start) >= c.left || !now.Round(0).Before(c.req.CompleteBy)
}

func (c *call) silence() error {
	return fmt.Errorf("plugin: invoke %s.%s: %w: %w", c.process.schema.Name, c.req.Action, errDeadline, context.DeadlineExceeded)
}

// cause says why the stream ended: time, the caller, the process, or the
// transport, in this order.
func (c *call) cause(ctx context.Context, err error) error {
	if c.late() {
		return fmt.Errorf("%w: %w", errDeadline, context.DeadlineExceeded)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return c.process.explain(err)
}

// lost decides what a call means that ended without a reply.
func (c *call) lost(ctx context.Context, err error) (sdk.Reply, error) {
	switch {
	case c.late():
		return sdk.Reply{}, c.silence()
	case ctx.Err() != nil:
		return sdk.Reply{}, fmt.Errorf("plugin: invoke %s.%s: %w", c.process.schema.Name, c.req.Action, ctx.Err())
	case status.Code(err) == codes.ResourceExhausted:
		return badReply(fmt.Sprintf("the reply is over the limit of %d bytes", c.process.options.PayloadLimit)), nil
	case errors.Is(err, io.EOF):
		return badReply("the call ended without a reply"), nil
	}
	return sdk.Reply{
		Outcome: sdk.OutcomeUnknown, Code: sdk.CodeAgentLost,
		Message: fmt.Sprintf("agent %s was lost: %v", c.process.schema.Name, c.process.explain(err)),
	}, nil
}

func (c *call) tell(ev *pb.InvokeEvent) {
	if c.options.OnEvent == nil {
		return
	}
	if h := ev.GetHeartbeat(); h != nil {
		c.options.OnEvent(sdk.Heartbeat{Progress: h.GetProgress(), Note: h.GetNote()})
	}
	if cp := ev.GetCheckpoint(); cp != nil {
		c.options.OnEvent(sdk.Checkpoint{Number: cp.GetNumber(), Blob: cp.GetBlob()})
	}
}

// accept returns the reply if it is valid, or what it is worth if not (S35).
func (c *call) accept(r sdk.Reply) sdk.Reply {
	lookup := c.req.Purpose == sdk.PurposeLookup
	switch r.Outcome {
	case sdk.OutcomeResult:
		if len(r.Output) > c.process.options.PayloadLimit {
			return badReply(fmt.Sprintf("the output has %d bytes, the limit is %d", len(r.Output), c.process.options.PayloadLimit))
		}
		action := c.process.schema.Actions[c.req.Action]
		if err := sdk.CheckObject(action.Outputs, r.Output); err != nil {
			return badReply("output: " + err.Error())
		}
		return sdk.Reply{Outcome: sdk.OutcomeResult, Output: r.Output}
	case sdk.OutcomeFailed, sdk.OutcomeUnknown:
		if !sdk.ValidCode(r.Code) {
			return badReply("an error without a proper code")
		}
		r.Output = nil
		r.Message = strings.ToValidUTF8(r.Message[:min(len(r.Message), maxMessage)], "")
		r.RetryAfter = max(r.RetryAfter, 0)
		return r
	case sdk.OutcomeNotDone:
		if lookup {
			return sdk.Reply{Outcome: sdk.OutcomeNotDone}
		}
	}
	return badReply(fmt.Sprintf("an outcome that is none: %d", r.Outcome))
}

// maxMessage is the most bytes of an error text that are kept.
const maxMessage = 4 << 10

func badReply(message string) sdk.Reply {
	return sdk.Reply{Outcome: sdk.OutcomeUnknown, Code: sdk.CodeBadReply, Message: message}
}
