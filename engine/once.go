package engine

import (
	"context"
	"errors"

	"github.com/saga-engine/engine/engine/internal/cluster"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/sdk"
)

// whySupervising is the text that says why no call starts during a single scan.
const whySupervising = "only a supervisor has the run: an engine goes on with it"

// noInvoker is the Invoker of an engine that starts no call.
type noInvoker struct{}

// Invoke sends nothing. It returns a *Deferred.
func (noInvoker) Invoke(context.Context, invoke.Call) (sdk.Reply, error) {
	return sdk.Reply{}, &invoke.Deferred{Why: whySupervising}
}

// SuperviseOnce joins the store, makes one full scan and leaves. The scan fences dead members, and
// makes this membership the owner of runs that have no owner, or whose owner is gone or late.
// SuperviseOnce decides everything about these runs that is due, and then releases the runs. It
// calls no agent and does not use cfg.Invoker: steps that could start wait for an engine (S46,
// S68). It makes the scan even if another engine is scanning. If several engines try to take a run,
// one of them gets it.
func SuperviseOnce(ctx context.Context, cfg Config) (PassStats, error) {
	cfg.Invoker, cfg.Capacity, cfg.Options.OnlyOwnRuns = noInvoker{}, nil, true
	n, err := NewNode(cfg)
	if err != nil {
		return PassStats{}, err
	}
	n.shared.Idle = whySupervising
	work, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- n.Run(work) }()
	select {
	case <-n.Ready():
	case err := <-ended:
		return PassStats{}, err
	}
	var stats PassStats
	t, err := n.present(ctx)
	if err == nil {
		var pass cluster.Pass
		pass, err = t.Once(ctx)
		stats = PassStats(pass)
	}
	stop()
	return stats, errors.Join(err, <-ended)
}
