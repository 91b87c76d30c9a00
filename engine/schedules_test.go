package engine_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/schedules"
	"github.com/saga-engine/engine/engine/story"
)

// tickFlow has a schedule whose runs end at once, one whose runs wait until they are cancelled, and
// one whose runs go on for longer than an hour.
const tickFlow = `
variable "region" { type = string }
workflow "report" {
  deadline = "1h"
  variable "tenant" { type = string }
  unique { key = "${var.tenant}/${run.tick}" }
  schedule "hourly" {
    cron      = "0 * * * *"
    catch_up  = "all"
    variables = { tenant = "demo" }
  }
  step "made" { value = "${var.tenant} ${var.region} ${run.tick}" }
  output "made" { value = step.made.output }
}
workflow "watch" {
  deadline = "1d"
  schedule "hourly" {
    cron    = "30 * * * *"
    overlap = "cancel"
  }
  step "signal" {
    wait { signal = "stop" }
  }
}
workflow "slow" {
  deadline = "1d"
  schedule "queued" {
    cron    = "0 * * * *"
    overlap = "queue"
  }
  schedule "skipped" {
    cron = "0 * * * *"
  }
  step "pause" {
    timer { duration = "90m" }
  }
}`

// runsOf returns the runs of a workflow by name, with their states.
func (w *world) runsOf(workflow string) map[string]status.RunState {
	w.t.Helper()
	rows, err := w.mem.Runs(w.t.Context(), store.RunFilter{Workflow: workflow, Limit: 1000})
	if err != nil {
		w.t.Fatal(err)
	}
	found := map[string]status.RunState{}
	for _, r := range rows {
		found[r.Name] = r.State
	}
	return found
}

func (w *world) publish() {
	w.t.Helper()
	_, err := engine.Publish(w.t.Context(), engine.Config{Store: w.mem, Sealer: w.sealer()}, engine.Publication{
		Definition: w.def, Assigned: []dsl.Assignment{{Name: "region", Text: "eu", Source: "test"}}, By: "ann",
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// S90: several engines start one run for each tick. They know run.tick, cancel or skip or queue by
// overlap, and catch up after a time without engines.
func TestSchedulesStartRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, tickFlow) // the clock of the test begins at 2000-01-01T00:00:00Z
		w.publish()
		nodes := []*testNode{w.start(), w.start(), w.start()}
		time.Sleep(2*time.Hour + 10*time.Minute)
		name := func(workflow, schedule string, hour, minute int) string {
			return workflow + "." + schedule + "." + time.Date(2000, 1, 1, hour, minute, 0, 0, time.UTC).Format("20060102T150405Z")
		}
		want := func(workflow string, states map[string]status.RunState) {
			t.Helper()
			got := w.runsOf(workflow)
			for run, state := range states {
				if got[run] != state {
					t.Errorf("run %s is %s, want %s", run, got[run], state)
				}
			}
			if len(got) != len(states) {
				t.Errorf("runs of %s: %v, want %d", workflow, got, len(states))
			}
		}
		want("report", map[string]status.RunState{
			name("report", "hourly", 1, 0): status.RunSucceeded, name("report", "hourly", 2, 0): status.RunSucceeded,
		})
		want("watch", map[string]status.RunState{
			name("watch", "hourly", 0, 30): status.RunCancelled, name("watch", "hourly", 1, 30): status.RunWaiting,
		})
		want("slow", map[string]status.RunState{
			name("slow", "queued", 1, 0): status.RunWaiting, name("slow", "skipped", 1, 0): status.RunWaiting,
		})
		time.Sleep(30 * time.Minute) // 02:40: the runs of 01:00 ended at 02:30
		want("slow", map[string]status.RunState{
			name("slow", "queued", 1, 0): status.RunSucceeded, name("slow", "skipped", 1, 0): status.RunSucceeded,
			name("slow", "queued", 2, 0): status.RunWaiting, // it waited, the tick of the other schedule was skipped
		})
		row, err := store.Complete(w.mem).Find(t.Context(), name("report", "hourly", 2, 0))
		if err != nil {
			t.Fatal(err)
		}
		state, err := nodes[0].Wait(t.Context(), row.Run)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(story.Outputs(state)[0].Value.JSON()); !strings.Contains(got, `"demo eu 2000-01-01T02:00:00Z"`) {
			t.Errorf("outputs = %s", got)
		}
		if want := "schedule hourly 2000-01-01T02:00:00Z"; state.Run().Trigger != want {
			t.Errorf("trigger = %q, want %q", state.Run().Trigger, want)
		}

		for _, n := range nodes {
			n.kill(t)
		}
		time.Sleep(3 * time.Hour) // nobody works from 02:40 to 05:40
		w.start()
		time.Sleep(time.Minute)
		if got := len(w.runsOf("report")); got != 5 {
			t.Errorf("%d reports at 05:41, want those of 01:00 to 05:00", got)
		}
		if got, late := w.runsOf("watch"), name("watch", "hourly", 5, 30); got[late] != status.RunWaiting || len(got) != 4 {
			t.Errorf("watches = %v, want only the newest of the missed ticks, %s", got, late)
		}
	})
}

// The runs of past ticks can be started, each once.
func TestBackfill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, tickFlow)
		w.publish()
		rows, err := w.mem.Schedules(t.Context(), time.Time{}, 10)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(rows, func(r schedules.Row) bool { return r.Workflow == "report" })
		from := time.Date(1999, 12, 31, 20, 0, 0, 0, time.UTC)
		for _, exists := range []bool{false, true} {
			out, err := engine.Backfill(t.Context(), engine.Config{Store: w.mem, Sealer: w.sealer()}, rows[i], from, from.Add(4*time.Hour))
			if err != nil || len(out) != 4 {
				t.Fatalf("Backfill = %+v, %v, want the ticks of 20:00 to 23:00", out, err)
			}
			for _, e := range out {
				if e.Exists != exists || e.Err != nil {
					t.Errorf("run %s: exists = %t, %v, want %t", e.Name, e.Exists, e.Err, exists)
				}
			}
		}
		w.start()
		time.Sleep(time.Second)
		for name, state := range w.runsOf("report") {
			if state != status.RunSucceeded {
				t.Errorf("run %s is %s", name, state)
			}
		}
		if _, err := engine.Backfill(t.Context(), engine.Config{Store: w.mem, Sealer: w.sealer()}, rows[i], from.AddDate(-2, 0, 0), from); err == nil || !strings.Contains(err.Error(), "more than") {
			t.Errorf("two years of ticks: %v, want a refusal", err)
		}
	})
}
