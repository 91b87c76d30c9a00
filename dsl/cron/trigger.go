package cron

import (
	"strings"
	"time"
)

// triggerPrefix begins the trigger of each run that a schedule starts.
const triggerPrefix = "schedule "

// Trigger returns the text that the history of a run stores about its start by a schedule:
// "schedule NAME TICK". The tick is in UTC, in the form of RFC 3339.
func Trigger(schedule string, tick time.Time) string {
	return triggerPrefix + schedule + " " + tick.UTC().Format(time.RFC3339)
}

// TickOf returns the schedule and the tick in a text that Trigger returned. ok is false for the
// trigger of a run that something else started.
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
