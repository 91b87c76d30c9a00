package agents

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/saga-engine/engine/dsl/secret"
	"github.com/saga-engine/engine/sdk/plugin"
)

// startLocked starts a process in the background. The process belongs to the pool, not to the call
// that first needed it. startLocked returns false if it starts none because the pool is closed.
//
// If too many processes run (crowd.enter), startLocked starts none and returns true. Then it sets
// the field `notBefore`, the time before which the instance does not try again.
func (i *instance) startLocked() bool {
	p, further := i.agent.pool, !i.agent.idleLocked()
	if !p.crowd.enter(further) {
		if !further && p.crowd.full(i.agent) {
			p.wantProcess()
		}
		why := &crowdedError{most: p.crowd.most}
		if further {
			why.further = p.crowd.further()
		}
		i.notBefore, i.why = time.Now().Add(crowdedPause), why
		return true
	}
	i.state = stateStarting
	// p.run takes the pool's lock while the agent's lock is held. This cannot deadlock: a
	// goroutine that holds the pool's lock never waits for the agent's lock.
	started := p.run(func() {
		defer p.processEnded()
		i.live(context.Background())
	})
	if !started {
		p.crowd.leave()
	}
	return started
}

// The method live starts one process, watches it, and ends it.
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
	number := a.births.Add(1)
	process, err := i.open(ctx, number)
	if err != nil {
		i.ended(nil, err)
		return
	}
	l := &life{instance: i, birth: number, process: process, born: time.Now(), empty: make(chan struct{})}
	info := ProcessInfo{Agent: a.spec.Name, Key: a.spec.Key, Instance: i.number, Pid: process.Pid()}
	a.mu.Lock()
	i.state, i.life = stateReady, l
	a.lastCall = l.born
	a.changedLocked()
	a.mu.Unlock()
	p.opts.Observer.ProcessStarted(info)
	a.free()

	l.watch(ctx)
	err = process.Close()
	err = errors.Join(process.Err(), err)
	i.ended(l, err)
	p.opts.Observer.ProcessEnded(info, err)
}

// ended handles the end of the process l, or a failed start if l is nil. It sets the time at which
// the instance may start its next process, unless l got no calls any more before its end. The
// parameter `why` is the reason of the end.
func (i *instance) ended(l *life, why error) {
	a := i.agent
	a.mu.Lock()
	if l != nil && i.life != l { // l was drained or retired before
		i.old = slices.DeleteFunc(i.old, func(o *life) bool { return o == l })
		a.mu.Unlock()
		i.logger().Debug("drained agent process has ended", "error", why)
		return
	}
	born := time.Time{}
	if l != nil {
		born = l.born
	}
	pause := i.vacateLocked(born, why)
	a.mu.Unlock()
	i.logger().Debug("agent process is not running", "error", why, "next_start_in", pause)
	a.pool.run(func() { i.announce(pause) })
}

// vacateLocked records that the instance has no process for calls any more. It returns the pause
// before the next start of a process. The parameter `born` is the time at which the former process
// became ready for calls; zero = the start failed. If the former process was ready for
// Options.Stable or longer, the pause is 0.
func (i *instance) vacateLocked(born time.Time, why error) time.Duration {
	opts := i.agent.pool.opts
	now := time.Now()
	pause := time.Duration(0)
	var secret *SecretError
	switch {
	case errors.As(why, &secret):
		pause = opts.RetrySecret
	case !born.IsZero() && now.Sub(born) >= opts.Stable:
		i.failures = 0
	default:
		i.failures++
		pause = opts.backoff(i.failures)
	}
	i.state, i.life, i.why, i.notBefore = stateIdle, nil, why, now.Add(pause)
	i.agent.changedLocked()
	return pause
}

// announce waits for the pause before the next start of a process. Then it notifies the runs
// that wait for a slot of the agent. If the pool is closed first, announce returns at once.
func (i *instance) announce(pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		i.agent.free()
	case <-i.agent.pool.stop:
	}
}

