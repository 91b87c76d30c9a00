package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"testing"

	"github.com/saga-engine/engine/engine/store"
)

// present tells a lineage that every row is there, or that none is.
func present(there bool) func(mark) (bool, error) {
	return func(mark) (bool, error) { return there, nil }
}

// T5: a store compares each server that it reaches with the history that was
// confirmed to it, and tells a loss, a wrong server and a promotion apart.
func TestLineage(t *testing.T) {
	const system, other = 7, 8
	tests := []struct {
		name      string
		confirmed int64 // a tick confirmed the log up to here, on timeline 1
		row       bool  // a row was confirmed on timeline 1
		there     bool  // the server that is reached holds that row
		reached   identity
		lost      bool
		wrong     bool
		line      int64 // the timeline of the connection, where nothing is wrong
	}{
		{"the same server again", 100, true, true, identity{system: system, line: 1, at: 120}, false, false, 1},
		{"a backup was restored: the same timeline ends earlier", 100, false, true, identity{system: system, line: 1, at: 80, back: true}, true, false, 1},
		{"a standby that has all was promoted", 100, true, true, identity{system: system, line: 2, at: 110, replayed: 100}, false, false, 2},
		{"a standby that lagged was promoted: its log says so", 100, false, true, identity{system: system, line: 2, at: 110, replayed: 90}, true, false, 2},
		{"a standby that lagged was promoted: a row is gone", 0, true, false, identity{system: system, line: 2, at: 110, replayed: 90}, true, false, 2},
		{"a row is gone and the server does not say where it stopped to follow", 0, true, false, identity{system: system, line: 2, at: 110}, true, false, 2},
		{"another database cluster", 100, false, true, identity{system: other, line: 1, at: 120}, false, true, 0},
		{"a standby takes no writes and proves nothing", 100, true, false, identity{system: system, standby: true}, false, false, 1},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			l, w := newLineage(), &Writer{}
			if _, err := l.see(identity{system: system, line: 1, at: 50}, present(true)); err != nil {
				t.Fatal(err)
			}
			if tc.confirmed != 0 && !l.ticked(1, tc.confirmed) {
				t.Fatal("a tick of the only server counts for nothing")
			}
			if tc.row && !l.confirm(w, 1, mark{run: 1, seq: 2, token: 3}) {
				t.Fatal("a row of the only server counts for nothing")
			}
			line, err := l.see(tc.reached, present(tc.there))
			var wrong *WrongServerError
			if errors.As(err, &wrong) != tc.wrong || err != nil && !tc.wrong || line != tc.line {
				t.Errorf("see = timeline %d, err = %v, want %d, wrong server = %v", line, err, tc.line, tc.wrong)
			}
			var lost *store.LossError
			if errors.As(l.err(), &lost) != tc.lost {
				t.Errorf("loss = %v, want %v", l.err(), tc.lost)
			}
		})
	}
}

// T5: once another server was promoted, the former primary is refused, and
// nothing that it still confirms counts.
func TestFormerPrimary(t *testing.T) {
	l, w := newLineage(), &Writer{}
	for _, line := range []int64{1, 2} {
		if _, err := l.see(identity{system: 7, line: line, at: 50 * line, replayed: 60}, present(true)); err != nil {
			t.Fatal(err)
		}
	}
	if l.confirm(w, 1, mark{run: 1}) {
		t.Error("a row that the former primary confirmed counts")
	}
	if l.ticked(1, 1000) {
		t.Error("a tick that the former primary confirmed counts")
	}
	if !l.stale(1) || l.stale(2) {
		t.Errorf("stale: timeline 1 = %v, 2 = %v, want the former only", l.stale(1), l.stale(2))
	}
	var wrong *WrongServerError
	if _, err := l.see(identity{system: 7, line: 1, at: 200}, present(true)); !errors.As(err, &wrong) {
		t.Errorf("the former primary: err = %v, want *WrongServerError", err)
	}
	if err := l.err(); err != nil {
		t.Errorf("loss = %v: the former primary proves none", err)
	}
}

// A brokenWire is a connection of the driver whose queries have at most one row. The row is the
// token, or reading it fails with the error `err`.
type brokenWire struct {
	wire
	token int64
	err   error
}

func (b brokenWire) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return b, nil
}
func (b brokenWire) Columns() []string { return []string{"writer"} }
func (b brokenWire) Close() error      { return nil }
func (b brokenWire) Next(to []driver.Value) error {
	to[0] = b.token
	return b.err
}

// T5: a row that could not be read is not a lost row.
func TestUnreadableRowIsNotLost(t *testing.T) {
	broken := errors.New("connection reset")
	for name, tc := range map[string]struct {
		wire  brokenWire
		there bool
		err   error
	}{
		"the row":             {wire: brokenWire{token: 3}, there: true},
		"a row of retention":  {wire: brokenWire{token: 0}, there: true},
		"another row":         {wire: brokenWire{token: 4}},
		"no row":              {wire: brokenWire{err: io.EOF}},
		"the read was broken": {wire: brokenWire{err: broken}, err: broken},
		"the read was cut":    {wire: brokenWire{err: driver.ErrBadConn}, err: driver.ErrBadConn},
	} {
		there, err := hasRow(t.Context(), tc.wire, mark{run: 1, seq: 2, token: 3})
		if there != tc.there || !errors.Is(err, tc.err) {
			t.Errorf("%s: there = %v, err = %v, want %v and %v", name, there, err, tc.there, tc.err)
		}
	}
}
