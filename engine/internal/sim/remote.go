package sim

import (
	"context"
	"errors"
	"hash/fnv"
	"sync"
	"time"

	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/sdk"
)

// A remote is the simulated remote service. Most of its actions deduplicate calls by idempotency
// key. The service refuses a call if the effect with the same key was undone before. The field
// `keys` is the ledger of the service: it shows which effects really happened.
type remote struct {
	agent *sdk.Agent
	seed  uint64
	moody bool // calls fail in many ways (type mood)
	// promised is true if the agent block of the module promises that all actions are idempotent.
	// Then every action deduplicates its calls.
	promised bool
	// stubborn is true if the service permanently refuses some undos.
	stubborn bool

	mu     sync.Mutex // protects the fields below
	healed bool       // heal was called: there are no faults any more
	calls  map[string]int
	keys   map[string]*effect
	order  int
	rings  map[string]int // how many times each text was announced
}

// An effect is the entry of the service's ledger for one idempotency key.
type effect struct {
	key     string
	name    string // name of the step when the service saw this key first
	run     string
	calls   int
	applied int             // how many times the effect happened; it must not happen twice
	when    int             // position of the effect in the order of all effects and undos; 0 = no effect yet
	undone  int             // position of the undo in the order of all effects and undos; 0 = not undone
	undos   map[string]bool // idempotency keys of the undos
}

type callIn struct {
	Name string `agent:"name"`
	Note string `agent:"note,optional"`
}

type callOut struct {
	ID string `agent:"id"`
	N  int    `agent:"n"`  // a number from 0 to 9
	OK bool   `agent:"ok"` // false = the service refuses the call in its reply, and has done nothing
}

type refundIn struct {
	IDs []string `agent:"ids"`
}

type undoIn struct {
	ID  string `agent:"id,optional"`
	Why string `agent:"why,optional"`
}

// A mood says which fault one call has, if any.
type mood int

const (
	fine mood = iota
	busy
	refuses
	silent     // no effect and no answer
	doneSilent // an effect and no answer
	doneUnsure // an effect, and the agent answers that the outcome is unknown
	unsure     // no effect, and the agent answers that the outcome is unknown
	slow       // the call takes a while, and sometimes ends only after complete-by
)

// mood returns the fault of one call. The parameter n is the number of the call in the counter with
// the given name. The result depends only on the seed, the name and n.
func (r *remote) mood(name string, n int) mood {
	h := fnv.New64a()
	for i := range 8 {
		h.Write([]byte{byte(r.seed >> (8 * i))})
	}
	h.Write([]byte(name))
	h.Write([]byte{byte(n), byte(n >> 8)})
	v := h.Sum64() >> 7 % 100
	switch {
	case v < 36:
		return fine
	case v < 72:
		return slow
	case v < 79:
		return busy
	case v < 83:
		return refuses
	case v < 88:
		return silent
	case v < 93:
		return doneSilent
	case v < 97:
		return doneUnsure
	default:
		return unsure
	}
}

// next returns the fault of a call. It increases two counters: the counter with the given name, and
// the number of calls in the ledger's entry for the given idempotency key.
func (r *remote) next(name string, c *sdk.Call, key string) mood {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls[name]++
	r.effectLocked(c, key).calls++
	if r.healed || !r.moody {
		return fine
	}
	m := r.mood(name, r.calls[name])
	if name == "undo" && r.stubborn && m == slow && r.calls[name]%2 == 0 {
		return refuses
	}
	return m
}

func (r *remote) effectLocked(c *sdk.Call, key string) *effect {
	e := r.keys[key]
	if e == nil {
		e = &effect{key: key, name: c.Step, run: c.Run}
		r.keys[key] = e
	}
	return e
}

var errUndone = &sdk.Failure{Code: "refused", Message: "this key was undone", Permanent: true}

// apply records the effect of a call in the ledger. It returns an error if the effect was undone
// before. If the parameter `dedupe` is true, a second call with the same idempotency key has no
// effect; otherwise the effect happens again.
func (r *remote) apply(c *sdk.Call, dedupe bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.effectLocked(c, c.IdempotencyKey)
	switch {
	case e.undone > 0:
		return errUndone
	case e.applied > 0 && dedupe:
		return nil
	}
	r.order++
	e.applied++
	e.when = r.order
	return nil
}

