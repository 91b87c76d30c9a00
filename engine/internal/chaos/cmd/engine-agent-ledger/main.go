// Command engine-agent-ledger is the agent of fault tests. It calls a ledger, and causes the
// faults that are named in the input of a call.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/saga-engine/engine/engine/internal/chaos/ledger"
	"github.com/saga-engine/engine/sdk"
	"github.com/saga-engine/engine/sdk/plugin"
)

func main() { plugin.Serve(newAgent()) }

type config struct {
	URL string `agent:"url" doc:"Where the ledger is."`
}

// workIn is the input of the forward actions. Faults is a list of faults, separated by commas,
// such as "vanish,sleep". The first call with an idempotency key has the first fault, and so
// on. Calls after the end of the list have no fault. UndoFaults is the same for undos.
type workIn struct {
	Faults     string `agent:"faults,optional"`
	UndoFaults string `agent:"undo_faults,optional"`
	Parts      int    `agent:"parts,optional" default:"1"`
}

type workOut struct {
	ID         string `agent:"id"`
	UndoFaults string `agent:"undo_faults"`
}

type undoIn struct {
	UndoFaults string `agent:"undo_faults,optional"`
}

// undoIDIn is the input of the action undo_id, which needs the output of the step that it undoes.
type undoIDIn struct {
	ID         string `agent:"id"`
	UndoFaults string `agent:"undo_faults,optional"`
}

// far implements the actions. The remote service that they call is a ledger.
type far struct{ ledger ledger.Client }

func newAgent() *sdk.Agent {
	a := sdk.New("ledger", "0.1.0").Doc("Notes calls and effects in a ledger. For fault tests.")
	f := &far{}
	sdk.Configure(a, func(_ context.Context, c config) error {
		f.ledger = ledger.Client{URL: c.URL}
		return nil
	})
	common := func(opts ...sdk.Option) []sdk.Option { return append(opts, sdk.AnyErrors(), sdk.Cancellable()) }
	sdk.Action(a, "do", f.work(true), common(sdk.Idempotent(), sdk.CompensatedBy("undo"), sdk.Lookup(f.find))...)
	sdk.Action(a, "once", f.work(false), common(sdk.CompensatedBy("undo"), sdk.Lookup(f.find))...)
	sdk.Action(a, "blind", f.work(false), common(sdk.CompensatedBy("undo_id"))...)
	sdk.Action(a, "many", f.many, common(sdk.Idempotent(), sdk.CompensatedBy("undo"), sdk.Checkpoints(), sdk.Progress())...)
	sdk.Action(a, "undo_id", f.undoID, common(sdk.Idempotent())...)
	sdk.Action(a, "undo", f.undo, common(sdk.Idempotent(), sdk.ByKey())...)
	return a
}

// arrive records a call in the ledger. It returns the number of the call among the calls of the
// same kind and key, from 1.
func (f *far) arrive(ctx context.Context, c *sdk.Call, kind ledger.Kind) (int, error) {
	return f.ledger.Arrive(ctx, ledger.Call{
		Kind: kind, Key: c.IdempotencyKey, Forward: c.ForwardKey, Run: c.Run, Step: c.Step, Attempt: c.Attempt, Fence: c.Fence,
	})
}

// work returns a function that carries out an action with one effect. If the parameter `honours` is
// true, the ledger applies the effect at most once for each idempotency key.
func (f *far) work(honours bool) func(context.Context, *sdk.Call, workIn) (workOut, error) {
	return func(ctx context.Context, c *sdk.Call, in workIn) (workOut, error) {
		n, err := f.arrive(ctx, c, ledger.Do)
		if err != nil {
			return workOut{}, err
		}
		c.Logger.Info("a call has arrived", "number", n)
		out := workOut{ID: c.IdempotencyKey, UndoFaults: in.UndoFaults}
		return out, play(ctx, c, in.Faults, n, func(ctx context.Context) error {
			ok, err := f.ledger.Apply(ctx, c.IdempotencyKey, c.Run, c.Step, honours)
			if err == nil && !ok {
				return &sdk.Failure{Code: "undone_before", Message: "its undo came first", Permanent: true}
			}
			return err
		})
	}
}

