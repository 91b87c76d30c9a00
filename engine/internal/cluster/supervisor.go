package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store/naming"
)

// A Supervisor finds runs that are due, for example because the complete-by of a call has
// passed. It delivers TimePassed to these runs and nothing else (S36, S37, S38, S44). The
// owner of a run decides what follows. A Supervisor keeps no state, so that another
// Supervisor can continue at any time (S46). It uses no type that contains business logic
// (S43).
type Supervisor struct {
	due     DueFunc
	deliver DeliverFunc
	opts    SupervisorOptions
}

// A DueFunc returns the runs that are due. The result `wait` is the time until another run is due;
// negative = not known. A DueFunc may return runs together with an error.
type DueFunc func(ctx context.Context) (runs []status.RunID, wait time.Duration, err error)

// A DeliverFunc passes an event to a run. Delivering an event twice does no harm (S45).
type DeliverFunc func(ctx context.Context, run status.RunID, e machine.Event) error

// SupervisorOptions are the limits of a Supervisor's loop.
type SupervisorOptions struct {
	// MinScan is the shortest and MaxScan the longest pause between two scans that find nothing
	// (S47, S76). Zero means 200 ms and 10 s. If MaxScan is shorter than MinScan, the longest pause
	// is 10 s, or MinScan if MinScan is longer.
	MinScan, MaxScan time.Duration
	// Poke wakes the loop before its pause is over; nil = never.
	Poke <-chan struct{}
	// Busy is called after a scan that found no due run. It reports whether there is other
	// work. If so, the next pause is MinScan. nil = there is no other work.
	Busy func() bool
	// Passed is called after every scan with the number of runs that got TimePassed and
	// with the duration of the scan; nil = not called.
	Passed func(due int, took time.Duration)
	// Logger logs scans that failed; nil = they are not logged.
	Logger *slog.Logger
}

// NewSupervisor returns a Supervisor that uses the given functions. It starts to work when
// Run is called.
func NewSupervisor(due DueFunc, deliver DeliverFunc, opts SupervisorOptions) *Supervisor {
	if opts.MinScan <= 0 {
		opts.MinScan = 200 * time.Millisecond
	}
	if opts.MaxScan < opts.MinScan {
		opts.MaxScan = max(opts.MinScan, 10*time.Second)
	}
	if opts.Busy == nil {
		opts.Busy = func() bool { return false }
	}
	if opts.Passed == nil {
		opts.Passed = func(int, time.Duration) {}
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return &Supervisor{due: due, deliver: deliver, opts: opts}
}

// Run makes scans until ctx ends, and returns the error of ctx. The pause between two scans
// grows while the scans find nothing. After a scan that found something, the pause is MinScan
// again. A pause ends at the latest when the next run is due, if this time is known. Run
// repeats a failed scan after MinScan.
func (s *Supervisor) Run(ctx context.Context) error {
	pause := s.opts.MinScan
	for ctx.Err() == nil {
		n, wait, err := s.pass(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			s.opts.Logger.Warn("supervisor pass", "error", err)
			pause, wait = s.opts.MinScan, -1
		case n > 0, s.opts.Busy():
			pause = s.opts.MinScan
		default:
			pause = min(2*pause, s.opts.MaxScan)
		}
		if wait < 0 || wait > pause {
			wait = pause
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-s.opts.Poke:
		}
		timer.Stop()
	}
	return ctx.Err()
}

// Scan makes one scan and returns how many runs got TimePassed.
func (s *Supervisor) Scan(ctx context.Context) (int, error) {
	n, _, err := s.pass(ctx)
	return n, err
}

// pass makes one scan. It returns how many runs got TimePassed, and the time until another run is
// due; a negative time means that this is not known. If the delivery to one run fails, the other
// runs still get TimePassed, and pass returns the error.
func (s *Supervisor) pass(ctx context.Context) (int, time.Duration, error) {
	n, began := 0, time.Now()
	defer func() { s.opts.Passed(n, time.Since(began)) }()
	var errs []error
	runs, wait, err := s.due(ctx)
	if err != nil {
		errs = append(errs, fmt.Errorf("find what is due: %w", err))
	}
	for _, run := range runs {
		if err := s.deliver(ctx, run, machine.TimePassed{}); err != nil {
			errs = append(errs, fmt.Errorf("tell run %s that time has passed: %w", naming.RunName(run), err))
			continue
		}
		n++
	}
	return n, wait, errors.Join(errs...)
}
