package engine

import (
	"context"
	"errors"
	"time"

	"github.com/saga-engine/engine/engine/store"
)

// An asker asks a store until it answers: whoever reads may wait, because reading
// again is harmless. It is used by one goroutine.
type asker struct {
	most       time.Duration // longest pause; 0 = 5 s
	unanswered func(error)   // told once when the store stops answering; nil = nobody asks
}

// leastRetry is the first pause before a store that did not answer is asked again.
const leastRetry = 20 * time.Millisecond

// until calls ask until it returns nil or an error that cannot pass, which it
// returns. Returns ctx's error if ctx ends first.
func (a *asker) until(ctx context.Context, ask func() error) error {
	most, pause := a.most, leastRetry
	if most <= 0 {
		most = 5 * time.Second
	}
	for first := true; ; first = false {
		err := ask()
		if ctx.Err() != nil && err != nil {
			return ctx.Err()
		}
		if err == nil || lasting(err) {
			return err
		}
		if first && a.unanswered != nil {
			a.unanswered(err)
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
		pause = min(2*pause, most)
	}
}

// lasting reports whether reading a store again would bring the same error. What
// is not known to last may pass: a network, a server that starts, a disk.
func lasting(err error) bool {
	var schema *store.SchemaError
	var loss *store.LossError
	var key *KeyError
	return permanent(err) || errors.Is(err, store.ErrDamaged) || errors.As(err, &schema) || errors.As(err, &loss) || errors.As(err, &key)
}
