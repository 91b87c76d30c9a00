package ticks

import (
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl/cron"
)

func schedule(t *testing.T, expression string, o cron.Overlap, c cron.CatchUp) *cron.Schedule {
	t.Helper()
	table, err := cron.Parse(expression, "")
	if err != nil {
		t.Fatal(err)
	}
	return &cron.Schedule{Name: "s", Timetable: table, Overlap: o, CatchUp: c}
}

func at(text string) time.Time {
	t, err := time.Parse(time.DateTime, "2026-01-01 "+text)
	if err != nil {
		panic(err)
	}
	return t
}

func TestDecide(t *testing.T) {
	const hourly = "0 * * * *"
	next := at("01:00:00")
	for _, c := range []struct {
		name    string
		overlap cron.Overlap
		catchUp cron.CatchUp
		now     string
		open    bool
		want    Step
	}{
		{"nothing is due", cron.OverlapSkip, cron.CatchUpLatest, "00:59:59", false, Step{Next: next}},
		{"a tick in time", cron.OverlapSkip, cron.CatchUpLatest, "01:00:00", false, Step{Tick: next, Next: at("02:00:00")}},
		{"a tick in time, missed ones dropped", cron.OverlapSkip, cron.CatchUpNone, "01:00:59", false, Step{Tick: next, Next: at("02:00:00")}},
		{"a missed tick is dropped", cron.OverlapSkip, cron.CatchUpNone, "01:01:00", false, Step{Next: at("02:00:00")}},
		{"of missed ticks only the one in time", cron.OverlapSkip, cron.CatchUpNone, "04:00:30", false, Step{Tick: at("04:00:00"), Next: at("05:00:00")}},
		{"of missed ticks the newest", cron.OverlapSkip, cron.CatchUpLatest, "04:30:00", false, Step{Tick: at("04:00:00"), Next: at("05:00:00")}},
		{"all missed ticks, oldest first", cron.OverlapSkip, cron.CatchUpAll, "04:30:00", false, Step{Tick: next, Next: at("02:00:00")}},
		{"skip while a run is open", cron.OverlapSkip, cron.CatchUpAll, "04:30:00", true, Step{Next: at("05:00:00")}},
		{"queue while a run is open", cron.OverlapQueue, cron.CatchUpAll, "04:30:00", true, Step{Wait: true}},
		{"queued ticks become the newest", cron.OverlapQueue, cron.CatchUpLatest, "04:30:00", false, Step{Tick: at("04:00:00"), Next: at("05:00:00")}},
		{"allow while a run is open", cron.OverlapAllow, cron.CatchUpLatest, "01:00:05", true, Step{Tick: next, Next: at("02:00:00")}},
		{"cancel while a run is open", cron.OverlapCancel, cron.CatchUpLatest, "01:00:05", true, Step{Tick: next, Next: at("02:00:00"), Cancel: true}},
		{"cancel nothing without a run", cron.OverlapCancel, cron.CatchUpLatest, "01:00:05", false, Step{Tick: next, Next: at("02:00:00")}},
		{"a dropped tick cancels nothing", cron.OverlapCancel, cron.CatchUpNone, "01:05:00", true, Step{Next: at("02:00:00")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Decide(schedule(t, hourly, c.overlap, c.catchUp), next, at(c.now), c.open); got != c.want {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

// After years without an engine, the newest tick is found, for rare timetables and for frequent ones.
func TestDecideAfterYears(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 30, 0, time.UTC)
	for expression, want := range map[string]time.Time{
		"* * * * *":   time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC),
		"0 0 1 1 *":   time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		"0 0 29 2 *":  time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC),
		"30 2 * * 0":  time.Date(2026, 5, 31, 2, 30, 0, 0, time.UTC),
		"0 12 1 6 *":  time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC),
		"59 23 L * *": time.Date(2026, 5, 31, 23, 59, 0, 0, time.UTC),
	} {
		s := schedule(t, expression, cron.OverlapSkip, cron.CatchUpLatest)
		step := Decide(s, s.Timetable.Next(time.Date(2019, 1, 1, 0, 0, 0, 0, time.UTC)), now, false)
		if !step.Tick.Equal(want) || !step.Next.After(now) {
			t.Errorf("%s: %+v, want the tick %s", expression, step, want)
		}
	}
}

func TestRunName(t *testing.T) {
	tick := time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC)
	if got, want := RunName("order", "nightly", tick), "order.nightly.20260329T010000Z"; got != want {
		t.Errorf("RunName = %q, want %q", got, want)
	}
	long := strings.Repeat("w", 90)
	a, b := RunName(long, "a", tick), RunName(long, "b", tick)
	if len(a) > 100 || len(b) > 100 || a == b {
		t.Errorf("names of long workflows: %q (%d characters), %q", a, len(a), b)
	}
}
