package engine

import (
	"context"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/outbox"
	"github.com/saga-engine/engine/engine/internal/owner"
	"github.com/saga-engine/engine/engine/internal/replyto"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/replies"
)

// A ReplySender sends replies of runs to webhooks. Package webhook has one.
type ReplySender interface {
	// Check returns an error if the sender does not know the sink, or may not send to it.
	Check(sink string) error
	// Send sends a reply once. After an error, the engine calls Send again later.
	Send(ctx context.Context, r replies.Reply) error
}

// A replier is the part of a node that delivers replies.
type replier struct{ n *Node }

// sender returns a Sender for the replies in the store; nil = the store keeps none.
func (p replier) sender() *outbox.Sender {
	cfg := p.n.cfg
	box, ok := replies.Of(cfg.Store)
	if !ok {
		return nil
	}
	send := map[string]func(context.Context, replies.Reply) error{replies.Agent: replyto.New(replyto.Config{
		Invoker: cfg.Invoker, Clock: p.n.shared.Clock, Spec: owner.SpecOf, Check: p.n.shared.Check, Secrets: cfg.Secrets,
		Load: p.load, Present: p.slots,
	}).Send}
	if cfg.Replies != nil {
		send[replies.Webhook] = cfg.Replies.Send
	}
	return outbox.New(outbox.Config{Box: box, Logger: cfg.Logger, Most: cfg.Options.MaxScan, NoWork: p.n.idle.NoWork, Send: send})
}

// load returns the workflow and the variables of a run.
func (p replier) load(ctx context.Context, run status.RunID) (*dsl.Workflow, dsl.Value, error) {
	r, err := journal.LoadState(ctx, store.Complete(p.n.cfg.Store), p.n.cfg.Sealer, p.n.shared.Defs, run)
	if err != nil {
		if journal.Lasting(err) {
			err = &replyto.Lasting{Err: err}
		}
		return nil, dsl.Value{}, err
	}
	return r.Flow, r.State.Vars(), nil
}

// slots returns the number of the present membership, and the limits for calls of agents in this
// membership. The number is 0 if there is no membership, if this engine starts no work, or if it is
// stopping.
func (p replier) slots() (int64, replyto.Slots) {
	t := p.n.now()
	switch {
	case t == nil || p.n.shared.Idle != "" || p.n.shared.Draining.Load():
		return 0, nil
	case t.Runs.Limits == nil:
		return int64(t.Engine), nil
	}
	return int64(t.Engine), t.Runs.Limits
}

// startReplies starts a goroutine that delivers replies until ctx ends. It returns a channel, which
// the goroutine closes when it ends. If `p` is nil, startReplies starts no goroutine, and the
// channel is closed already.
func startReplies(ctx context.Context, p *outbox.Sender) <-chan struct{} {
	done := make(chan struct{})
	if p == nil {
		close(done)
		return done
	}
	go func() {
		defer close(done)
		p.Run(ctx)
	}()
	return done
}
