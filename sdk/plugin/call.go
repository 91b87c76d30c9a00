package plugin

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/saga-engine/engine/sdk"
)

// CallOptions holds the functions that Process.Call and Process.Start use while a call is in
// flight. A nil function is not called.
type CallOptions struct {
	// OnEvent receives the agent's heartbeats and checkpoints, in order.
	OnEvent func(sdk.Event)
	// OnExpired is called once, perhaps in another goroutine, when complete-by passes without a
	// reply. It is not called if the call was never sent. It returns how long to wait for a late
	// reply; 0 = do not wait.
	OnExpired func() time.Duration
	// OnLate receives the late reply, if a reply arrives during the wait that OnExpired allows. The
	// reply was checked against the schema. A late reply is evidence that the agent answers after
	// complete-by (S28).
	OnLate func(sdk.Reply)
}

// callState is the state of a call in a session.
type callState uint8

const (
	callNew       callState = iota // the call was not passed to the session yet
	callWaiting                    // the agent has certainly not received the call
	callSent                       // the agent may have received the call
	callListening                  // the agent may have received the call, and complete-by has passed
	callOver                       // the call has a result
)

// call holds the state of one call of an action. The call is sent either in a session or on
// its own stream.
type call struct {
	process *Process
	req     sdk.Request
	options CallOptions
	// Called once with the result. It is nil only for a call of Process.Call on its own stream:
	// then the method `unary` returns the result.
	done  func(sdk.Reply, error)
	start time.Time
	left  time.Duration

	// Only a call on its own stream uses the next two fields.
	expired atomic.Bool // complete-by passed before there was a reply
	expiry  sync.Once

	// Only a call in a session uses the fields below. session.mu protects them.
	session   *session
	id        uint64
	size      int // largest possible size of the call in a batch, in bytes
	state     callState
	timer     *time.Timer // fires at complete-by, and once more when the wait for a late reply ends
	listening bool        // true = the timer now fires when the wait for a late reply ends
	grace     *time.Timer // ends a cancelled call after OpenOptions.CancelGrace; nil = not cancelled
	cancelled error       // reason why the engine stopped the call; nil = it was not stopped
}

// prepare checks whether the call can be sent. If the call cannot be sent, the result `over`
// is true, and the result `reply` or the result `err` says why.
func (c *call) prepare() (reply sdk.Reply, err error, over bool) { //nolint:revive // `over` says whether `reply` and `err` count
	p := c.process
	if err := p.Err(); err != nil {
		return sdk.Reply{}, c.notSent(err), true
	}
	c.left = c.req.TimeLeft(c.start)
	if c.left <= 0 {
		return sdk.Reply{}, c.notSent(errSilence), true
	}
	c.req.Remaining = c.left
	if err := validText(&c.req); err != nil {
		return sdk.Reply{Outcome: sdk.OutcomeFailed, Code: sdk.CodeInvalid, Permanent: true, Message: err.Error()}, nil, true
	}
	c.size = callBound(&c.req)
	if len(c.req.Input) > p.options.PayloadLimit || c.size > p.options.PayloadLimit+messageOverhead {
		return sdk.Reply{
			Outcome: sdk.OutcomeFailed, Code: sdk.CodeInvalid, Permanent: true,
			Message: fmt.Sprintf("the input has %d bytes, the limit is %d", len(c.req.Input), p.options.PayloadLimit),
		}, nil, true
	}
	return sdk.Reply{}, nil, false
}

// validText returns an error if a text of the request is not valid UTF-8: protobuf cannot
// encode such a text. Without this check, gRPC could fail in the middle of a message, and the
// outcome of the call would be unknown.
func validText(r *sdk.Request) error {
	for _, text := range [...]struct{ name, value string }{
		{"action", r.Action}, {"idempotency key", r.IdempotencyKey}, {"forward key", r.ForwardKey},
		{"run", r.Run}, {"workflow", r.Workflow}, {"step", r.Step},
	} {
		if !utf8.ValidString(text.value) {
			return fmt.Errorf("the %s is not valid UTF-8", text.name)
		}
	}
	return nil
}

// finish passes the result of the call to the code that started the call. It must be called
// only once for a call.
func (c *call) finish(reply sdk.Reply, err error) { c.done(reply, err) }

// expire notifies the code that started the call: complete-by has passed. It returns how long
// to wait for a late reply; 0 = do not wait. It must be called only once for a call.
func (c *call) expire() time.Duration {
	if c.options.OnExpired == nil {
		return 0
	}
	return c.options.OnExpired()
}

// late reports whether complete-by of the call has passed, by the wall clock or by the monotonic
// clock.
func (c *call) late(now time.Time) bool {
	return now.Sub(c.start) >= c.left || !now.Round(0).Before(c.req.CompleteBy)
}

var errDeadline = errors.New("complete-by has passed")

// errSilence is the error of a call that was not answered before complete-by.
var errSilence = fmt.Errorf("%w: %w", errDeadline, context.DeadlineExceeded)

func (c *call) fail(err error) error {
	return fmt.Errorf("plugin: invoke %s.%s: %w", c.process.schema.Name, c.req.Action, err)
}

func (c *call) notSent(err error) error {
	return fmt.Errorf("plugin: invoke %s.%s: %w: %w", c.process.schema.Name, c.req.Action, ErrNotSent, err)
}

func (c *call) silence() error { return c.fail(errSilence) }

// accept checks a reply of the agent and returns it. If the reply is invalid, accept returns
// a reply with OutcomeUnknown and sdk.CodeBadReply instead (S35).
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
		if r.Outcome != sdk.OutcomeFailed || len(r.Output) > sdk.MaxData {
			r.Output = nil // only a definite failure may have data, and at most sdk.MaxData bytes
		}
		r.Message = sdk.Excerpt(r.Message, maxMessage, c.req.Input, c.process.configuration())
		r.RetryAfter = max(r.RetryAfter, 0)
		return r
	case sdk.OutcomeNotDone:
		if lookup {
			return sdk.Reply{Outcome: sdk.OutcomeNotDone}
		}
	}
	return badReply(fmt.Sprintf("an outcome that is none: %d", r.Outcome))
}

// maxMessage is the largest size of an error text, in bytes. Longer texts are cut.
const maxMessage = 4 << 10

func badReply(message string) sdk.Reply {
	return sdk.Reply{Outcome: sdk.OutcomeUnknown, Code: sdk.CodeBadReply, Message: message}
}
