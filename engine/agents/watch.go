package agents

import "context"

// watch makes the end of ctx cut off its calls. One goroutine watches ctx for all of them.
func (p *Pool) watch(ctx context.Context) {
	done := ctx.Done()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctxs[done] {
		return
	}
	p.ctxs[done] = true
	context.AfterFunc(ctx, func() {
		p.mu.Lock()
		delete(p.ctxs, done)
		agents := make([]*agent, 0, len(p.agents))
		for _, a := range p.agents {
			agents = append(agents, a)
		}
		p.mu.Unlock()
		for _, a := range agents {
			for _, f := range a.watchedBy(done) {
				f.cut(ctx.Err())
			}
		}
	})
}

// watchLocked adds a call to the list of calls that are cut off when their ctx ends.
func (a *agent) watchLocked(f *activeCall) {
	if f.ctx == nil {
		return
	}
	if f.next = a.watched; f.next != nil {
		f.next.prev = f
	}
	a.watched = f
}

// unwatchLocked removes a call from the list.
func (a *agent) unwatchLocked(f *activeCall) {
	if f.ctx == nil {
		return
	}
	if f.next != nil {
		f.next.prev = f.prev
	}
	if f.prev != nil {
		f.prev.next = f.next
	} else {
		a.watched = f.next
	}
	f.ctx, f.prev, f.next = nil, nil, nil
}

// watchedBy returns the calls with a ctx, which is identified by its Done channel.
func (a *agent) watchedBy(done <-chan struct{}) []*activeCall {
	a.mu.Lock()
	defer a.mu.Unlock()
	var list []*activeCall
	for f := a.watched; f != nil; f = f.next {
		if f.ctx.Done() == done {
			list = append(list, f)
		}
	}
	return list
}
