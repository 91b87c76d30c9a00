// Package cron computes the ticks of a schedule: the times at which it starts a run.
//
// A schedule has a cron expression and a time zone. The library cronexpr parses the expression
// and finds the wall-clock times that match it. This package converts these wall-clock times to
// points in time, so that the same rule holds in every time zone:
//
//   - A wall-clock time that daylight saving skips becomes the first time after the gap.
//   - A wall-clock time that comes twice counts once: the first of the two.
//
// So two wall-clock times can become the same point in time. Then there is only one tick.
package cron

import (
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // for machines without a database of time zones

	"github.com/hashicorp/cronexpr"
)

// A Timetable is a parsed cron expression in a time zone. It is immutable and safe for
// concurrent use.
type Timetable struct {
	expr *cronexpr.Expression
	zone *time.Location
}

// shortForms are the words that may replace the five fields of a cron expression.
var shortForms = []string{"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@hourly"}

// Parse parses a cron expression with five fields: minute, hour, day of month, month and day
// of week. A word such as "@daily" may replace the five fields. The zone is a name of the IANA
// database, such as "Europe/Paris"; "" means UTC. Parse returns an error if the expression
// never matches, such as an expression for 30 February.
func Parse(expression, zone string) (*Timetable, error) {
	loc, err := loadZone(zone)
	if err != nil {
		return nil, err
	}
	if err := checkForm(expression); err != nil {
		return nil, err
	}
	expr, err := cronexpr.Parse(expression)
	if err != nil {
		return nil, fmt.Errorf("%q is not a cron expression: %w", expression, err)
	}
	t := &Timetable{expr: expr, zone: loc}
	if t.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, fmt.Errorf("%q matches no day of any year", expression)
	}
	return t, nil
}

// checkForm returns an error if the expression has neither five fields nor a known word. The
// library also accepts fields for seconds and years, which a schedule does not have.
func checkForm(expression string) error {
	fields := strings.Fields(expression)
	switch {
	case len(fields) == 1 && strings.HasPrefix(fields[0], "@"):
		for _, form := range shortForms {
			if fields[0] == form {
				return nil
			}
		}
		return fmt.Errorf("%q is not known; write five fields, or one of %s", expression, strings.Join(shortForms, ", "))
	case len(fields) != 5:
		return fmt.Errorf("a cron expression has five fields (minute, hour, day of month, month, day of week); %q has %d", expression, len(fields))
	}
	return nil
}

// loadZone returns the time zone with the given name. It refuses "Local", which can mean
// different time zones on different machines.
func loadZone(name string) (*time.Location, error) {
	if name == "Local" {
		return nil, errors.New(`the time zone "Local" differs between machines; write a name such as "Europe/Paris"`)
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf(`there is no time zone %q; write a name such as "Europe/Paris", or "UTC"`, name)
	}
	return loc, nil
}

// maxShift is longer than any change of a clock in the IANA database. The longest changes are 24
// hours: islands that crossed the date line skipped or repeated a day. Next begins its search
// maxShift early, because the wall-clock time of a later tick may be before the given time.
const maxShift = 26 * time.Hour

// Next returns the first tick after the given time, in UTC. It returns the zero time if there is
// none.
func (t *Timetable) Next(after time.Time) time.Time {
	expr := *t.expr // a copy, because its method Next changes it
	wall := asUTC(after.In(t.zone)).Add(-maxShift)
	for {
		wall = expr.Next(wall)
		if wall.IsZero() {
			return time.Time{}
		}
		if at := t.at(wall); at.After(after) {
			return at
		}
	}
}

// asUTC returns the time in UTC that has the same date and the same time of day as a given time.
func asUTC(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// The method `at` returns the point in time at which a clock in the time zone of t shows the time
// in the parameter `wall`. If the clock never shows that time, the method returns the end of the
// gap. If the clock shows that time twice, the method returns the first of the two points in time.
func (t *Timetable) at(wall time.Time) time.Time {
	guess := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), 0, t.zone)
	start, end := guess.ZoneBounds()
	switch shown := asUTC(guess); {
	case shown.After(wall): // the wall-clock time is in a gap, and `guess` is after the gap
		return start.UTC()
	case shown.Before(wall): // the wall-clock time is in a gap, and `guess` is before the gap
		return end.UTC()
	}
	if start.IsZero() {
		return guess.UTC()
	}
	_, offset := start.Add(-time.Second).Zone()
	if first := wall.Add(-time.Duration(offset) * time.Second); first.Before(start) && asUTC(first.In(t.zone)).Equal(wall) {
		return first.UTC()
	}
	return guess.UTC()
}
