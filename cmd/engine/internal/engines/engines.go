package engines

import (
	"context"
	"fmt"
	"os"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/agents"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/store"
)

// Parts are what differs between the engines of apply and serve.
type Parts struct {
	Capacity invoke.Capacity
	Observer engine.Observer // nil = none
	Options  engine.Options  // Address "" = HOST:PID; Writers 0 = what the store wants
}

// NewNode makes an engine over an open store.
func NewNode(a *cli.App, s *session.Session, pool *agents.Pool, p Parts) (*engine.Node, error) {
	if p.Options.Address == "" {
		p.Options.Address = ProcessName()
	}
	if p.Options.Writers == 0 && s.Postgres == "" {
		p.Options.Writers = 1
	}
	return engine.NewNode(engine.Config{
		Store: s.Store, Invoker: pool, Capacity: p.Capacity, Sealer: s.Sealer, Secrets: secrets(a),
		Observer: p.Observer, Logger: a.Logger(), Options: p.Options,
	})
}

// Visitor is the configuration of a command that runs no agents.
func Visitor(a *cli.App, s *session.Session, o engine.Options) engine.Config {
	o.Address, o.Writers = ProcessName(), 1
	return engine.Config{Store: s.Store, Sealer: s.Sealer, Secrets: secrets(a), Logger: a.Logger(), Options: o}
}

// NewPool makes the pool of agents that an engine calls. It passes to logs each line
// that agents log during a call. limits bound the agents' processes.
func NewPool(a *cli.App, catalog *agents.Catalog, o agents.Observer, logs func(store.LogLine), limits *Ceilings) *agents.Pool {
	return agents.NewPool(agents.Options{
		Catalog: catalog, Secrets: secrets(a), LookupEnv: a.Lookup, Observer: o, Logger: a.Logger(), LogSink: logs,
		MaxProcesses: limits.processes,
		MaxMemory:    limits.agent.memory, MaxThreads: limits.agent.threads, MaxFiles: limits.agent.files,
	})
}

// KeepLogs stores the lines that keeper takes. stop ends this, and waits until the
// last line is stored.
func KeepLogs(ctx context.Context, keeper *engine.LogKeeper) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = keeper.Run(ctx) // the error says only that it was stopped; it has logged what it could not store
	}()
	return func() { cancel(); <-done }
}

// ProcessName is how people find this process: HOST:PID.
func ProcessName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return fmt.Sprintf("%s:%d", host, os.Getpid())
}
