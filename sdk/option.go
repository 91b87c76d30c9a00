package sdk

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/saga-engine/engine/sdk/schema"
)

// An Option declares a property of an action. The engine relies on the declared properties,
// so declare only what is true. Package sdktest checks them.
type Option func(*action)

// Idempotent declares that calls with the same idempotency key have one effect and the same
// result, even if they run at the same time.
func Idempotent() Option { return func(a *action) { a.schema.Idempotent = true } }

// ReadOnly declares that the action changes nothing.
func ReadOnly() Option { return func(a *action) { a.schema.ReadOnly = true } }

// CompensatedBy declares that the action with this name, of the same agent, undoes the effect
// of this action.
func CompensatedBy(name string) Option {
	return func(a *action) { a.schema.CompensatedBy = name }
}

// ByKey declares that the action is an undo that needs only Call.ForwardKey. So the action
// can undo a call whose output is not known. All inputs of the action must be optional. If
// the call had no effect, the action must succeed.
func ByKey() Option { return func(a *action) { a.schema.ByKey = true } }

// Lookup declares that the outcome of an earlier call can be looked up. The function `fn` looks up
// the outcome of the call that has the idempotency key Call.IdempotencyKey. The function must not
// change anything. If the call had its effect, fn returns done = true and the output. If the call
// never had an effect and never will have one, fn returns done = false. If fn cannot find out the
// outcome, it returns an error. In and Out must be the types of the action's input and output.
func Lookup[In, Out any](fn func(context.Context, *Call, In) (out Out, done bool, err error)) Option {
	return func(a *action) {
		if fn == nil {
			a.errs = append(a.errs, errors.New("lookup: the function is nil"))
			return
		}
		l := &lookup{in: reflect.TypeFor[In](), out: reflect.TypeFor[Out]()}
		l.run = func(ctx context.Context, c *Call, in reflect.Value) (reflect.Value, bool, error) {
			out, done, err := fn(ctx, c, in.Interface().(In))
			return reflect.ValueOf(&out).Elem(), done, err
		}
		if a.in != nil && a.in.Go != l.in || a.out != nil && a.out.Go != l.out {
			a.errs = append(a.errs, fmt.Errorf("lookup: takes %s and returns %s, unlike the action", l.in, l.out))
		}
		a.lookup, a.schema.Lookup = l, true
	}
}

// Errors declares codes of definite failures after which it does not help to repeat the call.
func Errors(codes ...string) Option {
	return func(a *action) { a.declare(false, codes) }
}

// RetryableErrors declares codes of definite failures after which the engine should repeat
// the call.
func RetryableErrors(codes ...string) Option {
	return func(a *action) { a.declare(true, codes) }
}

// AnyErrors declares that the action may answer with error codes that one of its inputs lists.
// For example, the input is a map from HTTP status to code. Add the word `codes` to the agent
// tag of that input, so that the check of a workflow finds these codes. Declare all other codes
// with Errors or RetryableErrors.
func AnyErrors() Option {
	return func(a *action) {
		if !a.declares(schema.AnyCode) {
			a.schema.Errors = append(a.schema.Errors, schema.ErrorCode{Code: schema.AnyCode, Doc: "Codes that the input names."})
		}
	}
}

// Heartbeats declares that the action calls Call.Heartbeat while it works.
func Heartbeats() Option { return func(a *action) { a.schema.Heartbeats = true } }

// Progress declares that the heartbeats contain progress and notes for people. It implies
// Heartbeats.
func Progress() Option {
	return func(a *action) { a.schema.Heartbeats, a.schema.Progress = true, true }
}

// Checkpoints declares that the action calls Call.Checkpoint while it works and
// continues from Call.LastCheckpoint.
func Checkpoints() Option { return func(a *action) { a.schema.Checkpoints = true } }

// Cancellable declares that the engine may interrupt a call in flight: the engine ends the
// context of the call, and the call then ends early. The engine does so when a person cancels
// the run or the run is undone. Use Cancellable if an interrupted call has no effect, or if
// the engine can repeat the call or undo its effect without knowing the output. Without
// Cancellable the engine waits for the answer until complete-by, because an interrupted call
// usually has an unknown outcome. The engine always interrupts calls of read-only actions.
func Cancellable() Option { return func(a *action) { a.schema.Cancellable = true } }

// Typical declares how long a call usually takes. Estimates use it, and `engine` shows it with the
// schema. It does not limit the call.
func Typical(d time.Duration) Option {
	return func(a *action) {
		if d < 0 {
			a.errs = append(a.errs, fmt.Errorf("typical duration %s is negative", d))
			return
		}
		a.schema.Typical = d
	}
}

// Doc sets the sentence that describes the action in the schema.
func Doc(text string) Option { return func(a *action) { a.schema.Doc = text } }
