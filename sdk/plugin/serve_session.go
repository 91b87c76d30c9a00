package plugin

import (
	"context"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/saga-engine/engine/sdk"
	pb "github.com/saga-engine/engine/sdk/plugin/internal/proto"
)

// agentWindow is how many calls an agent takes at once. It bounds its memory; how
// many calls are good for the service behind it is max_concurrency's business.
const agentWindow = 1 << 16

// maxQueued is how many heartbeats and checkpoints wait to be sent before those
// who say more have to wait. Answers never do.
const maxQueued = 1024

// Session runs calls until the engine ends the stream, each in a goroutine of
// its own.
func (s *server) Session(stream pb.Agent_SessionServer) error {
	if err := stream.Send(&pb.ResultBatch{Window: agentWindow}); err != nil {
		return err
	}
	l := &link{
		server: s, stream: stream, wake: make(chan struct{}, 1), room: make(chan struct{}),
		limit: min(batchBytes, s.limit+messageRoom), cancels: map[uint64]context.CancelFunc{},
	}
	var cancel context.CancelFunc
	l.ctx, cancel = context.WithCancel(stream.Context())
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		l.send()
	}()
	defer func() { <-sent }() // nothing is sent once this function has returned
	defer cancel()            // the end of the stream is the end of its calls
	for {
		batch, err := stream.Recv()
		if err != nil {
			return err
		}
		for _, inv := range batch.GetInvocations() {
			switch {
			case inv.GetCall() != nil:
				l.begin(inv.GetId(), inv.GetCall())
			case inv.GetCancel() != nil:
				l.cancel(inv.GetId())
			}
		}
	}
}

// A link is the agent's half of a session.
type link struct {
	server *server
	stream pb.Agent_SessionServer
	ctx    context.Context // ends with the stream
	wake   chan struct{}   // has room for one: there is something to send
	limit  int             // bytes of a batch

	mu      sync.Mutex // protects following fields
	cancels map[uint64]context.CancelFunc
	queue   []outgoing
	events  int           // of the queue
	room    chan struct{} // closed and replaced when there is room for events

	out pb.ResultBatch // the sender's
}

// outgoing is something to be said of a call, as long as its time is not over.
type outgoing struct {
	result *pb.Result
	size   int
	late   func(now time.Time) bool
}

// begin runs a call in a goroutine of its own. A number that is in use is not
// a new call.
func (l *link) begin(id uint64, wire *pb.Call) {
	ctx, cancel := context.WithCancel(l.ctx)
	l.mu.Lock()
	if _, ok := l.cancels[id]; ok {
		l.mu.Unlock()
		cancel()
		l.server.logger.Error("the engine used a call's number twice", "id", id)
		return
	}
	l.cancels[id] = cancel
	l.mu.Unlock()
	go l.run(ctx, cancel, id, callFromWire(wire))
}

func (l *link) cancel(id uint64) {
	l.mu.Lock()
	cancel := l.cancels[id]
	l.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

func (l *link) run(ctx context.Context, cancel context.CancelFunc, id uint64, req sdk.Request) {
	defer cancel()
	start := time.Now()
	left := req.TimeLeft(start)
	late := func(now time.Time) bool {
		return now.Sub(start) >= left || !now.Round(0).Before(req.CompleteBy)
	}
	reply, ok := l.server.agent.Invoke(ctx, req, sdk.InvokeOptions{
		Logger:  l.server.logger,
		OnEvent: func(ev sdk.Event) { l.event(ctx, id, ev, late) },
		Ended:   l.server.life.begin(cancel),
	})
	l.mu.Lock()
	delete(l.cancels, id)
	l.mu.Unlock()
	if !ok {
		return // S28: say nothing
	}
	result := &pb.Result{Id: id, Event: &pb.Result_Reply{Reply: replyToWire(l.server.fit(reply))}}
	l.put(outgoing{result: result, size: proto.Size(result) + frame, late: late})
}

// event queues a heartbeat or a checkpoint; it waits while too many are queued.
func (l *link) event(ctx context.Context, id uint64, ev sdk.Event, late func(time.Time) bool) {
	result := eventToResult(id, ev)
	o := outgoing{result: result, size: proto.Size(result) + frame, late: late}
	if o.size > l.server.limit+messageRoom {
		l.server.logger.Warn("an event is too large to be sent", "bytes", o.size)
		return
	}
	for {
		l.mu.Lock()
		if l.events < maxQueued {
			l.events++
			l.queue = append(l.queue, o)
			l.mu.Unlock()
			l.ring()
			return
		}
		room := l.room
		l.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return
		}
	}
}

func (l *link) put(o outgoing) {
	l.mu.Lock()
	l.queue = append(l.queue, o)
	l.mu.Unlock()
	l.ring()
}

func (l *link) ring() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// send sends what is queued, in batches, until the stream ends.
func (l *link) send() {
	for {
		select {
		case <-l.wake:
		case <-l.ctx.Done():
			return
		}
		for l.fill(time.Now()) {
			if l.stream.Send(&l.out) != nil {
				return // the stream is over, as the receiver sees too
			}
		}
	}
}

// fill makes the next batch of what is queued and still counts (S28); it reports
// false if there is none.
func (l *link) fill(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	list, size, n := l.out.Results[:0], 0, 0
	for _, o := range l.queue {
		if len(list) >= maxBatch || len(list) > 0 && size+o.size > l.limit {
			break
		}
		n++
		if o.result.GetReply() == nil {
			l.events--
		}
		if o.late(now) {
			continue
		}
		size += o.size
		list = append(list, o.result)
	}
	clear(l.queue[:n])
	if l.queue = l.queue[n:]; len(l.queue) == 0 {
		l.queue = nil
	}
	if l.events < maxQueued {
		close(l.room)
		l.room = make(chan struct{})
	}
	clear(list[len(list):cap(list)])
	l.out.Results = list
	return len(list) > 0
}
