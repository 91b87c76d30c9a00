package show

import (
	"fmt"
	"strings"

	"github.com/saga-engine/engine/cmd/engine/internal/history"
	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/story"
)

// Heading returns the lines about the run itself. They are above the table of steps.
func Heading(r *history.Run) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Run %s  workflow %s  %s\n", render.Clean(r.Row.Name), r.Row.WorkflowName, history.StatusText(r.Row))
	field := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-11s %s\n", name, render.Clean(fmt.Sprintf(format, args...)))
	}
	if r.Row.Key != "" {
		field("Key", "%s", r.Row.Key)
	}
	field("Definition", "%.12s", r.Row.Digest)
	field("Created", "%s by %s", words.Stamp(r.State.Run().Started.Time()), r.State.Run().StartedBy)
	if trigger := triggerText(r); trigger != "" {
		field("Trigger", "%s", trigger)
	}
	for _, text := range restarts(r) {
		field("Restarted", "%s", text)
	}
	if !r.State.Status().Final() {
		field("Owner", "%s", tablesOf(r).ownerText())
	}
	if l := r.State.Run().Line; l.Lift != 0 {
		field("Priority", "%d", l.Priority())
	}
	timeFields(r, field)
	if f := r.State.Failure(); f != (dsl.Failure{}) {
		field("Failure", "%s", strings.TrimPrefix(words.Join(": ", f.Step, f.Code, f.Message), ": "))
	}
	if reportsEffects(r.State) {
		field("Undone", "%d, %d left as is, %d not undone by declaration", int(r.State.Run().Undone), int(r.State.Run().Left), int(r.State.Run().Undeclared))
		if kept := story.KeptByDeclaration(r.State, r.Flow); len(kept) > 0 {
			field("Kept", "%s: compensation = \"none\"", render.KeptText(kept))
		}
	}
	failures, blocked := story.UndoFailures(r.State, r.Flow)
	for _, f := range failures {
		field("Undo failed", "%s", words.Join(": ", f.Step, f.Code, f.Message))
	}
	if blocked > 0 {
		field("Blocked", "%s not undone, because the undo of a later step failed", render.Count(blocked, "effect"))
	}
	if held := r.State.Held(); len(held) > 0 && !r.State.Status().Final() && !tablesOf(r).stopped() {
		for _, h := range held {
			field("Waits for", "%s", tablesOf(r).heldText(h))
		}
	}
	if r.KeyWait != nil {
		field("Waits for", "%s", r.KeyWait.Text())
	}
	if r.InLine != nil {
		field("Waits for", "%s", r.InLine.Text())
	}
	for _, line := range variableLines(r.State.Vars()) {
		field("Variable", "%s", line)
	}
	for _, line := range tablesOf(r).waitingLines() {
		field("Waiting", "%s", line)
	}
	for _, l := range r.Late {
		field("Late", "%s", l.Text())
	}
	for _, line := range noticeLines(r.Notices) {
		field("Notify", "%s", line)
	}
	for _, x := range r.Resets {
		field("Reset", "%s by %s: %s", words.Stamp(x.At), x.By, x.Reason)
	}
	if line := replyLine(r); line != "" {
		field("Replies", "%s", line)
	}
	if r.Refused != nil {
		field("Refused", "%s", refusedText(r.Refused))
	}
	for _, al := range r.Alerts {
		field("Alert", "%s %s", words.Stamp(al.At), words.Join(": ", al.Kind, al.Step, al.Code, al.Message))
	}
	return b.String()
}

// triggerText returns the text about what has started a run; "" = a person started it.
func triggerText(r *history.Run) string {
	if trigger := r.State.Run().Trigger; trigger != "manual" {
		return trigger
	}
	return ""
}

// timeFields prints the deadlines and the end of a run.
func timeFields(r *history.Run, field func(name, format string, args ...any)) {
	run, open := r.State.Run(), !r.State.Status().Final()
	if d := run.Deadline.Time(); !d.IsZero() && open {
		field("Deadline", "%s", words.Stamp(d))
	}
	if d := run.UndoDeadline.Time(); !d.IsZero() && open {
		field("Undo by", "%s", words.Stamp(d))
	}
	if f := run.Finished.Time(); !f.IsZero() {
		field("Finished", "%s, after %s", words.Stamp(f), render.Took(f.Sub(run.Started.Time())))
	}
}

// reportsEffects reports whether the heading says which effects of the run are left. The heading
// says this if the run has failed, or if it has succeeded but child runs have left effects in
// place.
func reportsEffects(s *machine.State) bool {
	r := s.Run()
	return s.Failure() != (dsl.Failure{}) || r.Left+r.Undeclared > 0
}
