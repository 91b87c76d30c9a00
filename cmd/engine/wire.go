package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/agents"
	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/pointed"
	"github.com/saga-engine/engine/engine/store/postgres"
	"github.com/saga-engine/engine/engine/store/sqlite"
)

// opener opens what commands need: modules, agents, keys and the store.
type opener struct{ *app }

// keyVariable holds the key that encrypts sensitive values.
const keyVariable = "ENGINE_ENCRYPTION_KEY"

// applyLease is how long an apply counts as alive after its last sign of life.
// It is shorter than that of a server: a person is likely to look on, and will
// start the command again when it was killed.
const applyLease = 10 * time.Second

// A session is an open store and what it takes to read it.
type session struct {
	target
	store  store.Full
	opened io.Closer
	sealer crypt.Sealer // nil = no key is known
	defs   *journal.Definitions
	held   bool // another process holds the embedded file
}

// The parts of a session. Each is the same session with the methods of one concern.

func (s *session) history() history { return history{s} }
func (s *session) people() people   { return people{s} }

// openReader opens the state to look at it, while engines work on it. dir is
// the directory of the module as it is opened, shown the same as the user
// wrote it. The embedded file must exist.
func (a opener) openReader(ctx context.Context, dir, shown string) (*session, error) {
	t, err := a.speaker().target(a.path(dir), shown)
	if err != nil {
		return nil, err
	}
	if t.postgres == "" {
		if _, err := os.Stat(t.path); errors.Is(err, fs.ErrNotExist) {
			return nil, noState(t)
		}
	}
	return a.open(ctx, t, true)
}

// openBeside opens a module's state to look at it.
func (a opener) openBeside(ctx context.Context, dir, shown string) (*session, error) {
	t, err := a.speaker().target(dir, shown)
	if err != nil {
		return nil, err
	}
	return a.open(ctx, t, true)
}

// noState says that there is no embedded state where it is looked for.
func noState(t target) error {
	if t.implied {
		return failed("No state here", "There is no %s. Name the directory of the workflow with --chdir, or the state with --dsn.", t.shown)
	}
	return failed("No such state", "There is no %s.", t.shown)
}

// openWriter opens the state to work on it and says where it is.
func (a opener) openWriter(ctx context.Context, dir, shown string) (*session, error) {
	t, err := a.speaker().target(dir, shown)
	if err != nil {
		return nil, err
	}
	return a.open(ctx, t, false)
}

// access says what a state is opened for.
type access int

const (
	toRead  access = iota // look at it, while engines work on it
	toSpeak               // that, and say something to its runs, or leave a new one there
	toWork                // work on it; the embedded one for this process alone
)

func (a opener) open(ctx context.Context, t target, readOnly bool) (*session, error) {
	if readOnly {
		return a.openTo(ctx, t, toRead)
	}
	return a.openTo(ctx, t, toWork)
}

func (a opener) openTo(ctx context.Context, t target, to access) (*session, error) {
	s := &session{target: t}
	if t.postgres == "" {
		a.private = []string{t.path, t.path + ".key"}
	}
	var (
		opened interface {
			store.Store
			io.Closer
		}
		err error
	)
	if t.postgres != "" {
		opened, err = postgres.Open(ctx, t.postgres, postgres.Options{Logger: a.logger()})
	} else {
		opened, err = sqlite.Open(ctx, t.path, sqlite.Options{ReadOnly: to == toRead, Beside: to == toSpeak})
	}
	if err != nil {
		return nil, s.wrap("open the state", err)
	}
	s.opened, s.store = opened, store.Complete(pointed.Store(opened))
	if s.sealer, err = a.sealer(ctx, s, to != toWork); err != nil {
		return nil, errors.Join(err, s.opened.Close())
	}
	s.defs = journal.NewDefinitions(s.store, s.sealer)
	return s, nil
}