// open starts a process of the agent, and sends the agent's configuration to the process. The
// parameter `number` becomes the number of the process; each agent numbers its own processes.
func (i *instance) open(ctx context.Context, number int64) (*plugin.Process, error) {
	spec, opts := i.agent.spec, i.agent.pool.opts
	secrets := spec.Config.SensitiveStrings()
	config, err := secret.Resolve(spec.Config, func(ref string) (string, error) {
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
		opts.Catalog.Refresh() // a person may install or repair the binary before the next start
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
		Logger: i.loggerOf(number, secrets), PayloadLimit: opts.PayloadLimit,
		MaxMemory: opts.MaxMemory, MaxThreads: opts.MaxThreads, MaxFiles: opts.MaxFiles, Protocol: opts.protocol(),
		StartTimeout: opts.StartTimeout, CloseGrace: opts.CloseGrace,
		// The pool itself decides how long it waits for a cancelled call. So this limit must be so
		// long that it never ends the wait.
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

// scrub returns err with the secrets removed from its text. err says why the configuration of a
// process failed.
func scrub(err error, secrets []string) error {
	var (
		refused *ConfigError
		ended   *plugin.StartError
	)
	switch {
	case errors.As(err, &ended):
		mended := *ended
		mended.Err = errors.New(secret.Redactor(secrets)(ended.Err.Error()))
		return &mended
	case errors.As(err, &refused):
		return &ConfigError{Name: refused.Name, Err: errors.New(secret.Redactor(secrets)(refused.Err.Error()))}
	}
	return err
}

// configure checks that the process has the name and version of the binary's description, and
// sends the configuration to the process.
func (i *instance) configure(ctx context.Context, process *plugin.Process, binary Binary, config json.RawMessage) error {
	if s := process.Schema(); s.Name != binary.Name || s.Version != binary.Version {
		return &plugin.StartError{
			Path: binary.Path, Reason: plugin.ReasonDescription, Hint: "reinstall the agent",
			Err: fmt.Errorf("described itself as %s %s, but runs as %s %s", binary.Name, binary.Version, s.Name, s.Version),
		}
	}
	var ended *plugin.StartError
	switch err := process.Configure(ctx, config); {
	case errors.As(err, &ended):
		return err
	case err != nil:
		return &ConfigError{Name: i.agent.spec.Name, Err: err}
	}
	return nil
}

// environ returns the environment of the process: the engine's variables that the agent block
// allows. An old definition may still allow a variable that is reserved for the engine
// (secret.ReservedEnv). environ leaves out such a variable.
func (i *instance) environ() []string {
	var env []string
	for _, name := range i.agent.spec.Env {
		if secret.ReservedEnv(name) {
			i.logger().Warn("variable withheld", "variable", name, "why", secret.ReservedEnvRule)
			continue
		}
		if value, ok := i.agent.pool.opts.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// logger returns the logger for the engine's own messages about the instance.
func (i *instance) logger() *slog.Logger { return i.loggerOf(0, nil) }

// loggerOf returns the logger for the lines that one process logs and prints. The parameter
// `process` is the number of the process; 0 = the lines are the engine's own messages.
func (i *instance) loggerOf(process int64, secrets []string) *slog.Logger {
	opts := i.agent.pool.opts
	l := slog.New(&tagged{
		next: opts.Logger.Handler(), book: &i.agent.book, process: process, sink: opts.LogSink, secrets: secrets, redact: secret.Redactor(secrets),
	})
	return l.With("agent", i.agent.spec.Name, "instance", i.number)
}

// Limits that have no setting.
const (
	// deadAfter is how many signs of life in a row must be missing before a process is
	// killed. After the first missing sign of life, the process gets no more calls.
	deadAfter = 4
	// maxOld is how many replaced processes of one instance may still finish their calls. If
	// there are more, the oldest replaced process is killed.
	maxOld = 2
	// listenFor is how long the pool waits for a late reply after complete-by. maxListening is the
	// largest number of calls of one process that may wait for a late reply at the same time.
	listenFor    = 30 * time.Second
	maxListening = 100
)

// watch returns when the process has ended or should end. Until then it asks the process for signs
// of life. If a sign is missing, the process gets no more calls, and the instance starts another
// process instead. After deadAfter missing signs in a row, watch kills the process. If the agent
// has had no call for Options.IdleAfter, watch ends the process.
func (l *life) watch(ctx context.Context) {
	opts := l.instance.agent.pool.opts
	pings := time.NewTicker(opts.PingInterval)
	defer pings.Stop()
	var bored <-chan time.Time
	if opts.IdleAfter > 0 {
		ticker := time.NewTicker(max(opts.IdleAfter/4, time.Millisecond))
		defer ticker.Stop()
		bored = ticker.C
	}
	for {
		select {
		case <-l.process.Done():
			return
		case <-ctx.Done():
			return
		case <-l.empty:
			return
		case <-bored:
			l.retire()
			continue
		case <-pings.C:
		}
		if !l.ping(ctx) {
			return
		}
	}
}

// ping asks the process for a sign of life. It returns false if watch must end: ctx has ended,
// or the process has ended or was killed.
func (l *life) ping(ctx context.Context) bool {
	a := l.instance.agent
	ping, cancel := context.WithTimeout(ctx, a.pool.opts.PingTimeout)
	err := l.process.Ping(ping)
	cancel()
	if ctx.Err() != nil || l.process.Err() != nil {
		return false
	}
	a.mu.Lock()
	if err == nil {
		l.missed = 0
		a.mu.Unlock()
		return true
	}
	l.missed++
	missed := l.missed
	a.mu.Unlock()
	if missed < deadAfter {
		l.drain("it gives no sign of life")
		return true
	}
	l.instance.logger().Warn("agent gives no sign of life; it is killed", "pid", l.process.Pid(), "error", err)
	l.process.Kill()
	return false
}

// drain stops giving calls to the process, so that the instance can start another process, at once
// or after a pause. If the instance has more than maxOld replaced processes, drain kills the oldest
// one. The parameter `why` says the reason, for people.
func (l *life) drain(why string) {
	i, a := l.instance, l.instance.agent
	a.mu.Lock()
	if l.draining != "" || i.life != l {
		a.mu.Unlock()
		return
	}
	l.draining = why
	calls := l.calls
	l.emptyLocked()
	pause := i.vacateLocked(l.born, fmt.Errorf("the agent's process is replaced: %s", why))
	i.old = append(i.old, l)
	var excess *life
	if len(i.old) > maxOld {
		excess = i.old[0]
	}
	if pause == 0 {
		i.startLocked() // the result does not matter: false = the pool is closed and ends all processes
	}
	a.mu.Unlock()
	i.logger().Warn("an agent process gets no more calls and is replaced", "pid", l.process.Pid(), "why", why, "calls", calls)
	if excess != nil {
		i.logger().Warn("too many drained processes; the oldest is killed", "pid", excess.process.Pid())
		excess.process.Kill()
	}
	if pause > 0 {
		a.pool.run(func() { i.announce(pause) })
	}
}

// retire ends the process if the agent has had no call for Options.IdleAfter.
func (l *life) retire() {
	i, a := l.instance, l.instance.agent
	a.mu.Lock()
	defer a.mu.Unlock()
	if l.draining != "" || i.life != l || a.reserved > 0 || a.calls > 0 || l.calls > 0 || time.Since(a.lastCall) < a.pool.opts.IdleAfter {
		return
	}
	l.retireLocked()
}
