package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/sdk"
)

// whySupervising is why nothing starts during a single pass.
const whySupervising = "only a supervisor has the run: an engine goes on with it"

// noInvoker stands for the agents of an engine that starts nothing.
type noInvoker struct{}

// Invoke sends nothing.
func (noInvoker) Invoke(context.Context, invoke.Call) (sdk.Reply, error) {
	return sdk.Reply{}, &invoke.Deferred{Why: whySupervising}
}

// SuperviseOnce makes one full pass as a member of its own and leaves: members
// that died are fenced off, whatever is due of runs whose owner is gone, of
// runs without an owner and of those whose owner does not get on with them is decided and
// committed, and then they are free again. It calls no agents: what should start
// waits for an engine (S46, S68). cfg.Invoker is not used. It needs no
// permission: of several at once each makes the pass, and of each run one gets it.
func SuperviseOnce(ctx context.Context, cfg Config) (PassStats, error) {
	cfg.Invoker, cfg.Capacity, cfg.Options.Alone = noInvoker{}, nil, true
	n, err := NewNode(cfg)
	if err != nil {
		return PassStats{}, err
	}
	n.idle = whySupervising
	work, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- n.Run(work) }()
	select {
	case <-n.Ready():
	case err := <-ended:
		return PassStats{}, err
	}
	stats, err := n.superviseOnce(ctx)
	stop()
	return stats, errors.Join(err, <-ended)
}

// superviseOnce makes the pass.
func (n *Node) superviseOnce(ctx context.Context) (PassStats, error) {
	began := time.Now()
	t, err := n.present(ctx)
	if err != nil {
		return PassStats{}, err
	}
	stats := PassStats{Foreign: true}
	tick, err := t.tick(ctx)
	if err != nil {
		return stats, fmt.Errorf("look for what is due: %w", err)
	}
	for _, d := range tick.Unowned {
		stats.Lag = max(stats.Lag, tick.Now.Sub(d.NextCheck))
	}
	var errs []error
	taken, err := t.orphans(ctx, tick.Dead, takeoverScope{due: true, from: func(store.Head) bool { return true }})
	errs = append(errs, err)
	stats.Taken += taken
	taken, err = t.scanner.overdue(ctx)
	errs = append(errs, err)
	stats.Taken += taken
	// Every run that was taken was told at once that time has passed.
	stats.Due = stats.Taken
	errs = append(errs, t.scheduler.flush(ctx))
	stats.Took = time.Since(began)
	n.passed(stats)
	return stats, errors.Join(errs...)
}
