package postgres

import (
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/storetest"
)

// T17: a scan for runs without an owner begins where the queue begins, and at the first entry every
// five seconds.
func TestHeadOfTheQueue(t *testing.T) {
	var q queueHead
	process, server := time.Now(), time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	whole := 0
	for range 100 {
		from := q.next(process)
		if !from.Valid {
			whole++
		} else if want := server.Add(-200*time.Millisecond - headTrail); !from.Time.Equal(want) {
			t.Errorf("a scan begins at %s, want %s", from.Time, want)
		}
		q.scanned(process, time.Millisecond, from, server, nil)
		process, server = process.Add(200*time.Millisecond), server.Add(200*time.Millisecond)
	}
	if whole != 4 {
		t.Errorf("%d of 100 scans in 20 s were whole, want 4", whole)
	}
	old := server.Add(-time.Hour)
	q.scanned(process, time.Millisecond, q.next(process), server, []store.DueRun{{Run: 1, NextCheck: old}, {Run: 2, NextCheck: server}})
	if from := q.next(process); !from.Valid || !from.Time.Before(old) {
		t.Errorf("the scan after one that found a run begins at %v, want where it found the run", from)
	}
}

// T17: after five scans that took long, scans begin where the last one has found its first run, until a
// twentieth of the time has gone to the long scan, or the queue is empty.
func TestHeadOfAQueueThatIsCostlyToScan(t *testing.T) {
	var q queueHead
	process, server := time.Now(), time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	scan := func(took time.Duration, first time.Time) (from time.Time) {
		t.Helper()
		next := q.next(process)
		var found []store.DueRun
		if !first.IsZero() {
			found = []store.DueRun{{Run: 1, NextCheck: first}, {Run: 2, NextCheck: server}}
		}
		q.scanned(process, took, next, server, found)
		process, server = process.Add(100*time.Millisecond), server.Add(100*time.Millisecond)
		return next.Time
	}
	place := func() time.Time { return server.Add(-5 * time.Minute) }
	trail := func() time.Time { return server.Add(-100*time.Millisecond - headTrail) }
	scan(time.Millisecond, place()) // the first scan reads the whole index
	for range headSlow {
		if from := scan(time.Second, place()); !from.Equal(trail().Add(-100 * time.Millisecond)) {
			t.Errorf("a scan begins at %s", from)
		}
	}
	for i := range 40 { // in the 20 s after the scan of a second they read only the newest entries
		want := below(place().Add(-100 * time.Millisecond))
		if from := scan(time.Millisecond, place()); !from.Equal(want) {
			t.Fatalf("scan %d after a costly one begins at %s, want %s", i, from, want)
		}
	}
	if scan(time.Millisecond, time.Time{}); q.next(process).Time.After(trail()) {
		t.Error("the scan after one that found no run reads only the newest entries")
	}
	process = process.Add(-4 * time.Second) // before the next whole scan
	for range headSlow {
		scan(time.Second, place())
	}
	process, server = process.Add(20*time.Second), server.Add(20*time.Second)
	if q.next(process).Time.After(trail()) {
		t.Error("only the newest entries are read for ever")
	}
}

// T17, S71: the scans after the first one find each run that is added to the queue, with the highest
// priority and with the lowest one, at once.
func TestQueueIsFoundFromItsHead(t *testing.T) {
	b := newBench(t, migrated(t))
	find := func() map[status.RunID]bool {
		t.Helper()
		tick, err := b.Tick(t.Context(), b.id, time.Hour, 10)
		if err != nil {
			t.Fatal(err)
		}
		out := map[status.RunID]bool{}
		for _, d := range tick.Unowned {
			out[d.Run] = true
		}
		return out
	}
	find()
	for i, place := range []time.Duration{0, -5 * time.Minute, -10 * time.Minute} {
		run := status.RunID(900 + i)
		tr := b.create(run)
		tr.Owner, tr.At = new(store.EngineID), time.Now().UTC()
		tr.NextCheck = tr.At.Add(place).Truncate(time.Microsecond)
		if _, err := storetest.Submit(t.Context(), b.w, tr, naming.Names{}); err != nil {
			t.Fatal(err)
		}
		if !find()[run] {
			t.Errorf("the run whose place is %s before its acceptance is not found", -place)
		}
	}
}
