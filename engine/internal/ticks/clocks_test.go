package ticks

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/schedules"
)

// errMove is the error of a store that does not move schedules, or whose answer is lost.
var errMove = errors.New("the schedules were not moved, or the answer is lost")

// A losing store keeps the schedules of an engine that dies, or that gets no answer, when it moves a
// schedule.
type losing struct {
	schedules.Store

	mu     sync.Mutex // protects the field below
	chance *rand.Rand
}

func (l *losing) Move(ctx context.Context, rows ...schedules.Row) (int, error) {
	l.mu.Lock()
	n := l.chance.IntN(6)
	l.mu.Unlock()
	if n == 0 {
		return 0, errMove
	}
	moved, err := l.Store.Move(ctx, rows...)
	if n == 1 && err == nil {
		return moved, errMove
	}
	return moved, err
}

// A fleet is four engines whose clocks step forward and back. Each starts the runs of the same
// schedules.
type fleet struct {
	*yard
	firers [4]*Firer

	mu     sync.Mutex // protects the fields below
	clocks [4]time.Time
	latest time.Time            // latest time that a clock has shown
	ticks  map[string]time.Time // tick of each run by name: the first one with which it was submitted
	tries  int                  // number of submissions
}

// newFleet returns a fleet. The random numbers decide which moves fail.
func newFleet(t *testing.T, seed uint64) *fleet {
	f := &fleet{yard: newYard(t, nil), ticks: map[string]time.Time{}}
	st := &losing{Store: f.st, chance: rand.New(rand.NewPCG(seed, 18))}
	for i := range f.firers {
		f.clocks[i] = at("00:30:00")
		f.firers[i] = New(Config{
			Store: st, Logger: slog.New(slog.DiscardHandler), MaxPause: time.Second, Pass: f.st.Pass,
			Now: func() time.Time {
				f.mu.Lock()
				defer f.mu.Unlock()
				return f.clocks[i]
			},
			Definition: func(context.Context, store.WorkflowID) (*dsl.Definition, error) { return f.def, nil },
			Submit: func(_ context.Context, r Run) error {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.tries++
				if _, there := f.ticks[r.Name]; !there {
					f.ticks[r.Name] = f.latest
				}
				return nil
			},
			Open:   func(context.Context, string) (bool, error) { return false, nil },
			Cancel: func(context.Context, string, string) error { return nil },
		})
	}
	return f
}

// set sets the clock of an engine.
func (f *fleet) set(engine int, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clocks[engine] = now
	if now.After(f.latest) {
		f.latest = now
	}
}

// T7: each tick has exactly one run, although four engines scan at the same time, their clocks
// step up to two hours forward and back, and engines die between the submission of a run and the move
// of its schedule. No tick is left out, and no run starts before a clock has shown its tick.
func TestFourEnginesAndClockSteps(t *testing.T) {
	for seed := range uint64(8) {
		f, chance := newFleet(t, seed), rand.New(rand.NewPCG(seed, 81))
		now := at("00:30:00")
		for range 120 {
			now = now.Add(time.Duration(chance.IntN(20)) * time.Minute)
			var scans sync.WaitGroup
			for i, firer := range f.firers {
				step := time.Duration(0)
				if chance.IntN(3) == 0 {
					step = time.Duration(chance.IntN(240)-120) * time.Minute
				}
				f.set(i, now.Add(step))
				scans.Go(func() {
					if err := firer.Scan(t.Context()); err != nil && !errors.Is(err, errMove) {
						t.Error(err)
					}
				})
			}
			scans.Wait()
		}
		// In the end all clocks show the latest time. A schedule has at most 20 ticks left in one scan.
		for range 200 {
			for i, firer := range f.firers {
				f.set(i, f.latest.Add(afterFault))
				if err := firer.Scan(t.Context()); err != nil && !errors.Is(err, errMove) {
					t.Fatal(err)
				}
			}
		}
		want := 0
		for tick := at("01:00:00"); !tick.After(f.latest); tick = tick.Add(time.Hour) {
			name := RunName("w", "hourly", tick)
			began, there := f.ticks[name]
			switch {
			case !there:
				t.Errorf("seed %d: the tick of %s has no run", seed, tick)
			case began.Before(tick):
				t.Errorf("seed %d: the run of %s began when the latest clock showed %s", seed, tick, began)
			}
			want++
		}
		hourly := 0
		for name := range f.ticks {
			if len(name) > 8 && name[:8] == "w.hourly" {
				hourly++
			}
		}
		if hourly != want || want < 10 {
			t.Errorf("seed %d: %d runs of %d ticks", seed, hourly, want)
		}
		if f.tries <= len(f.ticks) {
			t.Errorf("void: seed %d: no tick was submitted twice", seed)
		}
	}
}

// T18: while the store says that no schedule is due, a Firer makes no scan. It still starts the run of a
// known tick in time, and a hint lets it scan at once.
func TestQuietFirer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, nil)
		reads := &counting{Store: y.st}
		hints := make(chan struct{}, 1)
		f := y.engine(nil)
		began, start := time.Now(), y.now
		f.cfg.Store, f.cfg.Hints, f.cfg.NoWork, f.cfg.MaxPause = reads, hints, func() bool { return true }, 15*time.Second
		f.cfg.Now = func() time.Time { return start.Add(time.Since(began)) }
		f.cfg.Pass = func(context.Context, string, time.Duration) (bool, error) { return true, nil }
		ctx, cancel := context.WithCancel(t.Context())
		var work sync.WaitGroup
		work.Go(func() { f.Run(ctx) })
		time.Sleep(29 * time.Minute) // it is 00:59
		synctest.Wait()
		if reads.n.Load() != 1 {
			t.Errorf("%d reads in 29 minutes, want 1", reads.n.Load())
		}
		hints <- struct{}{}
		synctest.Wait()
		if reads.n.Load() != 2 {
			t.Errorf("%d reads after a hint, want 2", reads.n.Load())
		}
		time.Sleep(62 * time.Second)
		synctest.Wait()
		cancel()
		work.Wait()
		y.wantRuns("w.chain.20260101T010000Z", "w.hourly.20260101T010000Z")
	})
}

// A counting store counts the reads of schedules.
type counting struct {
	schedules.Store
	n atomic.Int64
}

func (c *counting) Schedules(ctx context.Context, before time.Time, limit int) ([]schedules.Row, error) {
	c.n.Add(1)
	return c.Store.Schedules(ctx, before, limit)
}
