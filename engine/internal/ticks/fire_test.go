package ticks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/memory"
	"github.com/saga-engine/engine/engine/store/schedules"
)

const source = `
variable "region" { type = string }
workflow "w" {
  deadline = "1h"
  variable "tenant" { type = string }
  unique { key = "${var.tenant}/${var.region}/${run.tick}" }
  schedule "hourly" {
    cron      = "0 * * * *"
    catch_up  = "all"
    variables = { tenant = "demo" }
  }
  schedule "chain" {
    cron      = "0 * * * *"
    overlap   = "cancel"
    variables = { tenant = "demo" }
  }
  step "a" { value = run.tick }
}`

func newSealer(t *testing.T) crypt.Sealer {
	t.Helper()
	sealer, err := crypt.NewSealer(crypt.Key{1})
	if err != nil {
		t.Fatal(err)
	}
	return sealer
}

// A yard is a store with a published workflow, and engines that start its runs.
type yard struct {
	*testing.T
	st  *memory.Store
	def *dsl.Definition
	now time.Time

	mu        sync.Mutex     // protects the fields below
	runs      map[string]Run // submitted runs by name
	open      map[string]bool
	cancelled []string
	fault     error
}

func newYard(t *testing.T, sealer crypt.Sealer) *yard {
	t.Helper()
	module, diags := dsl.Parse(fstest.MapFS{"main.hcl": {Data: []byte(source)}}, dsl.ParseOptions{})
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	def, diags := dsl.Link(module, nil)
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	y := &yard{T: t, st: memory.New(memory.Options{}), def: def, now: at("00:30:00"), runs: map[string]Run{}, open: map[string]bool{}}
	given := y.given(sealer)
	var rows []schedules.Row
	for _, s := range def.Workflow("w").Schedules {
		rows = append(rows, schedules.Row{Name: s.Name, Timetable: s.Text(), Next: s.Timetable.Next(y.now)})
	}
	if err := y.st.Publish(t.Context(), schedules.Workflow{Name: "w", ID: 1, Given: given}, rows); err != nil {
		t.Fatal(err)
	}
	return y
}

// given returns the stored form of the deployment variables.
func (y *yard) given(sealer crypt.Sealer) []byte {
	y.Helper()
	wf := y.def.Workflow("w")
	vars, diags := wf.Bind(append(wf.Schedules[0].Variables, dsl.Assignment{Name: "region", Text: "eu"}))
	if diags.HasErrors() {
		y.Fatal(diags.Err())
	}
	data, err := journal.EncodeGiven(sealer, wf, vars)
	if err != nil {
		y.Fatal(err)
	}
	return data
}

// engine returns one engine of the yard.
func (y *yard) engine(sealer crypt.Sealer) *Firer {
	return New(Config{
		Store: y.st, Sealer: sealer, Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return y.now }, MaxPause: time.Second, Pass: y.st.Pass,
		Definition: func(context.Context, store.WorkflowID) (*dsl.Definition, error) { return y.def, nil },
		Submit: func(_ context.Context, r Run) error {
			y.mu.Lock()
			defer y.mu.Unlock()
			if y.fault != nil {
				return y.fault
			}
			if _, there := y.runs[r.Name]; !there {
				y.runs[r.Name], y.open[r.Name] = r, true
			}
			return nil
		},
		Open: func(_ context.Context, name string) (bool, error) {
			y.mu.Lock()
			defer y.mu.Unlock()
			return y.open[name], nil
		},
		Cancel: func(_ context.Context, name, _ string) error {
			y.mu.Lock()
			defer y.mu.Unlock()
			y.cancelled = append(y.cancelled, name)
			return nil
		},
	})
}

func (y *yard) scan(f *Firer) {
	y.Helper()
	if err := f.Scan(y.Context()); err != nil {
		y.Fatal(err)
	}
}

func (y *yard) wantRuns(names ...string) {
	y.Helper()
	if got := slices.Sorted(maps.Keys(y.runs)); !slices.Equal(got, names) {
		y.Errorf("runs = %v, want %v", got, names)
	}
}

