package serving

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/alerts"
	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/engines"
	"github.com/saga-engine/engine/cmd/engine/internal/exit"
	"github.com/saga-engine/engine/cmd/engine/internal/process"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/internal/starts"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/agents"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/intake"
	"github.com/saga-engine/engine/engine/store/replies"
	"github.com/saga-engine/engine/engine/telemetry"
)

// A server does the work of one `engine serve` command.
type server struct {
	o    Options
	s    *session.Session
	log  *slog.Logger
	node *engine.Node
	pool *agents.Pool
	runs *runLog
	logs *engine.LogKeeper
	web  *webServer   // nil = --http off
	hook *alerts.Hook // nil = alerts are not pushed

	stopping atomic.Bool
}

// stopOnSignals makes the channel `stops` receive those signals of the operating system that
// stop a server. SIGHUP and SIGPIPE do not stop a server.
func stopOnSignals(stops chan<- os.Signal) {
	signal.Notify(stops, os.Interrupt, syscall.SIGTERM)
	// The command catches these signals. It does not ignore them, because agents would inherit an
	// ignored signal.
	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, syscall.SIGHUP, syscall.SIGPIPE)
}

func quietSignals(stops chan<- os.Signal) { signal.Stop(stops) }

// newServer makes a server. It opens the port of --http, but starts no engine yet.
func newServer(a *cli.App, s *session.Session, catalog *agents.Catalog, o Options) (*server, error) {
	if o.Address == "" {
		o.Address = process.Name()
	}
	v := &server{o: o, s: s, log: a.Logger()}
	v.logs = engine.NewLogKeeper(s.Store, v.log)
	v.pool = engines.NewPool(a, catalog, agentEvents{v.log, &v.stopping}, v.logs.Keep, &o.Ceilings)
	meters := telemetry.New(v.snapshot)
	v.runs = newRunLog(s.Store, v.log)
	if o.pushes() {
		v.hook = alerts.NewHook(s.Store, alerts.To(o.OnAlert, o.Webhook, a.Environ()), v.log, meters)
	}
	sinks, err := engines.ReplySinks(a, o.ReplySinks)
	if err != nil {
		v.pool.Close()
		return nil, err
	}
	v.node, err = engines.NewNode(a, s, v.pool, engines.Settings{
		Capacity: engines.LimitCalls(v.pool, o.Concurrency), Observer: observers{meters, v.runs, alertWatch{hook: v.hook}}, Options: o.node(), Replies: sinks,
	})
	if err == nil && o.HTTP != "off" {
		v.web, err = listenWeb(o.HTTP, meters.Handler(), v.ready)
	}
	if err != nil {
		v.pool.Close()
		return nil, err
	}
	return v, nil
}

// close ends the agents and the web server.
func (v *server) close() {
	v.pool.Close()
	if v.web != nil {
		v.web.close(context.Background())
	}
}

// run is the method that works on runs until the operating system sends a signal, or until the
// state refuses this engine for good. After the first signal the engine waits for its calls in
// flight and stops. After the second signal it stops without waiting.
func (v *server) run(ctx context.Context, stops <-chan os.Signal) error {
	var beside sync.WaitGroup
	besideCtx, cancel := context.WithCancel(ctx)
	defer beside.Wait()
	defer cancel()
	nodeCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- v.node.Run(nodeCtx) }()

	defer engines.KeepLogs(ctx, v.logs)()
	beside.Go(func() { v.runs.run(besideCtx) })
	if v.web != nil {
		beside.Go(func() { v.web.run(v.log) })
		defer v.web.close(besideCtx)
	}
	if v.hook != nil {
		beside.Go(func() { v.hook.Run(besideCtx) })
	}
	ready := v.node.Ready()
	signals := 0
	for {
		select {
		case <-ready:
			ready = nil
			v.log.Info("serving", "engine", v.node.Engine(), "address", v.o.Address, "state", v.s.Shown,
				"lease", v.o.Lease.String(), "version", cli.Version)
			if v.web != nil {
				v.log.Info("listening", "http", v.web.address())
			}
		case sig := <-stops:
			signals++
			v.stopping.Store(true)
			if signals == 1 {
				// First stop the node, then write the message that nothing more is started. In
				// the other order, the node could start a call after the message.
				calls := v.node.Status().Calls
				stop()
				v.log.Info("stopping: nothing more is started, running attempts may still return; a second signal stops the engine at once",
					"signal", sig.String(), "in_flight", calls)
				continue
			}
			v.log.Warn("stopping at once: other engines continue when the lease has expired", "signal", sig.String())
			v.node.StopNow()
		case err := <-ended:
			return v.ended(err, signals)
		}
	}
}

