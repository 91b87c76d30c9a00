package wait

import (
	"context"
	"time"
)

// Least is the first pause before a store that did not answer is asked again.
const Least = 20 * time.Millisecond

// A Retry reads a store until it answers. Reading again is harmless, so a reader can
// wait. It is for one goroutine.
type Retry struct {
	Most       time.Duration    // longest pause; 0 = 5 s
	Lasting    func(error) bool // reports whether reading again would bring the same error
	Unanswered func(error)      // called once when the store stops answering; nil = nothing is called
}

// Do calls read until it returns nil or a lasting error, which Do returns. If ctx ends
// first, Do returns the error of ctx.
func (r *Retry) Do(ctx context.Context, read func() error) error {
	most, pause := r.Most, Least
	if most <= 0 {
		most = 5 * time.Second
	}
	for first := true; ; first = false {
		err := read()
		if ctx.Err() != nil && err != nil {
			return ctx.Err()
		}
		if err == nil || r.Lasting(err) {
			return err
		}
		if first && r.Unanswered != nil {
			r.Unanswered(err)
		}
		if err := For(ctx, pause); err != nil {
			return err
		}
		pause = min(2*pause, most)
	}
}
