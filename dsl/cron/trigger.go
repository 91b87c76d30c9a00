package cron

import (
	"strings"
	"time"
)

// triggerPrefix is the beginning of the text that Trigger returns.
const triggerPrefix = "schedule "

// Trigger returns the text with which the history of a run records that a schedule has started
// the run: "schedule NAME TICK". The tick is in UTC, in the form of RFC 3339.
func Trigger(schedule string, tick time.Time) string {
	return triggerPrefix + schedule + " " + tick.UTC().Format(time.RFC3339)
}

// TickOf returns the schedule and the tick in a text that Trigger returned. The result `ok` is
// false for any other text: then no schedule has started the run.
func TickOf(trigger string) (schedule string, tick time.Time, ok bool) {
	rest, found := strings.CutPrefix(trigger, triggerPrefix)
	if !found {
		return "", time.Time{}, false
	}
	schedule, text, _ := strings.Cut(rest, " ")
	tick, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return "", time.Time{}, false
	}
	return schedule, tick, true
}
