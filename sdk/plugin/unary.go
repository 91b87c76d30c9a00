package plugin

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/saga-engine/engine/sdk"
	pb "github.com/saga-engine/engine/sdk/plugin/internal/proto"
)

// unary makes the call on its own stream and returns its result. The host calls unary for all
// calls in version 1 of the protocol, and in later versions if the session has ended.
func (c *call) unary(ctx context.Context) (sdk.Reply, error) {
	msg := &pb.InvokeRequest{Request: &pb.InvokeRequest_Call{Call: callToWire(c.req)}}
	// The stream has no deadline. With a deadline, the gRPC library in the agent would send an
	// answer at the time of the deadline. But after complete-by the agent must not send anything
	// (S28).
	sctx, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	timer := time.AfterFunc(c.left, func() { c.expireUnary(end) })
	defer timer.Stop()
	stopEarly := context.AfterFunc(ctx, end)
	stream, err := c.process.rpc.Invoke(sctx)
	if err != nil {
		stopEarly()
		return sdk.Reply{}, c.notSent(c.cause(ctx, err))
	}
	// From now on the agent may have received the call. If the stream has ended, Send returns
	// io.EOF, and Recv returns the cause.
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
		if c.expired.Load() || c.late(time.Now()) {
			c.expireUnary(end)
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
		c.report(ev)
	}
}

// cause returns the error that says why the stream ended. It returns errSilence if complete-by has
// passed; else the error of ctx if ctx has ended; else the result of the method Process.explain.
func (c *call) cause(ctx context.Context, err error) error {
	if c.expired.Load() || c.late(time.Now()) {
		return errSilence
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return c.process.explain(err)
}

// lost returns the result of a call whose stream ended with err before a reply. If complete-by has
// passed, but its timer has not fired yet, lost reports this first.
func (c *call) lost(ctx context.Context, err error) (sdk.Reply, error) {
	switch {
	case c.expired.Load() || c.late(time.Now()):
		c.expireUnary(func() {}) // the stream has ended already
		return sdk.Reply{}, c.silence()
	case ctx.Err() != nil:
		return sdk.Reply{}, c.fail(ctx.Err())
	}
	return c.process.lostReply(err), nil
}

// expireUnary records that complete-by has passed, and notifies the code that started the
// call. It ends the stream with the function `end`, either now or after the wait for a late
// reply.
func (c *call) expireUnary(end func()) {
	c.expiry.Do(func() {
		c.expired.Store(true)
		listen := c.expire()
		if listen <= 0 {
			end()
			return
		}
		time.AfterFunc(listen, end) // end has no effect once the call is over
	})
}

func (c *call) report(ev *pb.InvokeEvent) {
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
