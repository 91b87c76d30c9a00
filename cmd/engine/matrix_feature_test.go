package main

import "regexp"

// A matrixFeature is a workflow of testdata/matrix with one feature of the language. Its step "before" has
// an effect, and its step or group "at" is the feature.
type matrixFeature struct {
	name  string
	kids  int    // number of groups and child runs that are open while the feature is active
	shows string // what `engine explain` of the innermost runs says while the feature is active; a regular expression
	calls bool   // the engine may not die while the feature is active: only the timeout of its call would end it
	early bool   // its runs come before the first death of an engine: a dead engine keeps its slots for hours
	first bool   // a run with the same name and "-first" comes first: it holds what the run waits for
}

const (
	waitsFor   = "waits for signal"
	isParked   = "was parked at"
	undoFailed = "could not be undone altogether"
)

var matrixFeatures = []matrixFeature{
	{name: "slot", shows: "at waits for agent narrow", calls: true, first: true, early: true},
	{name: "wait", shows: waitsFor},
	{name: "typed", shows: waitsFor},
	{name: "timer", shows: "at waits until"},
	{name: "call", shows: "at runs: attempt", calls: true},
	{name: "call_once", shows: "at runs: attempt", calls: true},
	{name: "undoing", shows: "The undo of at runs", calls: true},
	{name: "value", shows: waitsFor},
	{name: "catch", shows: waitsFor},
	{name: "skipped", shows: waitsFor},
	{name: "inputs", shows: waitsFor},
	{name: "collect", shows: waitsFor},
	{name: "poll", shows: "the next iteration starts"},
	{name: "backoff", shows: "is tried again at"},
	{name: "cool_down", shows: "at cools down"},
	{name: "rate", shows: "at waits for agent slow"},

	{name: "deadline", shows: waitsFor},
	{name: "late", shows: isParked},
	{name: "pivot", shows: waitsFor},
	{name: "pivot_open", shows: "at runs: attempt", calls: true},
	{name: "pivot_parked", shows: isParked},
	{name: "none", shows: waitsFor},
	{name: "sensitive", shows: waitsFor},
	{name: "notify", shows: waitsFor},
	{name: "unique", shows: waitsFor},
	{name: "replace", shows: "It waits for", first: true},
	{name: "room", shows: "It waits for", first: true},
	{name: "event", shows: waitsFor},

	{name: "parked", shows: isParked},
	{name: "fail_when", shows: isParked},
	{name: "postcondition", shows: isParked},
	{name: "exhausted", shows: isParked},
	{name: "expression", shows: isParked},
	{name: "unknown", shows: isParked},
	{name: "unknown_pivot", shows: isParked},
	{name: "stuck", shows: undoFailed},
	{name: "undo_unknown", shows: undoFailed},

	{name: "declared", shows: waitsFor},
	{name: "child", kids: 1, shows: waitsFor},
	{name: "child_each", kids: 2, shows: waitsFor},
	{name: "child_parked", kids: 1, shows: isParked},
	{name: "child_stuck", kids: 1, shows: undoFailed},
	{name: "child_caught", kids: 1, shows: isParked},
	{name: "library", kids: 1, shows: waitsFor},

	{name: "each", shows: "at.*runs: attempt", calls: true},
	{name: "each_parked", shows: isParked},
	{name: "each_wait", shows: waitsFor},
	{name: "group", kids: 1, shows: waitsFor},
	{name: "group_each", kids: 2, shows: waitsFor},
	{name: "group_group", kids: 2, shows: waitsFor},
	{name: "group_child", kids: 2, shows: waitsFor},
	{name: "group_room", kids: 1, shows: "It waits for", first: true},
	{name: "group_parked", kids: 1, shows: isParked},
	{name: "group_unknown", kids: 4, shows: isParked},
	{name: "group_stuck", kids: 1, shows: undoFailed},
	{name: "group_call", kids: 1, shows: "in runs: attempt", calls: true},
}

// A matrixVerb is what a person does to a run. RUN is the name of the run, STEP is the step "at", or "in" for
// the run of a group or a child. MODULE is the directory of the feature.
type matrixVerb struct {
	name  string
	lines []string
	after []string // for the run that has ended
}

var matrixVerbs = []matrixVerb{
	{name: "cancel", lines: []string{"cancel RUN"}},
	{name: "leave", lines: []string{"cancel RUN --no-compensate --reason x"}},
	{name: "pause", lines: []string{"pause RUN", "resume RUN"}},
	{name: "paused", lines: []string{"pause RUN --reason x", "signal RUN go"}},
	{name: "paused-cancel", lines: []string{"pause RUN", "cancel RUN"}},
	{name: "extend", lines: []string{"resume RUN --extend 1h"}},
	{name: "retry", lines: []string{"retry RUN"}},
	{name: "retry-key", lines: []string{"retry RUN --new-key"}},
	{name: "retry-step", lines: []string{"retry RUN --step STEP"}},
	{name: "retry-extend", lines: []string{"retry RUN --extend 1h"}},
	{name: "compensate", lines: []string{"compensate RUN"}},
	{name: "undo-again", lines: []string{"compensate RUN --retry"}},
	{name: "undo-skip", lines: []string{"compensate RUN --skip --reason x"}},
	{name: "settle-done", lines: []string{`settle RUN --step STEP --succeeded --output {"value":1} --reason x`}},
	{name: "settle-not", lines: []string{"settle RUN --step STEP --not-done --reason x"}},
	{name: "settle-undone", lines: []string{"settle RUN --step STEP --undone --reason x"}},
	{name: "settle-late", lines: []string{"settle RUN --step STEP --from-late-reply --reason x"}},
	{name: "signal", lines: []string{"signal RUN go --id a", "signal RUN go --id a"}},
	{name: "signal-fail", lines: []string{"signal RUN go --fail no --reason x"}},
	{name: "signal-other", lines: []string{"signal RUN other"}},
	{name: "migrate-same", lines: []string{"migrate RUN --to MODULE --yes"}},
	{name: "migrate", lines: []string{"migrate RUN --to MODULE/next --dry-run", "migrate RUN --to MODULE/next --yes"}},
	{name: "restart", lines: []string{"restart RUN --from STEP --yes"}, after: []string{"restart RUN --from STEP --run-id RUN-again --yes"}},
}

// known has the pairs of a feature and a verb with a defect that is not mended, and the reason. The name is
// that of the run.
var known = map[string]string{}

// waitsForTime matches an explanation of a run that goes on at a later time. The test does not wait for that
// time, and cancels the run.
var waitsForTime = regexp.MustCompile(`waits until|tried again at|cools down|next iteration starts|waits for agent slow`)
