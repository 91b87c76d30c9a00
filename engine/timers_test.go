package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store/memory"
	"github.com/saga-engine/engine/engine/story"
)

// clockFlow has a timer that ends at a point in time, one that ends after two hours, and a step
// after both.
const clockFlow = `
workflow "clocks" {
  variable "until" { type = string }
  step "until" {
    timer { until = var.until }
  }
  step "hours" {
    timer { duration = "2h" }
  }
  step "last" {
    action     = agent.shop.charge
    depends_on = [step.until, step.hours]
    input { name = "clocks" }
  }
}
`

// wantRings checks that each timer of clockFlow has ended once, in time of the store: not before its
// time, and soon after it. A run waits at most for the next look of the Supervisor.
func (w *world) wantRings(run status.RunID, s *machine.State, until time.Time) {
	w.t.Helper()
	hours := story.Node(s, nil, 1).StartedAt.Add(2 * time.Hour)
	for i, want := range []time.Time{until, hours} {
		v := story.Node(s, w.def.Workflow("clocks"), i)
		if v.FinishedAt.Before(want) || v.FinishedAt.Sub(want) > w.opts.Lease {
			w.t.Errorf("the timer of step %q ended at %s, want %s", v.Name, v.FinishedAt, want)
		}
		ends := 0
		w.story.mu.Lock()
		for _, f := range w.story.facts[run] {
			if f.Kind == story.FactStepFinished && f.Step == v.Name {
				ends++
			}
		}
		w.story.mu.Unlock()
		if ends != 1 {
			w.t.Errorf("the timer of step %q ended %d times, want once\n%s", v.Name, ends, w.transcript(run))
		}
	}
	if n := len(w.shop.called("clocks")); n != 1 {
		w.t.Errorf("the step after the timers was called %d times, want once", n)
	}
}

// T7: timers end at their point in time, on a machine in any zone and while its clock changes for
// the summer or the winter. Two hours are two hours.
func TestTimersOverAClockChange(t *testing.T) {
	for _, tt := range []struct{ zone, from, until, took string }{
		{"Europe/Berlin", "2000-03-26T01:30:00+01:00", "2000-03-26T03:30:00+02:00", "1h"},
		{"America/New_York", "2000-04-02T01:30:00-05:00", "2000-04-02T03:30:00-04:00", "1h"},
		{"Australia/Lord_Howe", "2000-03-26T01:45:00+11:00", "2000-03-26T01:45:00+10:30", "30m"},
		{"Australia/Lord_Howe", "2000-03-26T01:45:00+11:00", "2000-03-25T17:00:00+02:00", "15m"}, // in the offset of another zone
	} {
		t.Run(tt.until, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				zone, err := time.LoadLocation(tt.zone)
				if err != nil {
					t.Fatal(err)
				}
				from, until := pointInTime(t, tt.from), pointInTime(t, tt.until)
				if took := until.Sub(from); from.In(zone).Format(time.RFC3339) != tt.from || took.String() != duration(t, tt.took).String() {
					t.Fatalf("the row is wrong: %s is %s in %s, and the timer takes %s", tt.from, from.In(zone).Format(time.RFC3339), tt.zone, took)
				}
				time.Sleep(time.Until(from))
				w := newWorld(t, clockFlow)
				w.mem = memory.New(memory.Options{Now: func() time.Time { return time.Now().In(zone) }})
				w.store = w.mem
				n := w.start()
				run := w.submit(n, "clocks", map[string]string{"until": tt.until})
				w.wantRings(run, w.wait(n, run, status.RunSucceeded), until)
				n.drain(t)
			})
		})
	}
}

func pointInTime(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func duration(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
