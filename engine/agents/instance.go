package agents

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/sdk"
	"github.com/saga-engine/engine/sdk/plugin"
)

// instanceState is what an instance is doing.
type instanceState uint8

const (
	stateIdle instanceState = iota // no process
	stateStarting
	stateReady
)

// An instance is one of an agent's processes, and its successors.
type instance struct {
	agent  *agent
	number int // from 1

	// Protected by agent.mu.
	state     instanceState
	process   *plugin.Process // while ready
	calls     int             // of the present process and earlier ones that are still out
	failures  int             // starts that failed and lives that were short, in a row
	notBefore time.Time       // of the next start
	why       error           // of the last failure
}

// readyLocked reports whether calls can be sent.
func (i *instance) readyLocked() bool { return i.state == stateReady && i.process.Err() == nil }

// startLocked starts a process in the background. It reports false if the pool
// is closed. Whoever needed it first does not own it, so ctx gives values only.
func (i *instance) startLocked(ctx context.Context) bool {
	ctx = context.WithoutCancel(ctx)
	i.state = stateStarting
	// The pool's lock is never held by those who take the agent's.
	return i.agent.pool.run(func() { i.live(ctx) })
}

// live is one life of a process: start, watch, end.
func (i *instance) live(ctx context.Context) {
	a, p := i.agent, i.agent.pool
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-p.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	process, err := i.open(ctx)
	if err != nil {
		i.ended(time.Time{}, err)
		return
	}
	born := time.Now()
	info := ProcessInfo{Agent: a.spec.Name, Key: a.spec.Key, Instance: i.number, Pid: process.Pid()}
	a.mu.Lock()
	i.state, i.process = stateReady, process
	a.changedLocked()
	a.mu.Unlock()
	p.opts.Observer.ProcessStarted(info)
	a.free()

	i.watch(ctx, process)
	err = process.Close()
	err = errors.Join(process.Err(), err)
	i.ended(born, err)
	p.opts.Observer.ProcessEnded(info, err)
}

// watch returns when the process has ended, or should: it asks for signs of
// life, and kills a process that gives none.
func (i *instance) watch(ctx context.Context, process *plugin.Process) {
	opts := i.agent.pool.opts
	ticker := time.NewTicker(opts.PingInterval)
	defer ticker.Stop()
	for missed := 0; ; {
		select {
		case <-process.Done():
			return
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		ping, cancel := context.WithTimeout(ctx, opts.PingTimeout)
		err := process.Ping(ping)
		cancel()
		switch {
		case err == nil:
			missed = 0
			continue
		case ctx.Err() != nil, process.Err() != nil:
			return
		}
		if missed++; missed >= 2 {
			i.logger(nil).Warn("agent gives no sign of life; it is killed", "pid", process.Pid(), "error", err)
			process.Kill()
			return
		}
	}
}

// ended notes the end of a life, or a failed start, and when the next one may
// begin.
func (i *instance) ended(born time.Time, why error) {
	a, opts := i.agent, i.agent.pool.opts
	now := time.Now()
	pause := time.Duration(0)
	var secret *SecretError
	a.mu.Lock()
	switch {
	case errors.As(why, &secret):
		pause = opts.RetrySecret
	case !born.IsZero() && now.Sub(born) >= opts.Stable:
		i.failures = 0
	default:
		i.failures++
		pause = opts.backoff(i.failures)
	}
	i.state, i.process, i.why, i.notBefore = stateIdle, nil, why, now.Add(pause)
	a.changedLocked()
	a.mu.Unlock()
	i.logger(nil).Debug("agent process is not running", "error", why, "next_start_in", pause)
	a.pool.run(func() { i.announce(pause) })
}

// announce tells those who wait for a slot when the next start may begin.
func (i *instance) announce(pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		i.agent.free()
	case <-i.agent.pool.stop:
	}
}