func (r *remote) do(ctx context.Context, c *sdk.Call, in callIn) (callOut, error) {
	return r.work(ctx, c, in, true)
}

func (r *remote) once(ctx context.Context, c *sdk.Call, in callIn) (callOut, error) {
	return r.work(ctx, c, in, r.promised)
}

func (r *remote) work(ctx context.Context, c *sdk.Call, in callIn, dedupe bool) (callOut, error) {
	out := r.out(c.IdempotencyKey)
	switch r.next(in.Name, c, c.IdempotencyKey) {
	case busy:
		return out, &sdk.Failure{Code: sdk.CodeUnavailable}
	case refuses:
		return out, &sdk.Failure{Code: "refused", Permanent: true}
	case silent:
		return out, silence(ctx)
	case unsure:
		return out, errors.New("connection reset")
	case doneSilent:
		return out, errors.Join(r.apply(c, dedupe), silence(ctx))
	case doneUnsure:
		if err := r.apply(c, dedupe); err != nil {
			return out, err
		}
		return out, errors.New("connection reset")
	case slow:
		if err := r.dawdle(ctx, c); err != nil {
			return out, err
		}
	}
	return out, r.apply(c, dedupe)
}

// out returns the output of the call with this idempotency key.
func (r *remote) out(key string) callOut {
	h := fnv.New32a()
	h.Write([]byte(key))
	return callOut{ID: key, N: int(h.Sum32() >> 8 % 10), OK: true}
}

func (r *remote) lookup(ctx context.Context, c *sdk.Call, _ callIn) (callOut, bool, error) {
	switch r.next("lookup", c, "lookup "+c.IdempotencyKey) {
	case busy, unsure, doneUnsure:
		return callOut{}, false, &sdk.Failure{Code: sdk.CodeUnavailable}
	case silent, doneSilent:
		return callOut{}, false, silence(ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.effectLocked(c, c.IdempotencyKey)
	if e.applied > 0 {
		return r.out(c.IdempotencyKey), true, nil
	}
	r.order++
	e.undone = r.order // now apply refuses a call with this key that arrives later
	return callOut{}, false, nil
}

func (r *remote) undo(ctx context.Context, c *sdk.Call, _ undoIn) (sdk.None, error) {
	return r.back(ctx, c, c.ForwardKey)
}

func (r *remote) refund(ctx context.Context, c *sdk.Call, _ undoIn) (sdk.None, error) {
	return r.back(ctx, c, c.ForwardKey)
}

// refundAll undoes the effects of all iterations of a loop. The list in.IDs holds
// the idempotency keys of these effects.
func (r *remote) refundAll(ctx context.Context, c *sdk.Call, in refundIn) (sdk.None, error) {
	return r.back(ctx, c, in.IDs...)
}

// back undoes the effects with these idempotency keys, unless the fault of the call prevents it.
func (r *remote) back(ctx context.Context, c *sdk.Call, keys ...string) (sdk.None, error) {
	switch r.next("undo", c, c.IdempotencyKey) {
	case refuses:
		if r.stubborn {
			return sdk.None{}, &sdk.Failure{Code: "refused", Permanent: true}
		}
	case busy:
		return sdk.None{}, &sdk.Failure{Code: sdk.CodeUnavailable}
	case silent:
		return sdk.None{}, silence(ctx)
	case unsure:
		return sdk.None{}, errors.New("connection reset")
	case slow:
		if err := r.dawdle(ctx, c); err != nil {
			return sdk.None{}, err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.order++
	for _, key := range keys {
		e := r.effectLocked(c, key)
		if e.undone == 0 {
			e.undone = r.order
		}
		if e.undos == nil {
			e.undos = map[string]bool{}
		}
		e.undos[c.IdempotencyKey] = true
	}
	return sdk.None{}, nil
}

// dawdle waits up to six seconds. The idempotency key determines how long.
func (r *remote) dawdle(ctx context.Context, c *sdk.Call) error {
	h := fnv.New32a()
	h.Write([]byte(c.IdempotencyKey))
	return wait.For(ctx, time.Duration(h.Sum32()%6000)*time.Millisecond)
}

// did reports whether a call with this idempotency key had an effect that was not undone.
func (r *remote) did(key string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.keys[key]
	return e != nil && e.applied > 0 && e.undone == 0
}

// heal ends all faults of the remote service.
func (r *remote) heal() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.healed = true
}

func silence(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}