// many is the action `many`. It causes in.Parts effects, each with its own key and followed by a
// checkpoint. Last, it causes an effect with the idempotency key of the call.
func (f *far) many(ctx context.Context, c *sdk.Call, in workIn) (workOut, error) {
	n, err := f.arrive(ctx, c, ledger.Do)
	if err != nil {
		return workOut{}, err
	}
	from, _, _ := c.LastCheckpoint()
	for part := from + 1; part <= int64(in.Parts); part++ {
		if _, err := f.ledger.Apply(ctx, fmt.Sprintf("%s/part-%d", c.IdempotencyKey, part), c.Run, fmt.Sprintf("%s/part-%d", c.Step, part), false); err != nil {
			return workOut{}, err
		}
		if err := c.Checkpoint(part, nil); err != nil {
			return workOut{}, err
		}
		c.Heartbeat(float64(part)/float64(in.Parts), "part")
		if part == int64(in.Parts)/2 {
			if err := play(ctx, c, in.Faults, n, func(context.Context) error { return nil }); err != nil {
				return workOut{}, err
			}
		}
	}
	_, err = f.ledger.Apply(ctx, c.IdempotencyKey, c.Run, c.Step, true)
	return workOut{ID: c.IdempotencyKey, UndoFaults: in.UndoFaults}, err
}

// find answers a lookup. Its second result is true if the ledger has an effect with the
// idempotency key of the call, and this effect was not undone.
func (f *far) find(ctx context.Context, c *sdk.Call, in workIn) (workOut, bool, error) {
	if _, err := f.arrive(ctx, c, ledger.Lookup); err != nil {
		return workOut{}, false, err
	}
	done, err := f.ledger.Standing(ctx, c.IdempotencyKey)
	return workOut{ID: c.IdempotencyKey, UndoFaults: in.UndoFaults}, done, err
}

// undoID is the action undo_id. It undoes the effect whose key is in the output "id" of
// the step.
func (f *far) undoID(ctx context.Context, c *sdk.Call, in undoIDIn) (sdk.None, error) {
	n, err := f.arrive(ctx, c, ledger.Undo)
	if err != nil {
		return sdk.None{}, err
	}
	return sdk.None{}, play(ctx, c, in.UndoFaults, n, func(ctx context.Context) error {
		return f.ledger.Reverse(ctx, in.ID, c.Run, c.Step)
	})
}

// undo is the action `undo`. It undoes the effect whose key is the forward key of the call.
func (f *far) undo(ctx context.Context, c *sdk.Call, in undoIn) (sdk.None, error) {
	n, err := f.arrive(ctx, c, ledger.Undo)
	if err != nil {
		return sdk.None{}, err
	}
	return sdk.None{}, play(ctx, c, in.UndoFaults, n, func(ctx context.Context) error {
		return f.ledger.Reverse(ctx, c.ForwardKey, c.Run, c.Step)
	})
}

// play calls the function in the parameter `effect`, and causes a fault before or after this call.
// With some faults, play does not call the function. The parameter `faults` is a list with commas;
// play takes the n-th fault of the list, counted from 1. If the list has fewer than n faults, play
// causes no fault.
func play(ctx context.Context, c *sdk.Call, faults string, n int, effect func(context.Context) error) error {
	word := "ok"
	if words := strings.Split(faults, ","); faults != "" && n <= len(words) {
		word = strings.TrimSpace(words[n-1])
	}
	word, arg, _ := strings.Cut(word, ":")
	pause, _ := time.ParseDuration(arg) // no pause if arg is empty or not a duration
	switch word {
	case "refuse": // no effect; a failure that may be temporary
		return &sdk.Failure{Code: sdk.CodeUnavailable, Message: "refused"}
	case "deny": // no effect; a permanent failure
		return &sdk.Failure{Code: "denied_by_test", Message: "denied", Permanent: true}
	case "vanish": // no effect; the outcome is unknown
		return sdk.Unknown(errors.New("the request was lost"), sdk.CodeUnavailable)
	case "sleep": // no effect and no answer
		<-ctx.Done()
		return ctx.Err()
	case "die":
		kill()
	case "exit":
		os.Exit(0)
	case "slow":
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := effect(ctx); err != nil {
		return err
	}
	switch word {
	case "twice": // the effect is requested twice
		return effect(ctx)
	case "lose": // an effect; the outcome is unknown
		return sdk.Unknown(errors.New("the reply was lost"), sdk.CodeUnavailable)
	case "hang": // an effect and no answer
		<-ctx.Done()
		return ctx.Err()
	case "stubborn": // an effect; the agent answers only after complete-by
		time.Sleep(time.Until(c.CompleteBy) + 200*time.Millisecond)
	case "crash":
		kill()
	case "linger":
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// kill ends this process with SIGKILL.
func kill() {
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Signal(syscall.SIGKILL)
	}
	select {}
}