// open starts the process that the spec asks for and configures it.
func (i *instance) open(ctx context.Context) (*plugin.Process, error) {
	spec, opts := i.agent.spec, i.agent.pool.opts
	secrets := spec.Config.SensitiveStrings()
	config, err := dsl.ResolveSecrets(spec.Config, func(ref string) (string, error) {
		text, err := opts.Secrets(ref)
		if err == nil {
			secrets = append(secrets, text)
		}
		return text, err
	})
	if err != nil {
		return nil, &SecretError{Name: spec.Name, Err: err}
	}
	if string(config) == "null" {
		config = nil
	}
	binary, err := opts.Catalog.Exact(ctx, spec.Plugin, spec.Version, spec.Checksum)
	if err != nil {
		opts.Catalog.Refresh() // it may have been mended by the next time
		return nil, err
	}
	var sum []byte
	if spec.Checksum != "" && binary.Source != SourceDev {
		if sum, err = hex.DecodeString(spec.Checksum); err != nil {
			return nil, &ConfigError{Name: spec.Name, Err: fmt.Errorf("checksum: %w", err)}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, opts.StartTimeout)
	defer cancel()
	process, err := plugin.Open(ctx, plugin.OpenOptions{
		Path: binary.Path, Checksum: sum, Env: i.environ(), TempDir: opts.TempDir,
		Logger: i.logger(secrets), PayloadLimit: opts.PayloadLimit,
		StartTimeout: opts.StartTimeout, CloseGrace: opts.CloseGrace,
		// Whether a cancelled call is still waited for is decided in invoke.
		CancelGrace: 1 << 62,
	})
	if err != nil {
		opts.Catalog.Refresh()
		return nil, err
	}
	if err := i.configure(ctx, process, binary, config); err != nil {
		process.Kill()
		return nil, errors.Join(scrub(err, secrets), process.Close())
	}
	return process, nil
}

// scrub removes secrets from what an agent says about its configuration.
func scrub(err error, secrets []string) error {
	var refused *ConfigError
	if errors.As(err, &refused) {
		return &ConfigError{Name: refused.Name, Err: errors.New(replacer(secrets).Replace(refused.Err.Error()))}
	}
	return err
}

// configure checks that the process is what was described, and hands it its
// configuration.
func (i *instance) configure(ctx context.Context, process *plugin.Process, binary Binary, config json.RawMessage) error {
	if s := process.Schema(); s.Name != binary.Name || s.Version != binary.Version {
		return &plugin.StartError{
			Path: binary.Path, Reason: plugin.ReasonDescription, Hint: "reinstall the agent",
			Err: fmt.Errorf("described itself as %s %s, but runs as %s %s", binary.Name, binary.Version, s.Name, s.Version),
		}
	}
	if err := process.Configure(ctx, config); err != nil {
		return &ConfigError{Name: i.agent.spec.Name, Err: err}
	}
	return nil
}

// environ is the part of the engine's environment that the agent block allows.
func (i *instance) environ() []string {
	var env []string
	for _, name := range i.agent.spec.Env {
		if value, ok := i.agent.pool.opts.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

func (i *instance) logger(secrets []string) *slog.Logger {
	l := slog.New(redact(i.agent.pool.opts.Logger.Handler(), secrets))
	return l.With("agent", i.agent.spec.Name, "instance", i.number)
}

// leave ends a call of the instance.
func (i *instance) leave() {
	i.agent.mu.Lock()
	defer i.agent.mu.Unlock()
	i.calls--
}

// invoke sends a call to the process and waits for its reply, for ctx, or for
// complete-by. The instance counts it until the process is done with it.
func (i *instance) invoke(ctx context.Context, call engine.Call) (sdk.Reply, error) {
	i.agent.mu.Lock()
	process := i.process
	i.agent.mu.Unlock()
	if process == nil {
		i.leave()
		return sdk.Reply{}, fmt.Errorf("%w: %w", plugin.ErrNotSent, plugin.ErrExited)
	}
	type result struct {
		reply sdk.Reply
		err   error
	}
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan result, 1)
	progress := &reporter{to: call.OnProgress}
	defer progress.close()
	started := i.agent.pool.run(func() {
		defer cancel()
		reply, err := process.Invoke(inner, call.Request, progress.report)
		i.leave()
		done <- result{reply, err}
	})
	if !started {
		cancel()
		i.leave()
		return sdk.Reply{}, fmt.Errorf("%w: %w", plugin.ErrNotSent, errClosed)
	}
	stop := call.Stop
	for {
		select {
		case r := <-done:
			if errors.Is(r.err, context.Canceled) && !errors.Is(r.err, plugin.ErrNotSent) && ctx.Err() == nil {
				// Told to stop, and gone before it said what it had done.
				return sdk.Reply{
					Outcome: sdk.OutcomeUnknown, Code: sdk.CodeAgentLost,
					Message: fmt.Sprintf("agent %s was lost after it had been told to stop", i.agent.spec.Name),
				}, nil
			}
			return r.reply, r.err
		case <-stop:
			cancel()
			stop = nil
		case <-ctx.Done():
			cancel()
			return sdk.Reply{}, ctx.Err()
		}
	}
}

// A reporter passes signs of life on until it is closed.
type reporter struct {
	mu sync.Mutex // protects following fields
	to func(engine.Progress)
}

func (r *reporter) report(ev sdk.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.to == nil {
		return
	}
	switch ev := ev.(type) {
	case sdk.Heartbeat:
		r.to(engine.Progress{Number: int(ev.Progress * 100), Note: ev.Note})
	case sdk.Checkpoint:
		r.to(engine.Progress{Number: int(ev.Number), Blob: ev.Blob})
	}
}

func (r *reporter) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to = nil
}
