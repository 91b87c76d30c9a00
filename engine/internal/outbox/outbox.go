// Package outbox delivers the replies of runs.
//
// In: the replies that wait in the store (replies.Outbox). Out: calls of a function in Config.Send,
// one for each try to deliver a reply to a webhook or an agent; and hints for the consumers of
// queues. A reply is sent at least once, and the replies of a run are sent in order: the store
// gives out a reply only when the reply before it is done. An engine claims replies for a while. If
// the engine dies, the claim ends, and another engine sends the replies. Each sink has its own
// goroutine, so a slow sink delays no other sink and no run.
package outbox

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/saga-engine/engine/engine/internal/failpoint"
	"github.com/saga-engine/engine/engine/internal/guard"
	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/store/replies"
)

const (
	sinksAtOnce = 256              // largest number of sinks to which one engine sends at the same time
	batch       = 16               // largest number of replies sent to one sink at the same time
	sendTime    = 10 * time.Second // longest time of one try
	claimTime   = 60 * time.Second // how long a claim lasts; much longer than a try
	leastPause  = time.Second      // pause of a sink after its first failure; each further failure doubles it
	mostPause   = 5 * time.Minute
)

// Config holds what a Sender needs. All fields except Send, NoWork and First are required.
type Config struct {
	Box    replies.Outbox
	Logger *slog.Logger
	// Send has a function for each kind of sink, such as replies.Webhook, to which this engine
	// sends replies. The function delivers a reply. If it returns a *NotNow, nothing was sent.
	Send map[string]func(ctx context.Context, r replies.Reply) error
	// Most is the longest pause between two looks into the store.
	Most time.Duration
	// NoWork reports whether the store said a short time ago that no reply waits for a webhook or
	// an agent. When it returns true, Run looks into the store only after a call of Posted, or to
	// try a failed sink again. If NoWork is nil, Run works as if it always returned false.
	NoWork func() bool
	// First is the pause of a sink after its first failure; 0 = 1 s.
	First time.Duration
}

// A Sender delivers replies. Several goroutines may call Posted.
type Sender struct {
	cfg  Config
	wake chan struct{}

	mu     sync.Mutex // protects the fields below
	queues map[string]bool
	sinks  map[string]*sink
}

// A NotNow is the error of Config.Send if a reply was not sent, but this is no failure of the sink.
// For example, the agent is missing in this engine.
type NotNow struct {
	Why   string
	Pause time.Duration // for how long no engine claims the reply again
	Here  time.Duration // for how long this engine claims no reply for the sink
}

// Error says why the reply was not sent.
func (e *NotNow) Error() string { return e.Why }

// A sink is a webhook or an agent's action that has replies, or that failed a short time ago.
type sink struct {
	busy     bool
	failures int       // number of tries in a row that failed
	next     time.Time // time before which no try is made
}

// New returns a Sender.
func New(cfg Config) *Sender {
	if cfg.First == 0 {
		cfg.First = leastPause
	}
	return &Sender{cfg: cfg, wake: make(chan struct{}, 1), queues: map[string]bool{}, sinks: map[string]*sink{}}
}

// Posted makes Run look into the store at once, because the store has a new reply to a sink. Posted
// does not block.
func (p *Sender) Posted(to string) {
	if queue, table := strings.CutPrefix(to, replies.Table); table {
		p.mu.Lock()
		p.queues[queue] = true
		p.mu.Unlock()
	}
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Run delivers replies until ctx ends, and then waits for the tries in progress.
func (p *Sender) Run(ctx context.Context) {
	var work sync.WaitGroup
	defer work.Wait()
	for ctx.Err() == nil {
		p.hint(ctx)
		for _, kind := range slices.Sorted(maps.Keys(p.cfg.Send)) {
			if err := p.scan(ctx, kind, &work); err != nil && ctx.Err() == nil {
				p.cfg.Logger.Warn("look for replies to send", "error", err)
			}
		}
		_, err := wait.Idle(ctx, p.pause(), p.wake, func() bool {
			return p.cfg.NoWork != nil && p.cfg.NoWork() && p.pause() == p.cfg.Most
		})
		if err != nil {
			return
		}
	}
}

// hint notifies the consumers of queues that replies wait. A lost hint costs only time, because
// consumers also look from time to time.
func (p *Sender) hint(ctx context.Context) {
	p.mu.Lock()
	var queues []string
	for q := range p.queues {
		queues = append(queues, q)
	}
	clear(p.queues)
	p.mu.Unlock()
	if len(queues) == 0 {
		return
	}
	if err := p.cfg.Box.Hint(ctx, queues...); err != nil && ctx.Err() == nil {
		p.cfg.Logger.Debug("a hint to the consumers of replies is lost", "error", err)
	}
}

// pause returns the time until the next look into the store. The next look comes as soon as a sink
// that has failed may be tried again, but at the latest after Config.Most.
func (p *Sender) pause() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	pause := p.cfg.Most
	for _, s := range p.sinks {
		// If s.next is more than Config.First ago, Run has looked into the store since that time.
		// Then this sink does not shorten the pause.
		if left := time.Until(s.next); !s.busy && left > -p.cfg.First {
			pause = min(pause, left)
		}
	}
	return max(pause, p.cfg.First/10)
}

