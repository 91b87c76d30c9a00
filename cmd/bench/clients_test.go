package main

import (
	"testing"
	"time"
)

// What stands in for pgbench where there is none makes a commit at least of
// each client, and more in more time.
func TestClients(t *testing.T) {
	d := testDatabase(t, "clients")
	c, err := newClients(t.Context(), d, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, length := range []time.Duration{0, 200 * time.Millisecond} {
		rate, err := c.rate(t.Context(), 4, length)
		if err != nil || rate <= 0 {
			t.Errorf("%s: %v commits/s, err = %v", length, rate, err)
		}
	}
	var sum int
	if err := d.db.QueryRowContext(t.Context(), `SELECT sum(n) FROM accounts`).Scan(&sum); err != nil || sum < 8 {
		t.Errorf("%d commits, err = %v", sum, err)
	}
}

// pgbench measures for the whole time that it is given, also if that is short: connecting its clients
// takes nothing from it.
func TestYardstickOfAShortRound(t *testing.T) {
	d := testDatabase(t, "yardstick")
	y, err := newYardstick(t.Context(), d, t.TempDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, length := range []time.Duration{0, time.Second} {
		if rate, err := y.rate(t.Context(), 64, length); err != nil || rate <= 0 {
			t.Errorf("%s, %s: %v commits/s, err = %v", y.name(), length, rate, err)
		}
	}
}
