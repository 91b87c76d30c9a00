package engine

import (
	"context"
	"fmt"
	"strings"

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
	// Send sends a reply once. The engine repeats it after an error.
	Send(ctx context.Context, r replies.Reply) error
}

// replyable returns an error if the store of an engine cannot keep replies for the sink of a submission,
// or if the sink is an action that takes no replies. The parameter `wf` is the workflow of the run.
func replyable(cfg Config, s Submission, wf *dsl.Workflow) error {
	if err := replies.Check(s.ReplyTo, s.Correlation); err != nil || s.ReplyTo == "" {
		return err
	}
	if _, ok := replies.Of(cfg.Store); !ok {
		return fmt.Errorf("the store keeps no replies, so no run can have the reply sink %q", s.ReplyTo)
	}
	if action, agent := strings.CutPrefix(s.ReplyTo, replies.Agent); agent {
		if _, err := wf.ReplySinks.Find(action); err != nil {
			return fmt.Errorf("reply sink %q: %w", s.ReplyTo, err)
		}
	}
	return nil
}

// sendable returns an error if this engine does not send replies to the sink of a submission.
func sendable(cfg Config, s Submission) error {
	switch {
	case !strings.HasPrefix(s.ReplyTo, replies.Webhook):
		return nil
	case cfg.Replies == nil:
		return fmt.Errorf("reply sink %q: this engine sends nothing to webhooks; start it with --reply-sinks FILE", s.ReplyTo)
	}
	return cfg.Replies.Check(s.ReplyTo)
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
	return outbox.New(outbox.Config{Box: box, Logger: cfg.Logger, Most: cfg.Options.MaxScan, NoWork: p.n.quiet.is, Send: send})
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
// membership. The number is 0 if there is no membership, or if this engine starts no work.
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

// startReplies starts a goroutine that delivers replies until ctx ends. The goroutine closes the
// result when it ends. If p is nil, the result is closed already.
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