// scan finds the sinks of the given kind that have replies to send. It starts a goroutine for each
// of these sinks that has none yet.
func (p *Sender) scan(ctx context.Context, kind string, work *sync.WaitGroup) error {
	after, end := kind, strings.TrimSuffix(kind, ":")+";"
	for {
		due, err := p.cfg.Box.Due(ctx, after, end, replies.MaxSinks)
		if err != nil {
			return err
		}
		for _, to := range due {
			if after = to; p.begin(to) {
				work.Go(func() { p.serve(ctx, to, p.cfg.Send[kind]) })
			}
		}
		if len(due) < replies.MaxSinks {
			return nil
		}
	}
}

// begin reports whether the caller should begin to send to a sink now.
func (p *Sender) begin(to string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	busy := 0
	for name, s := range p.sinks {
		if s.busy {
			busy++
		} else if past := time.Since(s.next); past > mostPause || s.failures == 0 && past >= 0 {
			delete(p.sinks, name)
		}
	}
	s := p.sinks[to]
	if s == nil {
		s = &sink{}
	}
	if busy >= sinksAtOnce || s.busy || time.Now().Before(s.next) {
		return false
	}
	s.busy = true
	p.sinks[to] = s
	return true
}

// serve sends the replies for one sink, until no reply is due or a try has failed. If the last try
// for the sink failed, serve sends only one reply at a time.
func (p *Sender) serve(ctx context.Context, to string, deliver func(context.Context, replies.Reply) error) {
	defer func() {
		p.mu.Lock()
		p.sinks[to].busy = false
		p.mu.Unlock()
		p.Posted("") // Run looks into the store again, because a new reply may have come
	}()
	for ctx.Err() == nil {
		p.mu.Lock()
		limit := batch
		if p.sinks[to].failures > 0 {
			limit = 1
		}
		p.mu.Unlock()
		list, err := p.cfg.Box.Claim(ctx, to, limit, claimTime)
		if err != nil {
			if ctx.Err() == nil {
				p.cfg.Logger.Warn("claim replies", "error", err)
			}
			p.failed(to)
			return
		}
		if len(list) == 0 {
			return
		}
		failpoint.Hit("reply.claimed")
		if !p.send(ctx, to, list, deliver) {
			return
		}
	}
}

// send sends replies of different runs at the same time with the function `deliver`, and records
// the outcomes. It returns false if a try has failed, or if an outcome could not be recorded.
func (p *Sender) send(ctx context.Context, to string, list []replies.Reply, deliver func(context.Context, replies.Reply) error) bool {
	errs := make([]error, len(list))
	var work sync.WaitGroup
	for i, r := range list {
		work.Go(func() {
			try, cancel := context.WithTimeout(ctx, sendTime)
			defer cancel()
			errs[i] = guard.Do(func() error { return deliver(try, r) })
		})
	}
	work.Wait()
	failpoint.Hit("reply.sent")
	pause := time.Duration(0)
	if ctx.Err() == nil {
		pause = p.judge(to, errs)
	}
	// Record the outcomes even if the engine is stopping and ctx has ended. Then another engine can
	// send the remaining replies at once.
	note, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTime)
	defer cancel()
	var done []replies.ID
	var lost error
	for i, r := range list {
		var notNow *NotNow
		switch {
		case errs[i] == nil:
			done = append(done, r.ID)
		case errors.As(errs[i], &notNow):
			lost = errors.Join(lost, p.cfg.Box.Later(note, r.ID, notNow.Pause, notNow.Why))
		case ctx.Err() != nil:
			lost = errors.Join(lost, p.cfg.Box.Later(note, r.ID, 0, r.Why))
		default:
			p.cfg.Logger.Warn("a reply could not be delivered; it is tried again", "run", r.Name, "seq", r.N, "status", r.State, "sink", r.Sink, "error", errs[i], "in", pause.String())
			lost = errors.Join(lost, p.cfg.Box.Later(note, r.ID, max(pause, backoff(p.cfg.First, r.Tries)), errs[i].Error()))
		}
	}
	if lost = errors.Join(lost, p.cfg.Box.Delivered(note, done...)); lost != nil {
		p.cfg.Logger.Warn("the outcome of a reply is not recorded; the reply is sent again", "error", lost)
	}
	failpoint.Hit("reply.recorded")
	if len(done) == len(list) && lost == nil {
		p.mu.Lock()
		p.sinks[to].failures = 0
		p.mu.Unlock()
		return true
	}
	return false
}

// judge looks at the errors of some tries. If one of them is a failure of the sink, judge records
// the failure and returns the pause before the next try. If there is no such failure, judge returns
// 0. A *NotNow is no failure of the sink: judge only records that the next try must wait.
func (p *Sender) judge(to string, errs []error) time.Duration {
	for _, err := range errs {
		var notNow *NotNow
		switch {
		case err != nil && !errors.As(err, &notNow):
			return p.failed(to)
		case err != nil:
			p.mu.Lock()
			if next := time.Now().Add(notNow.Here); next.After(p.sinks[to].next) {
				p.sinks[to].next = next
			}
			p.mu.Unlock()
		}
	}
	return 0
}

// failed notes a failure of a sink, and returns the pause before its next try.
func (p *Sender) failed(to string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.sinks[to]
	s.failures++
	pause := backoff(p.cfg.First, s.failures)
	s.next = time.Now().Add(pause)
	return pause
}

// backoff returns the pause after the given number of tries.
func backoff(first time.Duration, tries int) time.Duration {
	pause := first
	for ; tries > 1 && pause < mostPause; tries-- {
		pause *= 2
	}
	return min(pause, mostPause)
}