// ended returns the error with which the command ends. It returns nil if the engine stopped because
// the user asked for it. The parameter `err` is the error with which the node ended, or nil. The
// parameter `signals` is the number of signals that the operating system has sent.
func (v *server) ended(err error, signals int) error {
	switch {
	case errors.Is(err, engine.ErrStopping) && signals > 1:
		return exit.Code(exit.Open)
	case err != nil:
		return v.s.Wrap("serve", err)
	}
	v.log.Info("stopped: everything is handed over")
	return nil
}

// ready returns an error that says why the engine is not ready for work; nil = it is ready.
func (v *server) ready() error {
	switch now := v.node.Status(); {
	case v.stopping.Load():
		return errors.New("stopping")
	case now.Engine == 0:
		return errors.New("not joined to the state")
	case now.Lease == 0:
		return errors.New("the lease has run out: the state does not answer")
	}
	return nil
}

// snapshot returns the current values for the metrics.
func (v *server) snapshot(ctx context.Context) telemetry.Snapshot {
	now := v.node.Status()
	s := telemetry.Snapshot{
		RunsOwned: now.Runs, InFlight: now.Calls, LeaseSeconds: now.Lease.Seconds(),
		Queued: now.Queued, Behind: now.Behind.Seconds(), QueueAge: now.QueueAge.Seconds(), Slowest: now.Slowest.Seconds(), Quarantined: now.Quarantined, Undelivered: -1,
		Refused: refusedCount(ctx, v.s.Store), Starts: startAges(ctx, v.s.Store, time.Now()),
	}
	if v.hook != nil {
		if alerts, err := v.s.Store.Undelivered(ctx, 1000); err == nil {
			s.Undelivered = len(alerts)
		}
	}
	if box, ok := replies.Of(v.s.Store); ok {
		if lag, err := box.Lag(ctx); err == nil {
			s.Replies = repliesByKind(lag, time.Now())
		}
	}
	for _, a := range v.pool.Status() {
		s.Agents = append(s.Agents, telemetry.AgentSnapshot{Agent: a.Agent, InFlight: a.InFlight, Instances: a.Healthy, Circuit: circuitNumber(a.Circuit)})
	}
	return s
}

// refusedCount returns the number of refused submissions; -1 = the number is not known, or this
// kind of store keeps no submissions.
func refusedCount(ctx context.Context, s store.Store) int {
	role, ok := intake.Of(s)
	if !ok {
		return -1
	}
	r, err := role.RefusedSubmissions(ctx)
	if err != nil {
		return -1
	}
	return r.Count
}

// startAges returns for how many seconds the oldest submission and the oldest event have waited for
// an engine; nil = not known.
func startAges(ctx context.Context, s store.Store, now time.Time) map[string]float64 {
	list, err := starts.Oldest(ctx, s)
	if err != nil {
		return nil
	}
	out := map[string]float64{starts.Submission: 0, starts.Event: 0}
	for _, x := range list {
		out[x.Kind] = max(0, now.Sub(x.At).Seconds())
	}
	return out
}

// repliesByKind adds up the replies that wait, for each kind of sink.
func repliesByKind(lag []replies.Lag, now time.Time) map[string]telemetry.ReplyLag {
	out := map[string]telemetry.ReplyLag{}
	for _, sink := range []string{replies.Table, replies.Webhook, replies.Agent} {
		out[replies.Kind(sink)] = telemetry.ReplyLag{}
	}
	for _, l := range lag {
		sum := out[replies.Kind(l.Sink)]
		sum.Waiting += l.Waiting
		sum.Oldest = max(sum.Oldest, now.Sub(l.Oldest).Seconds())
		out[replies.Kind(l.Sink)] = sum
	}
	return out
}

// circuitNumber returns the number that the metrics show for the state of a circuit.
func circuitNumber(c agents.Circuit) int {
	switch c {
	case agents.CircuitHalfOpen:
		return 1
	case agents.CircuitOpen:
		return 2
	}
	return 0
}
