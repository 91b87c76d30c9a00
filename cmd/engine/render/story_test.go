package render_test

import (
	"time"

	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/story"
)

// start is when all stories begin.
var start = time.Date(2026, 3, 14, 10, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time {
	return start.Add(time.Duration(seconds * float64(time.Second)))
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

var order = render.Story{
	Run: "o-1042", Workflow: "order",
	Steps: []render.StepInfo{
		{Name: "reserve", Action: "inventory.reserve", Undo: true},
		{Name: "charge", Action: "payment.charge", After: []string{"reserve"}, Undo: true},
		{Name: "book", Action: "shipping.book", After: []string{"charge"}, Undo: true},
		{Name: "tell", Action: "slack.post", After: []string{"book"}},
	},
}

// keyed is a run that people know by its unique key.
var keyed = render.Story{
	Run: "r-7", Workflow: "stock", Key: "o-7",
	Steps: []render.StepInfo{{Name: "each", Action: "m.do", Undo: true}, {Name: "check", Action: "m.do", After: []string{"each"}}},
}

// A beat is a batch of facts that a view sees at once, or a moment at which
// nothing but time has passed.
type beat struct {
	now   time.Time
	facts []story.Fact
}

func value(json string) dsl.Value { return dsl.NewValue([]byte(json), nil, nil) }

func reserved(name string, t float64) []story.Fact {
	return []story.Fact{
		{Kind: story.FactAttemptFinished, At: at(t), Step: name, Action: "inventory.reserve", Purpose: story.PurposeDo, Attempt: 1, Of: 3, Status: "ok", Took: seconds(t - 0.1)},
		{Kind: story.FactStepFinished, At: at(t), Step: name, Attempt: 1, Status: "succeeded", Took: seconds(t - 0.1)},
	}
}

func began(step, action string, n, of int, t, by, stepBy float64) story.Fact {
	f := story.Fact{Kind: story.FactAttemptStarted, At: at(t), Step: step, Action: action, Purpose: story.PurposeDo, Attempt: n, Of: of, CompleteBy: at(by)}
	if stepBy > 0 {
		f.StepDeadline = at(stepBy)
	}
	return f
}

func undoOf(f story.Fact) story.Fact {
	f.Undo, f.Purpose = true, story.PurposeUndo
	f.StepDeadline, f.UndoDeadline = time.Time{}, f.StepDeadline
	return f
}

// prologue reserves two items and fails to charge once.
func prologue() []beat {
	return []beat{
		{at(0), []story.Fact{
			{Kind: story.FactRunCreated, At: at(0), RunDeadline: at(7200)},
			began(`reserve["mug"]`, "inventory.reserve", 1, 3, 0.1, 30.1, 0),
			began(`reserve["tee"]`, "inventory.reserve", 1, 3, 0.1, 30.1, 0),
		}},
		{at(0.3), reserved(`reserve["mug"]`, 0.3)},
		{at(0.4), append(reserved(`reserve["tee"]`, 0.4),
			story.Fact{Kind: story.FactStepFinished, At: at(0.4), Step: "reserve", Status: "succeeded", Took: seconds(0.4)},
			began("charge", "payment.charge", 1, 5, 0.4, 10.4, 120.4))},
		{at(1.6), []story.Fact{
			{Kind: story.FactAttemptFinished, At: at(1.6), Step: "charge", Action: "payment.charge", Purpose: story.PurposeDo, Attempt: 1, Of: 5, Status: "failed", Code: "unavailable", Message: "gateway 503", Took: seconds(1.2)},
			{Kind: story.FactRetryScheduled, At: at(1.6), Step: "charge", Attempt: 2, Of: 5, Until: at(3), Code: "unavailable", Message: "gateway 503"},
		}},
	}
}

// happy ends well, after a slow second try.
func happy() []beat {
	return append(prologue(),
		beat{at(3), []story.Fact{began("charge", "payment.charge", 2, 5, 3, 13, 120.4)}},
		beat{at(10.5), nil},
		beat{at(11), nil},
		beat{at(12), []story.Fact{
			{Kind: story.FactAttemptFinished, At: at(12), Step: "charge", Action: "payment.charge", Purpose: story.PurposeDo, Attempt: 2, Of: 5, Status: "ok", Took: seconds(9)},
			{Kind: story.FactStepFinished, At: at(12), Step: "charge", Attempt: 2, Status: "succeeded", Took: seconds(11.6)},
			began("book", "shipping.book", 1, 1, 12, 42, 0),
		}},
		beat{at(13), []story.Fact{
			{Kind: story.FactAttemptFinished, At: at(13), Step: "book", Action: "shipping.book", Purpose: story.PurposeDo, Attempt: 1, Of: 1, Status: "ok", Took: seconds(1)},
			{Kind: story.FactStepFinished, At: at(13), Step: "book", Attempt: 1, Status: "succeeded", Took: seconds(1)},
			{Kind: story.FactStepHeld, At: at(13), Step: "tell", Agent: "slack", Message: "circuit open", Until: at(33)},
		}},
		beat{at(33), []story.Fact{began("tell", "slack.post", 1, 3, 33, 63, 0)}},
		beat{at(34), []story.Fact{
			{Kind: story.FactAttemptFinished, At: at(34), Step: "tell", Action: "slack.post", Attempt: 1, Of: 3, Status: "failed", Code: "no_channel", Message: "no such channel", Took: seconds(1)},
			{Kind: story.FactStepFinished, At: at(34), Step: "tell", Attempt: 1, Status: "caught", Code: "no_channel", Message: "no such channel", Took: seconds(21)},
			{Kind: story.FactRunFinished, At: at(34), Status: "succeeded", Outputs: []story.NamedValue{
				{Name: "tracking", Value: value(`"1Z-999"`)},
				{Name: "token", Value: value(`"hunter2"`), Sensitive: true},
				{Name: "total", Value: value(`12345678901234567890.5`)},
				{Name: "weight", Problem: "order.hcl:9: Invalid index: the list is empty"},
			}},
		}})
}

// undone fails at booking; one undo fails for good.
func undone(lastUndo string) []beat {
	end := story.Fact{Kind: story.FactUndoFinished, At: at(9), Step: `reserve["tee"]`, Undo: true, Attempt: 2, Status: lastUndo, Took: seconds(2.9)}
	finish := story.Fact{Kind: story.FactRunFinished, At: at(9), Step: "book", Status: "compensated", Code: "no_carrier", Undone: 3}
	if lastUndo == "undo_failed" {
		end.Code, end.Message = "denied", "token expired"
		finish = story.Fact{
			Kind: story.FactRunParked, At: at(9), Step: "book", Status: "compensation_failed", Code: "no_carrier", Undone: 2, UndoBlocked: 1,
			UndoFailures: []story.UndoFailure{{Step: `reserve["tee"]`, Code: "denied", Message: "token expired"}},
		}
	}
	undo := func(step, action string, t, took float64) []story.Fact {
		return []story.Fact{
			{Kind: story.FactAttemptFinished, At: at(t), Step: step, Action: action, Undo: true, Purpose: story.PurposeUndo, Attempt: 1, Status: "ok", Took: seconds(took)},
			{Kind: story.FactUndoFinished, At: at(t), Step: step, Undo: true, Attempt: 1, Status: "undone", Took: seconds(took)},
		}
	}
	return append(prologue(),
		beat{at(3), []story.Fact{began("charge", "payment.charge", 2, 5, 3, 13, 120.4)}},
		beat{at(4), []story.Fact{
			{Kind: story.FactAttemptFinished, At: at(4), Step: "charge", Action: "payment.charge", Purpose: story.PurposeDo, Attempt: 2, Of: 5, Status: "ok", Took: seconds(1)},
			{Kind: story.FactStepFinished, At: at(4), Step: "charge", Attempt: 2, Status: "succeeded", Took: seconds(3.1)},
			began("book", "shipping.book", 1, 1, 4, 34, 0),
		}},
		beat{at(5), []story.Fact{
			{Kind: story.FactAttemptFinished, At: at(5), Step: "book", Action: "shipping.book", Purpose: story.PurposeDo, Attempt: 1, Of: 1, Status: "failed", Code: "no_carrier", Message: "no_carrier", Took: seconds(1)},
			{Kind: story.FactStepFinished, At: at(5), Step: "book", Attempt: 1, Status: "failed", Code: "no_carrier", Took: seconds(1)},
			{Kind: story.FactRunTurned, At: at(5), Step: "book", Code: "no_carrier"},
			{Kind: story.FactStepFinished, At: at(5), Step: "tell", Status: "cancelled"},
			{Kind: story.FactUndoStarted, At: at(5), Step: "charge", Action: "payment.refund", Undo: true},
			undoOf(began("charge", "payment.refund", 1, 0, 5, 35, 86405)),
		}},
		beat{at(5.4), append(undo("charge", "payment.refund", 5.4, 0.4),
			story.Fact{Kind: story.FactUndoStarted, At: at(5.4), Step: `reserve["mug"]`, Action: "inventory.release", Undo: true},
			undoOf(began(`reserve["mug"]`, "inventory.release", 1, 0, 5.4, 35.4, 86405)),
			story.Fact{Kind: story.FactUndoStarted, At: at(5.4), Step: `reserve["tee"]`, Action: "inventory.release", Undo: true},
			undoOf(began(`reserve["tee"]`, "inventory.release", 1, 0, 5.4, 35.4, 86405)))},
		beat{at(5.5), append(undo(`reserve["mug"]`, "inventory.release", 5.5, 0.1),
			story.Fact{Kind: story.FactAttemptFinished, At: at(5.5), Step: `reserve["tee"]`, Action: "inventory.release", Undo: true, Purpose: story.PurposeUndo, Attempt: 1, Status: "unknown", Code: "timeout", Took: seconds(0.1)},
			story.Fact{Kind: story.FactRetryScheduled, At: at(5.5), Step: `reserve["tee"]`, Undo: true, Attempt: 2, Until: at(7.5)})},
		beat{at(7.5), []story.Fact{undoOf(began(`reserve["tee"]`, "inventory.release", 2, 0, 7.5, 37.5, 86405))}},
		beat{at(9), []story.Fact{end, finish}},
	)
}

// doubts is about what is neither success nor failure: conditions, cool-downs,
// lookups, calls that only learn an output, effects that stay.
func doubts() []beat {
	do := func(kind story.FactKind, t float64, step string, change func(*story.Fact)) story.Fact {
		f := story.Fact{Kind: kind, At: at(t), Step: step, Action: "m.do", Purpose: story.PurposeDo, Attempt: 1, Of: 2}
		if kind == story.FactAttemptStarted {
			f.CompleteBy = at(t + 30)
		}
		change(&f)
		return f
	}
	is := func(status string) func(*story.Fact) {
		return func(f *story.Fact) { f.Status, f.Took = status, seconds(0.1) }
	}
	as := func(p story.Purpose, undo bool, status string) func(*story.Fact) {
		return func(f *story.Fact) {
			is(status)(f)
			f.Purpose, f.Undo, f.Of = p, undo, 0
		}
	}
	until := func(t float64, code, message string, p story.Purpose) func(*story.Fact) {
		return func(f *story.Fact) {
			f.Until, f.Code, f.Message, f.Purpose, f.Attempt = at(t), code, message, p, 2
		}
	}
	const start, end, retry = story.FactAttemptStarted, story.FactAttemptFinished, story.FactRetryScheduled
	return []beat{
		{at(0), []story.Fact{
			{Kind: story.FactRunCreated, At: at(0), Run: "r-7", Key: "o-7"},
			do(start, 0, "check", func(f *story.Fact) {}),
			{Kind: story.FactStepHeld, At: at(0), Step: `each["a"]`, Agent: "m", Message: "full"},
			{Kind: story.FactStepHeld, At: at(0), Step: `each["b"]`, Agent: "m"},
			{Kind: story.FactStepHeld, At: at(0), Step: `each["c"]`, Agent: "m", Message: "circuit open", Until: at(5)},
		}},
		{at(1), []story.Fact{do(end, 1, "check", is("ok")), do(retry, 1, "check", until(2, "postcondition_failed", "poor", story.PurposeDo))}},
		{at(2), []story.Fact{do(start, 2, "check", func(f *story.Fact) { f.Attempt = 2 })}},
		{at(3), []story.Fact{
			do(end, 3, "check", func(f *story.Fact) {
				is("failed")(f)
				f.Attempt, f.Code, f.Message = 2, "unavailable", "closed"
			}),
			do(retry, 3, "check", func(f *story.Fact) {
				until(900, "unavailable", "closed", story.PurposeDo)(f)
				f.Attempt, f.CoolDown = 1, true
			}),
		}},
		{at(14), nil},
		{at(900), []story.Fact{do(start, 900, "check", func(f *story.Fact) {})}},
		{at(901), []story.Fact{
			do(end, 901, "check", func(f *story.Fact) { is("unknown")(f); f.Code = "timeout" }),
			do(retry, 901, "check", until(903, "timeout", "", story.PurposeLookup)),
		}},
		{at(902), append(reserved(`each["a"]`, 902), append(reserved(`each["b"]`, 902), reserved(`each["c"]`, 902)...)...)},
		{at(903), []story.Fact{do(start, 903, "check", as(story.PurposeLookup, false, ""))}},
		{at(904), []story.Fact{
			do(end, 904, "check", as(story.PurposeLookup, false, "not_done")),
			{Kind: story.FactStepFinished, At: at(904), Step: "check", Status: "failed", Code: "timeout", Attempt: 3},
			{Kind: story.FactRunTurned, At: at(904), Step: "check", Code: "timeout"},
			{Kind: story.FactUndoFinished, At: at(904), Step: `each["a"]`, Undo: true, Status: "not_undone_by_declaration"},
			{Kind: story.FactUndoFinished, At: at(904), Step: `each["b"]`, Undo: true, Status: "left_as_is"},
			{Kind: story.FactUndoStarted, At: at(904), Step: `each["c"]`, Action: "m.undo", Undo: true},
			do(start, 904, `each["c"]`, as(story.PurposeLearn, true, "")),
		}},
		{at(905), []story.Fact{
			do(end, 905, `each["c"]`, as(story.PurposeLearn, true, "ok")),
			do(start, 905, `each["c"]`, func(f *story.Fact) {
				as(story.PurposeUndo, true, "")(f)
				f.Action, f.Of = "m.undo", dsl.Unbounded
			}),
		}},
		{at(906), []story.Fact{
			do(end, 906, `each["c"]`, as(story.PurposeUndo, true, "ok")),
			{Kind: story.FactUndoFinished, At: at(906), Step: `each["c"]`, Undo: true, Attempt: 1, Status: "undone", Took: seconds(2)},
			{Kind: story.FactRunFinished, At: at(906), Step: "check", Status: "compensated", Code: "timeout", Undone: 1, LeftAsIs: 1, Undeclared: 1, Kept: []string{`each["a"]`}},
		}},
	}
}

// hostile carries escapes in everything an agent can say (T20).
func hostile() []beat {
	const bad = "\x1b]0;owned\x07\x1b[2J\nfake: run succeeded\u202egnp\x00"
	return []beat{{at(0), []story.Fact{
		{Kind: story.FactRunCreated, At: at(0)},
		began(`reserve["`+bad+`"]`, "inventory.reserve", 1, 3, 0, 30, 0),
		{Kind: story.FactAttemptFinished, At: at(1), Step: `reserve["` + bad + `"]`, Attempt: 1, Of: 3, Status: "failed", Code: "e" + bad, Message: bad},
		{Kind: story.FactStepFinished, At: at(1), Step: `reserve["` + bad + `"]`, Status: "failed", Code: bad, Message: bad},
		{Kind: story.FactRunFinished, At: at(1), Step: bad, Status: "failed", Code: bad, Message: bad,
			Outputs: []story.NamedValue{{Name: "x", Value: value(`"\u001b[2J"`)}}},
	}}}
}
