package cluster

import (
	"context"
	"sync"

	"github.com/saga-engine/engine/engine/internal/owner"
	"github.com/saga-engine/engine/engine/machine/status"
)

// A pager calls a function for page after page of runs, for a few pages at once.
type pager struct {
	ctx  context.Context // ends at the first error
	stop context.CancelFunc
	do   func(context.Context, []status.RunID) (int, error)
	room chan struct{}
	wg   sync.WaitGroup

	mu   sync.Mutex // protects following fields
	done int
	err  error // the first
}

func newPager(ctx context.Context, do func(context.Context, []status.RunID) (int, error)) *pager {
	p := &pager{do: do, room: make(chan struct{}, owner.PagesAhead)}
	p.ctx, p.stop = context.WithCancel(ctx)
	return p
}

// add starts a page once fewer than the allowed number are at work. After an error it
// does nothing.
func (p *pager) add(runs []status.RunID) {
	select {
	case p.room <- struct{}{}:
	case <-p.ctx.Done():
		return
	}
	p.wg.Go(func() {
		defer func() { <-p.room }()
		p.now(runs)
	})
}

// now runs the function for a page, while other pages may be at work.
func (p *pager) now(runs []status.RunID) {
	n, err := p.do(p.ctx, runs)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += n
	if err != nil && p.err == nil {
		p.err = err
		p.stop()
	}
}

// wait waits for all pages, and returns the sum of their results and the first error.
func (p *pager) wait() (int, error) {
	p.wg.Wait()
	p.stop()
	return p.done, p.err
}
