package sim

import (
	"context"
	"errors"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine"
)

var errLost = errors.New("sim: the store's answer was lost")

// A wire is one engine's way to the store. It loses answers, sometimes after
// the store has acted, and freezes.
type wire struct {
	engine.Store
	world *world
	node  int
}

// fault waits out a freeze and says whether this message is lost.
func (w *wire) fault(ctx context.Context) error {
	if err := w.world.thawed(ctx, w.node); err != nil {
		return err
	}
	if w.world.cut(w.node) {
		return errLost
	}
	return nil
}

func (w *wire) Join(ctx context.Context, address string, lease time.Duration, writers int) (engine.EngineID, error) {
	if err := w.fault(ctx); err != nil {
		return 0, err
	}
	return w.Store.Join(ctx, address, lease, writers)
}

func (w *wire) Tick(ctx context.Context, e engine.EngineID, lease time.Duration, limit int) (engine.Tick, error) {
	if err := w.fault(ctx); err != nil {
		return engine.Tick{}, err
	}
	return w.Store.Tick(ctx, e, lease, limit)
}

func (w *wire) Load(ctx context.Context, run machine.RunID) (engine.Head, []engine.Row, error) {
	if err := w.fault(ctx); err != nil {
		return engine.Head{}, nil, err
	}
	return w.Store.Load(ctx, run)
}

func (w *wire) OpenWriter(ctx context.Context, e engine.EngineID, n int) (engine.Writer, error) {
	writer, err := w.Store.OpenWriter(ctx, e, n)
	if err != nil {
		return nil, err
	}
	return &wireWriter{writer, w}, nil
}

type wireWriter struct {
	engine.Writer
	wire *wire
}

func (w *wireWriter) Commit(ctx context.Context, batch []engine.Transition) ([]engine.Outcome, error) {
	if err := w.wire.fault(ctx); err != nil {
		return nil, err
	}
	out, err := w.Writer.Commit(ctx, batch)
	for i, o := range out {
		if err == nil && o.Landed {
			w.wire.world.landed(ctx, batch[i].Run)
		}
	}
	if lost := w.wire.fault(ctx); lost != nil {
		return nil, lost
	}
	return out, err
}

func (w *wireWriter) Submit(ctx context.Context, t engine.Transition, n engine.Names) (engine.Submitted, error) {
	if err := w.wire.fault(ctx); err != nil {
		return engine.Submitted{}, err
	}
	s, err := w.Writer.Submit(ctx, t, n)
	if lost := w.wire.fault(ctx); lost != nil {
		return engine.Submitted{}, lost
	}
	return s, err
}
