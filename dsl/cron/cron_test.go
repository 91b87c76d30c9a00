package cron

import (
	"strings"
	"testing"
	"time"
)

func parse(t *testing.T, expression, zone string) *Timetable {
	t.Helper()
	table, err := Parse(expression, zone)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// ticks returns the ticks from one time up to another, the second excluded.
func ticks(table *Timetable, from, to string) []string {
	at, _ := time.Parse(time.RFC3339, from)
	end, _ := time.Parse(time.RFC3339, to)
	var list []string
	for at = table.Next(at.Add(-time.Second)); at.Before(end); at = table.Next(at) {
		list = append(list, at.Format(time.RFC3339))
	}
	return list
}

func TestTicks(t *testing.T) {
	for _, c := range []struct{ name, expression, zone, from, to, want string }{
		{"a gap of an hour is left at its end", "30 2 * * *", "Europe/Paris", "2026-03-28T00:00:00Z", "2026-03-31T00:00:00Z",
			"2026-03-28T01:30:00Z 2026-03-29T01:00:00Z 2026-03-30T00:30:00Z"},
		{"ticks inside a gap are one tick", "*/15 * * * *", "Europe/Paris", "2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z",
			"2026-03-29T00:30:00Z 2026-03-29T00:45:00Z 2026-03-29T01:00:00Z 2026-03-29T01:15:00Z"},
		{"an hour that comes twice counts once", "30 2 * * *", "Europe/Paris", "2026-10-24T00:00:00Z", "2026-10-27T00:00:00Z",
			"2026-10-24T00:30:00Z 2026-10-25T00:30:00Z 2026-10-26T01:30:00Z"},
		{"every half hour has a pause while the hour is repeated", "*/30 * * * *", "Europe/Paris", "2026-10-25T00:00:00Z", "2026-10-25T02:30:00Z",
			"2026-10-25T00:00:00Z 2026-10-25T00:30:00Z 2026-10-25T02:00:00Z"},
		{"New York in spring", "30 2 * * *", "America/New_York", "2026-03-07T12:00:00Z", "2026-03-10T00:00:00Z",
			"2026-03-08T07:00:00Z 2026-03-09T06:30:00Z"},
		{"New York in autumn", "30 1 * * *", "America/New_York", "2026-10-31T12:00:00Z", "2026-11-03T00:00:00Z",
			"2026-11-01T05:30:00Z 2026-11-02T06:30:00Z"},
		{"a shift of half an hour in spring", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", "2026-10-05T00:00:00Z",
			"2026-10-03T15:30:00Z 2026-10-04T15:15:00Z"},
		{"a shift of half an hour in autumn", "45 1 * * *", "Australia/Lord_Howe", "2026-04-03T18:00:00Z", "2026-04-06T00:00:00Z",
			"2026-04-04T14:45:00Z 2026-04-05T15:15:00Z"},
		{"a day that an island skipped", "0 12 * * *", "Pacific/Apia", "2011-12-29T00:00:00Z", "2012-01-01T00:00:00Z",
			"2011-12-29T22:00:00Z 2011-12-30T10:00:00Z 2011-12-30T22:00:00Z 2011-12-31T22:00:00Z"},
		{"the last day of a month", "0 0 L * *", "", "2028-02-01T00:00:00Z", "2028-04-01T00:00:00Z", "2028-02-29T00:00:00Z 2028-03-31T00:00:00Z"},
		{"a leap day", "0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", "2033-01-01T00:00:00Z", "2028-02-29T00:00:00Z 2032-02-29T00:00:00Z"},
		{"@daily", "@daily", "Asia/Tokyo", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "2026-01-01T15:00:00Z"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := strings.Join(ticks(parse(t, c.expression, c.zone), c.from, c.to), " "); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// A clock on the wall is looked at once a minute. A tick is a minute at which the clock shows a
// matching time for the first time, or jumps over one.
func TestTicksAreThoseOfAClock(t *testing.T) {
	for _, zone := range []string{"Europe/Paris", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Asia/Tokyo"} {
		for minute := 0; minute < 60; minute += 15 {
			for hour := range 4 {
				wants := func(wall time.Time) bool { return wall.Minute() == minute && wall.Hour() == hour }
				table := parse(t, time.Date(0, 1, 1, hour, minute, 0, 0, time.UTC).Format("4 15")+" * * *", zone)
				loc := table.zone
				for _, from := range []time.Time{
					time.Date(2026, 3, 6, 0, 0, 0, 0, time.UTC), time.Date(2026, 3, 27, 0, 0, 0, 0, time.UTC),
					time.Date(2026, 4, 3, 0, 0, 0, 0, time.UTC), time.Date(2026, 9, 4, 0, 0, 0, 0, time.UTC),
					time.Date(2026, 10, 2, 0, 0, 0, 0, time.UTC), time.Date(2026, 10, 23, 0, 0, 0, 0, time.UTC), time.Date(2026, 10, 30, 0, 0, 0, 0, time.UTC),
				} {
					to := from.Add(96 * time.Hour)
					var want []string
					latest := asUTC(from.Add(-time.Minute).In(loc)) // the latest time that the clock has shown
					for at := from; at.Before(to); at = at.Add(time.Minute) {
						wall := asUTC(at.In(loc))
						tick := false
						for shown := latest.Add(time.Minute); !shown.After(wall); shown = shown.Add(time.Minute) {
							tick = tick || wants(shown)
						}
						if wall.After(latest) {
							latest = wall
						}
						if tick {
							want = append(want, at.Format(time.RFC3339))
						}
					}
					got := ticks(table, from.Format(time.RFC3339), to.Format(time.RFC3339))
					if strings.Join(got, " ") != strings.Join(want, " ") {
						t.Fatalf("%s at %02d:%02d from %s:\ngot  %s\nwant %s", zone, hour, minute, from, got, want)
					}
				}
			}
		}
	}
}

func TestWhatIsRefused(t *testing.T) {
	for _, c := range []struct{ expression, zone, want string }{
		{"", "", "has five fields"},
		{"0 30 2 * * *", "", "has five fields"},
		{"0 30 2 * * * 2026", "", "has five fields"},
		{"61 2 * * *", "", "not a cron expression"},
		{"* * * * never", "", "not a cron expression"},
		{"0 0 30 2 *", "", "matches no day"},
		{"@reboot", "", "@daily"},
		{"0 0 * * *", "Local", "differs between machines"},
		{"0 0 * * *", "Europe/Atlantis", "no time zone"},
		{"0 0 * * *", "../../etc/passwd", "no time zone"},
	} {
		_, err := Parse(c.expression, c.zone)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Parse(%q, %q) = %v, want an error with %q", c.expression, c.zone, err, c.want)
		}
	}
}
