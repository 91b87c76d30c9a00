package sim

import (
	"context"
	"sync"
)

// A gate makes callers wait while it is closed. The zero gate is open.
type gate struct {
	mu   sync.Mutex // protects the field below
	shut chan struct{}
}

// close closes the gate until the returned function is called.
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

// wait waits until the gate is open. It returns ctx's error if ctx ends first.
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