// sealer gathers the keys: that of the environment, and for the embedded store
// that of the file beside it, which is made for a new state when there is
// neither. The first seals; that it is the one of the state is checked by the
// engine before it writes.
func (a opener) sealer(ctx context.Context, s *session, readOnly bool) (crypt.Sealer, error) {
	var keys []crypt.Key
	if text, ok := a.lookup(keyVariable); ok && text != "" {
		key, err := crypt.ParseKey(text)
		if err != nil {
			return nil, failed("Invalid "+keyVariable, "%s.", upperFirst(err.Error()))
		}
		keys = append(keys, key)
	}
	if s.postgres == "" {
		file := s.path + ".key"
		_, err := os.Stat(file)
		if errors.Is(err, fs.ErrNotExist) && len(keys) == 0 && !readOnly {
			if err := s.unkeyed(ctx); err != nil {
				return nil, err
			}
		}
		if err == nil || len(keys) == 0 && !readOnly {
			key, err := crypt.LoadOrCreateKeyFile(file)
			if err != nil {
				return nil, failed("Cannot use the encryption key", "%s.", upperFirst(err.Error()))
			}
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	return crypt.NewSealer(keys...)
}

// unkeyed returns an error if the state was written with a key: then that of a
// new file would not be the one.
func (s *session) unkeyed(ctx context.Context) error {
	pinned, err := s.store.Pin(ctx, journal.SettingKey, "")
	if err != nil {
		return s.wrap("ask which key seals", err)
	}
	if pinned == "" {
		return nil
	}
	return failed("Encryption key is missing", "%s.key is not there, and %s was written with the key in it (%s). Restore the file, or set %s to that key. "+
		"Without it the runs in this state cannot be read or finished; to begin anew, move the state file away.", s.shown, s.shown, pinned, keyVariable)
}

// close closes the store. What it could not write it has told the caller that wrote.
func (s *session) close() {
	_ = s.opened.Close()
}

// wrap says what was done when the state gave an error.
func (s *session) wrap(doing string, err error) error {
	var locked *sqlite.LockedError
	var schema *store.SchemaError
	if errors.As(err, &locked) || errors.As(err, &schema) || errors.Is(err, context.Canceled) {
		return err
	}
	return &storeError{doing: doing, shown: s.shown, err: err}
}

// A storeError is an error of the store, with what was done.
type storeError struct {
	doing string
	shown string // the store, as messages call it
	err   error
}

// Error names the store.
func (e *storeError) Error() string {
	return fmt.Sprintf("%s (%s): %v", e.doing, e.shown, e.err)
}

// Unwrap returns the cause.
func (e *storeError) Unwrap() error { return e.err }

// newPool makes the pool of agents that an engine calls. logs takes what they
// log while they work on calls; limits bound the processes.
func (a opener) newPool(catalog *agents.Catalog, o agents.Observer, logs func(store.LogLine), limits *ceilings) *agents.Pool {
	return agents.NewPool(agents.Options{
		Catalog: catalog, Secrets: a.secrets(), LookupEnv: a.lookup, Observer: o, Logger: a.logger(), LogSink: logs,
		MaxProcesses: limits.processes,
		MaxMemory:    limits.agent.memory, MaxThreads: limits.agent.threads, MaxFiles: limits.agent.files,
	})
}

// keepLogs stores what keeper takes, until stop is called: it waits until the
// rest is stored.
func keepLogs(ctx context.Context, keeper *engine.LogKeeper) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = keeper.Run(ctx) // only that it was stopped; what it could not store it has told
	}()
	return func() { cancel(); <-done }
}

// nodeParts are the parts of an engine that commands differ in.
type nodeParts struct {
	capacity invoke.Capacity
	observer engine.Observer // nil = nobody
	options  engine.Options  // Address "" = HOST:PID; Writers 0 = what the store wants
}

// newNode makes an engine over an open store.
func (a opener) newNode(s *session, pool *agents.Pool, p nodeParts) (*engine.Node, error) {
	if p.options.Address == "" {
		p.options.Address = processName()
	}
	if p.options.Writers == 0 && s.postgres == "" {
		p.options.Writers = 1
	}
	return engine.NewNode(engine.Config{
		Store: s.store, Invoker: pool, Capacity: p.capacity, Sealer: s.sealer, Secrets: a.secrets(),
		Observer: p.observer, Logger: a.logger(), Options: p.options,
	})
}

// visitor is the configuration of a command that runs no agents.
func (a opener) visitor(s *session, o engine.Options) engine.Config {
	o.Address, o.Writers = processName(), 1
	return engine.Config{Store: s.store, Sealer: s.sealer, Secrets: a.secrets(), Logger: a.logger(), Options: o}
}

// processName is how people find this process: HOST:PID.
func processName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return fmt.Sprintf("%s:%d", host, os.Getpid())
}