// Every tick starts one run, although two engines look at it, and although an engine ends between
// the submission and the move of the schedule.
func TestOneRunForEachTick(t *testing.T) {
	sealer := newSealer(t)
	y := newYard(t, sealer)
	a, b := y.engine(sealer), y.engine(sealer)
	y.scan(a)
	y.wantRuns()
	y.now = at("02:10:00")
	rows, err := y.st.Schedules(t.Context(), time.Time{}, 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows { // an engine submits the runs and ends before it moves the schedules
		if d := a.one(t.Context(), r, y.now); d.err != nil {
			t.Fatal(d.err)
		}
	}
	y.wantRuns("w.chain.20260101T020000Z", "w.hourly.20260101T010000Z")
	y.scan(b)
	y.wantRuns("w.chain.20260101T020000Z", "w.hourly.20260101T010000Z")
	clear(y.open)
	y.scan(a)
	y.wantRuns("w.chain.20260101T020000Z", "w.hourly.20260101T010000Z", "w.hourly.20260101T020000Z")
	y.scan(b)
	y.scan(a)
	y.wantRuns("w.chain.20260101T020000Z", "w.hourly.20260101T010000Z", "w.hourly.20260101T020000Z")
	run := y.runs["w.hourly.20260101T010000Z"]
	if got, want := string(run.Vars.JSON()), `{"region":"eu","tenant":"demo"}`; got != want {
		t.Errorf("variables = %s, want %s", got, want)
	}
	if want := "schedule hourly 2026-01-01T01:00:00Z"; run.Trigger != want {
		t.Errorf("trigger = %q, want %q", run.Trigger, want)
	}
}

// With overlap = "cancel" the run before is cancelled; with "skip" the tick starts nothing.
func TestRunsThatHaveNotEnded(t *testing.T) {
	y := newYard(t, nil)
	f := y.engine(nil)
	y.now = at("01:00:10")
	y.scan(f)
	y.now = at("02:00:10")
	y.scan(f)
	y.wantRuns("w.chain.20260101T010000Z", "w.chain.20260101T020000Z", "w.hourly.20260101T010000Z")
	if want := []string{"w.chain.20260101T010000Z"}; !slices.Equal(y.cancelled, want) {
		t.Errorf("cancelled = %v, want %v", y.cancelled, want)
	}
}

// A schedule whose run cannot be started is left alone for a while. It keeps its tick, and it stops
// no other schedule.
func TestScheduleWithAFault(t *testing.T) {
	y := newYard(t, nil)
	f := y.engine(nil)
	y.now, y.fault = at("01:00:10"), errors.New("no agent")
	y.scan(f)
	y.wantRuns()
	y.fault = nil
	y.scan(f)
	y.wantRuns()
	y.now = y.now.Add(afterFault)
	y.scan(f)
	y.wantRuns("w.chain.20260101T010000Z", "w.hourly.20260101T010000Z")
}

// A paused schedule starts nothing.
func TestPausedSchedule(t *testing.T) {
	y := newYard(t, nil)
	rows, err := y.st.Schedules(t.Context(), time.Time{}, 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		r.Paused = r.Name == "hourly"
		if _, err := y.st.Move(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	y.now = at("01:00:10")
	y.scan(y.engine(nil))
	y.wantRuns("w.chain.20260101T010000Z")
}

// A countingStore counts the calls of Move.
type countingStore struct {
	schedules.Store
	moves int
}

// Move counts the call.
func (s *countingStore) Move(ctx context.Context, rows ...schedules.Row) (int, error) {
	s.moves++
	return s.Store.Move(ctx, rows...)
}

// Schedules with the same tick share commits: one for each schedule would delay the last of thousands
// by seconds.
func TestManySchedulesMoveTogether(t *testing.T) {
	y := newYard(t, nil)
	const n = chunk + 1
	var rows []schedules.Row
	text := "workflow \"w\" {\n deadline = \"1h\"\n"
	for i := range n {
		name := fmt.Sprintf("s%d", i)
		text += fmt.Sprintf("schedule %q { cron = \"0 * * * *\" }\n", name)
		rows = append(rows, schedules.Row{Name: name, Timetable: "0 * * * *", Next: at("01:00:00")})
	}
	module, diags := dsl.Parse(fstest.MapFS{"main.hcl": {Data: []byte(text + "step \"a\" { value = 1 }\n}\n")}}, dsl.ParseOptions{})
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	if y.def, diags = dsl.Link(module, nil); diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	vars, diags := y.def.Workflow("w").Bind(nil)
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	given, err := journal.EncodeGiven(nil, y.def.Workflow("w"), vars)
	if err != nil {
		t.Fatal(err)
	}
	if err := y.st.Publish(t.Context(), schedules.Workflow{Name: "w", ID: 1, Given: given}, rows); err != nil {
		t.Fatal(err)
	}
	y.now = at("01:00:10")
	f := y.engine(nil)
	counting := &countingStore{Store: y.st}
	f.cfg.Store = counting
	y.scan(f)
	if len(y.runs) != n || counting.moves != 2 {
		t.Errorf("%d runs in %d moves, want %d in 2", len(y.runs), counting.moves, n)
	}
	y.scan(f)
	if len(y.runs) != n || counting.moves != 2 {
		t.Errorf("the second scan made %d runs in %d moves", len(y.runs)-n, counting.moves-2)
	}
}
