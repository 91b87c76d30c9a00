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

// A Supervisor finds runs with something past its complete-by, and delivers TimePassed to
// them and nothing else (S36, S37, S38, S44). The owner of the run decides what follows. A
// Supervisor keeps no state, so that another one can continue at any time (S46). It has no
// type in which business logic could be expressed (S43).
type Supervisor struct {
	due     DueFunc
	deliver DeliverFunc
	opts    SupervisorOptions
}

// A DueFunc returns the runs whose time has passed, and how long it is until
// the next time that is already known; a negative wait = none is known. With
// an error it may still return the runs it found.
type DueFunc func(ctx context.Context) (runs []status.RunID, wait time.Duration, err error)

// A DeliverFunc hands an event to a run. Delivering twice is harmless (S45).
type DeliverFunc func(ctx context.Context, run status.RunID, e machine.Event) error

// SupervisorOptions are the limits of a Supervisor's loop.
type SupervisorOptions struct {
	// MinScan is the shortest, MaxScan the longest pause between two passes
	// that find nothing (S47, S76). Zero = 200 ms and 10 s.
	MinScan, MaxScan time.Duration
	// Poke wakes the loop before its pause is over; nil = never.
	Poke <-chan struct{}
	// Busy reports, after a pass, whether the pass found other work. Then the pause does
	// not grow. nil = it never does.
	Busy func() bool
	// Passed is called after every pass with the number of runs that got TimePassed and
	// with the duration of the pass; nil = not called.
	Passed func(told int, took time.Duration)
	// Logger reports passes that failed; nil = they are not reported.
	Logger *slog.Logger
}

// NewSupervisor returns a Supervisor over the given functions. It does nothing
// until Run is called.
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

// Run makes passes until ctx ends. The pause between two passes grows while they find
// nothing. It returns to MinScan when a pass finds something, and never goes beyond the
// next known time. A pass that fails is repeated after MinScan.
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

// Scan makes one pass and returns how many runs got TimePassed.
func (s *Supervisor) Scan(ctx context.Context) (int, error) {
	n, _, err := s.pass(ctx)
	return n, err
}

// pass is Scan, and also returns how long it is to the next known time. If a delivery to
// one run fails, the others still get theirs.
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
