package wait

import (
	"context"
	"time"
)

// Least is the first pause after a store did not answer.
const Least = 20 * time.Millisecond

// A Retry repeats a read until the store answers. Repeating a read is safe, because it
// changes nothing. A Retry is for one goroutine only.
type Retry struct {
	Most       time.Duration    // longest pause; 0 = 5 s
	Lasting    func(error) bool // must be set; reports whether reading again would give the same error
	Unanswered func(error)      // called once when the store stops answering; nil = not called
}

// Do repeats the read in the parameter `read` until it succeeds or returns a lasting error (see
// Lasting). It returns nil, or the lasting error. If ctx ends first, Do returns the error of ctx.
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
