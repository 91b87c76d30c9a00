package cluster

import (
	"context"
	"sync"

	"github.com/saga-engine/engine/engine/internal/owner"
	"github.com/saga-engine/engine/engine/machine/status"
)

// A pager calls a function for each page of runs. A page is a list of runs that the store
// returned for one query. A pager works on a few pages at the same time.
type pager struct {
	ctx     context.Context // ends at the first error
	stop    context.CancelFunc
	do      func(context.Context, []status.RunID) (int, error) // function for one page; returns a count of runs
	working chan struct{}                                      // holds one value for each page on which `add` works
	wg      sync.WaitGroup

	mu   sync.Mutex // protects the fields below
	done int        // sum of the counts that all calls of `do` have returned
	err  error      // the first error; nil = none
}

func newPager(ctx context.Context, do func(context.Context, []status.RunID) (int, error)) *pager {
	p := &pager{do: do, working: make(chan struct{}, owner.PagesAhead)}
	p.ctx, p.stop = context.WithCancel(ctx)
	return p
}

// add starts the work on a page. While PagesAhead pages are in progress, it waits first. After
// an error of another page it does nothing.
func (p *pager) add(runs []status.RunID) {
	select {
	case p.working <- struct{}{}:
	case <-p.ctx.Done():
		return
	}
	p.wg.Go(func() {
		defer func() { <-p.working }()
		p.now(runs)
	})
}

// now calls the function `do` for a page, and waits until it returns. Other pages may be in
// progress.
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

// wait waits until the work on all pages has ended. It returns the sum of the counts, and the
// first error.
func (p *pager) wait() (int, error) {
	p.wg.Wait()
	p.stop()
	return p.done, p.err
}
