package plugin

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// The longest waits of an agent process. An agent must end within two seconds after its
// engine has ended, so endGrace and closeNotice together are shorter than two seconds.
const (
	endGrace = time.Second // longest time for actions to return after their context has ended
	// Longest time between the end of the control stream and the moment when the engine closes the
	// agent.
	closeNotice = 200 * time.Millisecond
	engineWait  = 30 * time.Second       // longest time for the engine to connect after the handshake
	sayWait     = 100 * time.Millisecond // longest time to log why the process ends
)

// life decides when an agent process ends. The process ends when the engine closes the agent
// or is gone. Before the end, running actions get a short time to stop their work.
type life struct {
	socketDir string
	connected atomic.Bool
	served    chan struct{} // closed when the server has stopped in an orderly way
	once      sync.Once
	exit      func(reason string) // ends the process at once
	logger    *slog.Logger        // logger for the reason of an early end

	mu      sync.Mutex // protects the fields below
	ending  bool
	running map[*running]struct{}
	idle    chan struct{} // closed when the process is ending and no function runs
}

// running represents one call of an action's function that has not returned yet.
type running struct{ cancel context.CancelFunc }

func newLife(socketDir string) *life {
	l := &life{
		socketDir: socketDir,
		logger:    slog.New(slog.DiscardHandler),
		served:    make(chan struct{}),
		running:   map[*running]struct{}{},
		idle:      make(chan struct{}),
	}
	l.exit = l.exitProcess
	return l
}

// begin records that an action's function runs. The caller must call the function `end` when
// that function has returned. If the process has to end earlier, life calls the function
// `cancel`.
func (l *life) begin(cancel context.CancelFunc) (end func()) {
	r := &running{cancel: cancel}
	l.enter(r)
	return func() { l.leave(r) }
}

func (l *life) enter(r *running) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running[r] = struct{}{}
	if l.ending {
		r.cancel()
	}
}

func (l *life) leave(r *running) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.running, r)
	l.noteIdleLocked()
}

func (l *life) noteIdleLocked() {
	if !l.ending || len(l.running) > 0 {
		return
	}
	select {
	case <-l.idle:
	default:
		close(l.idle)
	}
}

// expectEngine ends the process if no engine connects to it within engineWait.
func (l *life) expectEngine() {
	time.AfterFunc(engineWait, func() {
		if !l.connected.Load() {
			l.lost("no engine connected")
		}
	})
}

// close ends the running actions. It is called when the engine has closed the agent in an
// orderly way. Afterwards Serve returns.
func (l *life) close() {
	l.once.Do(func() {
		close(l.served)
		l.drain()
	})
}

// lost ends the process and all its children. It is called when the engine is gone, or when the
// process has received SIGTERM. If the engine has closed the agent in an orderly way, or does so
// within closeNotice, lost does nothing.
func (l *life) lost(reason string) {
	timer := time.NewTimer(closeNotice)
	defer timer.Stop()
	select {
	case <-l.served:
		return
	case <-timer.C:
	}
	l.once.Do(func() {
		l.drain()
		l.exit(reason)
	})
}

// drain cancels the contexts of all running actions. It waits until the actions have
// returned, but at most for endGrace.
func (l *life) drain() {
	l.mu.Lock()
	l.ending = true
	for r := range l.running {
		r.cancel()
	}
	l.noteIdleLocked()
	l.mu.Unlock()
	timer := time.NewTimer(endGrace)
	defer timer.Stop()
	select {
	case <-l.idle:
	case <-timer.C:
	}
}

func (l *life) exitProcess(reason string) {
	l.removeSockets()
	l.sayWhy(reason)
	killOwnGroup()
	os.Exit(1)
}

// sayWhy logs why the process ends, for the author of the agent: otherwise the end would look like
// a crash. The reason of the end may be that the engine is gone, so no process may read standard
// error. Therefore sayWhy waits at most for sayWait. It also ignores SIGPIPE, which would end this
// process before it has killed its children.
func (l *life) sayWhy(reason string) {
	signal.Ignore(syscall.SIGPIPE)
	said := make(chan struct{})
	go func() {
		defer close(said)
		l.logger.Warn("the agent ends", "reason", reason)
	}()
	timer := time.NewTimer(sayWait)
	defer timer.Stop()
	select {
	case <-said:
	case <-timer.C:
	}
}

// removeSockets removes the sockets and their directory, because the engine is gone and cannot
// remove them. If the directory contains other files, removeSockets does not remove it.
func (l *life) removeSockets() {
	if l.socketDir == "" {
		return
	}
	sockets, err := filepath.Glob(filepath.Join(l.socketDir, "plugin*"))
	if err != nil {
		return
	}
	for _, s := range sockets {
		_ = os.Remove(s)
	}
	_ = os.Remove(l.socketDir)
}
