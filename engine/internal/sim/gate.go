package sim

import (
	"context"
	"sync"
)

// A gate lets callers wait while it is shut. The zero gate is open.
type gate struct {
	mu   sync.Mutex // protects following field
	shut chan struct{}
}

// close shuts the gate until the function that it returns is called.
func (g *gate) close() (open func()) {
	c := make(chan struct{})
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = c
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.shut = nil
		close(c)
	}
}

// wait returns when the gate is open, or ctx's error.
func (g *gate) wait(ctx context.Context) error {
	g.mu.Lock()
	c := g.shut
	g.mu.Unlock()
	if c == nil {
		return nil
	}
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
