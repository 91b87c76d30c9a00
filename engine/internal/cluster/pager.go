package cluster

import (
	"context"
	"sync"

	"github.com/saga-engine/engine/engine/internal/owner"
	"github.com/saga-engine/engine/engine/machine"
)

// A pager does the same to page after page of runs, a few at once.
type pager struct {
	ctx  context.Context // ends at the first error
	stop context.CancelFunc
	do   func(context.Context, []machine.RunID) (int, error)
	room chan struct{}
	wg   sync.WaitGroup

	mu   sync.Mutex // protects following fields
	done int
	err  error // the first
}

func newPager(ctx context.Context, do func(context.Context, []machine.RunID) (int, error)) *pager {
	p := &pager{do: do, room: make(chan struct{}, owner.PagesAhead)}
	p.ctx, p.stop = context.WithCancel(ctx)
	return p
}

// add begins with a page once there is room for it. After an error it does
// nothing.
func (p *pager) add(runs []machine.RunID) {
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

// now does a page while others may be under way.
func (p *pager) now(runs []machine.RunID) {
	n, err := p.do(p.ctx, runs)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += n
	if err != nil && p.err == nil {
		p.err = err
		p.stop()
	}
}

// wait returns, once every page has ended, what was done in all and the first
// error.
func (p *pager) wait() (int, error) {
	p.wg.Wait()
	p.stop()
	return p.done, p.err
}
