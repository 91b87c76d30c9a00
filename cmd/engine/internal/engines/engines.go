package engines

import (
	"context"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/process"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/agents"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/store"
)

// Settings hold those settings of an engine that `engine apply` and `engine serve` set
// differently.
type Settings struct {
	Capacity invoke.Capacity
	Observer engine.Observer // nil = none
	// Replies sends replies to webhooks; nil = the engine sends none.
	Replies engine.ReplySender
	// Options are the options of the engine. If Address is "", NewNode sets it to process.Name.
	// If Writers is 0 and the state is embedded, NewNode sets it to 1.
	Options engine.Options
}

// NewNode makes an engine that works on the open state s and calls the agents in the parameter
// `pool`.
func NewNode(a *cli.App, s *session.Session, pool *agents.Pool, p Settings) (*engine.Node, error) {
	if p.Options.Address == "" {
		p.Options.Address = process.Name()
	}
	if p.Options.Writers == 0 && s.Postgres == "" {
		p.Options.Writers = 1
	}
	return engine.NewNode(engine.Config{
		Store: s.Store, Invoker: pool, Capacity: p.Capacity, Sealer: s.Sealer, Secrets: secrets(a),
		Observer: p.Observer, Logger: a.Logger(), Options: p.Options, Replies: p.Replies,
	})
}

// Visitor returns the configuration of an engine for a command that calls no agents.
func Visitor(a *cli.App, s *session.Session, o engine.Options) engine.Config {
	o.Address, o.Writers = process.Name(), 1
	return engine.Config{Store: s.Store, Sealer: s.Sealer, Secrets: secrets(a), Logger: a.Logger(), Options: o}
}

// NewPool makes the pool of agents that an engine calls. The pool calls the function `logs` for
// each line that an agent logs during a call. The parameter `limits` holds the limits of the agent
// processes.
func NewPool(a *cli.App, catalog *agents.Catalog, o agents.Observer, logs func(store.LogLine), limits *Ceilings) *agents.Pool {
	return agents.NewPool(agents.Options{
		Catalog: catalog, Secrets: secrets(a), LookupEnv: a.Lookup, Observer: o, Logger: a.Logger(), LogSink: logs,
		MaxProcesses: limits.processes,
		MaxMemory:    limits.agent.memory, MaxThreads: limits.agent.threads, MaxFiles: limits.agent.files,
	})
}

// KeepLogs starts a goroutine. The parameter `keeper` receives log lines, and the goroutine stores
// these lines. The returned function `stop` ends the goroutine and waits until the last line is
// stored.
func KeepLogs(ctx context.Context, keeper *engine.LogKeeper) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = keeper.Run(ctx) // returns only the error of ctx; `keeper` logs all other errors
	}()
	return func() { cancel(); <-done }
}
