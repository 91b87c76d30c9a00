package cron

import (
	"testing"
	"time"
)

func TestTrigger(t *testing.T) {
	tick := time.Date(2026, 3, 29, 3, 0, 0, 0, time.FixedZone("CEST", 7200))
	text := Trigger("nightly", tick)
	if want := "schedule nightly 2026-03-29T01:00:00Z"; text != want {
		t.Errorf("Trigger = %q, want %q", text, want)
	}
	if name, at, ok := TickOf(text); !ok || name != "nightly" || !at.Equal(tick) {
		t.Errorf("TickOf(%q) = %q, %s, %t", text, name, at, ok)
	}
	for _, other := range []string{"", "manual", "schedule", "schedule nightly", "schedule nightly soon", "event x"} {
		if name, at, ok := TickOf(other); ok {
			t.Errorf("TickOf(%q) = %q, %s, want none", other, name, at)
		}
	}
}
