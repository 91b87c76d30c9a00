package engine

import (
	"context"
	"errors"

	"github.com/saga-engine/engine/engine/internal/cluster"
	"github.com/saga-engine/engine/engine/invoke"
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
