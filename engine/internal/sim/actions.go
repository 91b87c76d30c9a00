package sim

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/sdk"
)

func newRemote(seed uint64, moody, stubborn bool) *remote {
	r := &remote{seed: seed, moody: moody, stubborn: stubborn, calls: map[string]int{}, keys: map[string]*effect{}, rings: map[string]int{}}
	a := sdk.New("far", "1.0.0")
	codes := sdk.Errors("refused")
	sdk.Action(a, "do", r.do, sdk.Idempotent(), sdk.Cancellable(), sdk.CompensatedBy("undo"), codes)
	sdk.Action(a, "once", r.once, sdk.CompensatedBy("undo"), codes)
	sdk.Action(a, "lookup", r.once, sdk.Lookup(r.lookup), sdk.CompensatedBy("undo"), codes)
	sdk.Action(a, "pay", r.do, sdk.Idempotent(), codes)
	sdk.Action(a, "keep", r.do, sdk.Idempotent(), codes)
	sdk.Action(a, "undo", r.undo, sdk.Idempotent(), sdk.ByKey(), codes)
	sdk.Action(a, "refund", r.refund, sdk.Idempotent(), codes)
	sdk.Action(a, "refund_all", r.refundAll, sdk.Idempotent(), codes)
	r.more(a, codes)
	r.agent = a
	return r
}

// more adds the actions that only generated families of runs call (package flows).
func (r *remote) more(a *sdk.Agent, codes sdk.Option) {
	sdk.Action(a, "ask", r.ask, sdk.Idempotent(), sdk.CompensatedBy("undo"), codes)
	sdk.Action(a, "long", r.long, sdk.Idempotent(), sdk.Heartbeats(), sdk.Checkpoints(), sdk.CompensatedBy("undo"), codes)
	sdk.Action(a, "tidy", r.undo, sdk.Idempotent(), sdk.ByKey(), codes)
	sdk.Action(a, "get", r.get, sdk.ReadOnly(), sdk.Errors("not_found"))
	sdk.Action(a, "raw", r.raw)
	sdk.Action(a, "ring", r.ring)
}

// stated returns the output of the call with this idempotency key, as a person states it in a verb.
func (r *remote) stated(key string) map[string]any {
	out := r.out(key)
	return map[string]any{"id": out.ID, "n": out.N, "ok": out.OK}
}

// ask works like the method `do`, with one difference: if the service refuses a call, ask returns a
// reply that says so, and no failure. A refused call has no effect.
func (r *remote) ask(ctx context.Context, c *sdk.Call, in callIn) (callOut, error) {
	out, err := r.work(ctx, c, in, true)
	var f *sdk.Failure
	if errors.As(err, &f) && f.Code == "refused" && !r.did(c.IdempotencyKey) {
		return callOut{ID: "none"}, nil
	}
	return out, err
}

// long works like the method `do`, but the call has two halves. In the first half, it sends
// heartbeats. At the end of the first half, it records a checkpoint. A call that has a checkpoint
// from an earlier attempt skips the first half.
func (r *remote) long(ctx context.Context, c *sdk.Call, in callIn) (callOut, error) {
	if _, _, ok := c.LastCheckpoint(); !ok {
		for range 2 {
			c.Heartbeat(0, "at work")
			if err := wait.For(ctx, 500*time.Millisecond); err != nil {
				return callOut{}, err
			}
		}
		if err := c.Checkpoint(1, []byte("half")); err != nil {
			return callOut{}, err
		}
	}
	return r.work(ctx, c, in, true)
}

type getIn struct {
	Key string `agent:"key"`
}

// get looks up whether the call with the given idempotency key has had its effect. If the call has
// had no effect, the service refuses every later call with this key.
func (r *remote) get(_ context.Context, c *sdk.Call, in getIn) (callOut, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.effectLocked(c, in.Key)
	if e.applied > 0 {
		return r.out(in.Key), nil
	}
	r.order++
	if e.undone == 0 {
		e.undone = r.order
	}
	return callOut{}, &sdk.Failure{Code: "not_found", Permanent: true}
}

type rawOut struct {
	ID  string          `agent:"id"`
	Doc json.RawMessage `agent:"doc"`
}

// raw has no effect. The field Doc of its output has no type.
func (r *remote) raw(ctx context.Context, _ *sdk.Call, in callIn) (rawOut, error) {
	switch r.nextFault(in.Name) {
	case busy, refuses:
		return rawOut{}, &sdk.Failure{Code: sdk.CodeUnavailable}
	case silent, doneSilent:
		return rawOut{}, silence(ctx)
	}
	return rawOut{"raw", json.RawMessage(`{"n": 3}`)}, nil
}

// nextFault counts a call of an action that has no effects, so that the ledger has no entry for the
// call. It returns the fault of the call.
func (r *remote) nextFault(name string) mood {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls[name]++
	if r.healed || !r.moody {
		return fine
	}
	return r.mood(name, r.calls[name])
}

type ringIn struct {
	Text string `agent:"text"`
}

// ring is the action that notifications call. It counts how many times each text was announced. A
// repeated call is counted again.
func (r *remote) ring(ctx context.Context, _ *sdk.Call, in ringIn) (sdk.None, error) {
	m := r.nextFault("ring")
	if m != busy && m != refuses && m != silent && m != unsure {
		r.mu.Lock()
		r.rings[in.Text]++
		r.mu.Unlock()
	}
	switch m {
	case busy, refuses:
		return sdk.None{}, &sdk.Failure{Code: sdk.CodeUnavailable}
	case silent, doneSilent:
		return sdk.None{}, silence(ctx)
	case unsure, doneUnsure:
		return sdk.None{}, errors.New("connection reset")
	}
	return sdk.None{}, nil
}
