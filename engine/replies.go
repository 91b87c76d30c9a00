package engine

import (
	"context"
	"fmt"
	"strings"

	"github.com/saga-engine/engine/engine/internal/outbox"
	"github.com/saga-engine/engine/engine/store/replies"
)

// A ReplySender sends replies of runs to webhooks. Package webhook has one.
type ReplySender interface {
	// Check returns an error if the sender does not know the sink, or may not send to it.
	Check(sink string) error
	// Send sends a reply once. The engine repeats it after an error.
	Send(ctx context.Context, r replies.Reply) error
}

// replyable returns an error if the store of an engine cannot keep replies for the sink of a
// submission.
func replyable(cfg Config, s Submission) error {
	if err := replies.Check(s.ReplyTo, s.Correlation); err != nil || s.ReplyTo == "" {
		return err
	}
	if _, ok := replies.Of(cfg.Store); !ok {
		return fmt.Errorf("the store keeps no replies, so no run can have the reply sink %q", s.ReplyTo)
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

// newPostman returns what delivers the replies in the store; nil = the store keeps none.
func newPostman(cfg Config) *outbox.Postman {
	box, ok := replies.Of(cfg.Store)
	if !ok {
		return nil
	}
	c := outbox.Config{Box: box, Logger: cfg.Logger, Most: cfg.Options.MaxScan}
	if cfg.Replies != nil {
		c.Send = cfg.Replies.Send
	}
	return outbox.New(c)
}

// startReplies starts a goroutine that delivers replies until ctx ends. The goroutine closes the
// result when it ends. If p is nil, the result is closed already.
func startReplies(ctx context.Context, p *outbox.Postman) <-chan struct{} {
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
