package postgres

import (
	"database/sql"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/store"
)

// A scan begins a minute before the newest whole one, and every tenth at the
// first bound (storage.md 4).
func TestLows(t *testing.T) {
	var l minima
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	full := 0
	for n := range 30 {
		from := l.next(1)
		if from.Valid && !from.Time.Equal(now.Add(-time.Second-minimumTrail)) {
			t.Errorf("scan %d begins at %v, want a minute before the one before it", n, from.Time)
		}
		if !from.Valid {
			full++
		}
		l.scanned(1, from, now, nil)
		now = now.Add(time.Second)
	}
	if full != 3 {
		t.Errorf("%d of 30 scans were whole, want 3", full)
	}
	before := l.next(1)
	if !before.Valid {
		l.scanned(1, before, now, nil)
		before = l.next(1)
	}
	l.scanned(1, before, now.Add(time.Hour), []store.DueRun{{Run: 1, NextCheck: now}})
	if got := l.next(1); !got.Valid || !got.Time.Before(now) {
		t.Errorf("the scan after one that found a run begins at %v, want where it found it", got.Time)
	}
	if l.next(2).Valid {
		t.Error("an engine begins where another does")
	}
	l.lower(1, []store.Transition{{}, {NextCheck: now.Add(-time.Hour)}, {NextCheck: store.Never}})
	if got := l.next(1); !got.Valid || !got.Time.Before(now.Add(-time.Hour)) {
		t.Errorf("the next scan begins at %v, want at what was committed", got.Time)
	}
	l.scanned(1, l.next(1), now, nil)
	l.took(1, sql.NullTime{}, time.Hour) // a whole scan was slow
	for range 5 * minimumSkips {
		from := l.next(1)
		if !from.Valid {
			t.Error("a whole scan that takes an hour is repeated at once")
		}
		l.scanned(1, from, now, nil)
	}
	l.forget(1)
	if l.next(1).Valid {
		t.Error("what was forgotten is known")
	}
}

// What the owner's writers commit is found by the next scan, however long past
// it is; what nobody can have committed as an owner does, by the tenth.
func TestTickFindsWhatIsLongPast(t *testing.T) {
	y := newYard(t)
	due := func(limit int) []store.DueRun {
		t.Helper()
		tick, err := y.s.Tick(t.Context(), y.id, time.Hour, limit)
		if err != nil {
			t.Fatal(err)
		}
		return tick.Due
	}
	now := time.Now()
	first, second := y.begin(now.Add(-time.Hour), 1), y.begin(now, 1)
	for range minimumSkips / 2 {
		due(10)
	}
	y.commit(store.Transition{Run: first, Seq: 1, At: now, NextCheck: now.Add(-time.Hour), Data: []byte{1}})
	if got := due(10); len(got) != 1 || got[0].Run != first {
		t.Errorf("due = %+v, want run %d", got, first)
	}
	// What is due is told until something is done about it.
	y.commit(store.Transition{Run: second, Seq: 1, At: now, NextCheck: now.Add(-50 * time.Minute), Data: []byte{1}})
	for range minimumSkips / 2 {
		if got := due(1); len(got) != 1 || got[0].Run != first {
			t.Errorf("due = %+v, want run %d, the earliest", got, first)
		}
	}
	if got := due(10); len(got) != 2 {
		t.Errorf("due = %+v, want both", got)
	}
	third := y.begin(now, 1)
	must(t, y.db, `UPDATE engine.run SET next_check = $2 WHERE run_id = $1`, int64(third), now.Add(-40*time.Minute))
	// A whole scan that was slow is not repeated at once.
	for n, began := 1, time.Now(); len(due(10)) != 3; n++ {
		if n > minimumSkips && time.Since(began) > 30*time.Second {
			t.Fatalf("a bound that was changed behind the owner's back was not found in %d scans", n)
		}
	}
}
