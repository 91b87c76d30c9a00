package dsl_test

import (
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
)

// TestTimersOverAClockChange: the offset in the text of until says which point in time is meant,
// where one time of the clock happens twice and where the clock skips one. A day is 24 hours, also
// if the clock changes in it.
func TestTimersOverAClockChange(t *testing.T) {
	for _, tt := range []struct{ zone, until, utc string }{
		{"Europe/Berlin", "2026-10-25T02:30:00+02:00", "2026-10-25T00:30:00Z"},
		{"Europe/Berlin", "2026-10-25T02:30:00+01:00", "2026-10-25T01:30:00Z"}, // the same time of the clock, an hour later
		{"Europe/Berlin", "2026-03-29T01:59:59+01:00", "2026-03-29T00:59:59Z"},
		{"Europe/Berlin", "2026-03-29T03:00:00+02:00", "2026-03-29T01:00:00Z"}, // a second later
		{"America/New_York", "2026-11-01T01:30:00-04:00", "2026-11-01T05:30:00Z"},
		{"America/New_York", "2026-11-01T01:30:00-05:00", "2026-11-01T06:30:00Z"},
		{"America/New_York", "2026-03-08T03:00:00-04:00", "2026-03-08T07:00:00Z"},
		{"Australia/Lord_Howe", "2026-04-05T01:45:00+11:00", "2026-04-04T14:45:00Z"},
		{"Australia/Lord_Howe", "2026-04-05T01:45:00+10:30", "2026-04-04T15:15:00Z"}, // half an hour later
	} {
		zone, err := time.LoadLocation(tt.zone)
		if err != nil {
			t.Fatal(err)
		}
		want := instant(t, tt.utc)
		if clock := want.In(zone).Format(time.RFC3339); clock != tt.until {
			t.Errorf("the row is wrong: in %s it is %s at %s, not %s", tt.zone, clock, tt.utc, tt.until)
		}
		wf := linkedWorkflow(t, step("s", "")+
			free("until", "timer { until = \""+tt.until+"\" }")+
			free("day", "timer { until = timeadd(\""+tt.until+"\", \"1d\") }"))
		for name, at := range map[string]time.Time{"until": want, "day": want.Add(24 * time.Hour)} {
			if l, err := stepOf(t, wf, name).Until(&dsl.Scope{}); err != nil || !l.At.Equal(at) || l.After != 0 {
				t.Errorf("%s: the timer of step %q ends at %s, %v; want %s", tt.until, name, l.At, err, at)
			}
		}
	}
	wf := linkedWorkflow(t, "variable \"at\" { type = string }\n"+step("s", "")+free("until", "timer { until = var.at }"))
	_, err := stepOf(t, wf, "until").Until(scopeOf(bound(t, wf, "at", "2026-10-25T02:30:00"))) // it says no zone, so it would be a guess
	wantError(t, err, `until: a point in time is written as in RFC 3339, such as "2030-01-31T18:00:00Z"`)
}
