package cluster

import (
	"context"
	"sync"

	"github.com/saga-engine/engine/engine/internal/owner"
	"github.com/saga-engine/engine/engine/machine/status"
)

// A pager calls a function for each page of runs. It works on a few pages at the same time.
type pager struct {
	ctx  context.Context // ends at the first error
	stop context.CancelFunc
	do   func(context.Context, []status.RunID) (int, error)
	room chan struct{}
	wg   sync.WaitGroup

	mu   sync.Mutex // protects following fields
	done int
	err  error // the first error
}

func newPager(ctx context.Context, do func(context.Context, []status.RunID) (int, error)) *pager {
	p := &pager{do: do, room: make(chan struct{}, owner.PagesAhead)}
	p.ctx, p.stop = context.WithCancel(ctx)
	return p
}

// add starts the work on a page. It waits while the allowed number of pages is in progress.
// After an error it does nothing.
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

// now calls the function do for a page and waits for it. Other pages may be in progress.
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
