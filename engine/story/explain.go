package story

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
)

// An Explanation says why a run has its present status, what will change the status next, and
// when.
type Explanation struct {
	Sentences []string
	// Next is the time at which the run continues without any other event. Zero means that the run
	// has ended, or that another event must happen first. The field Sentences says which event.
	Next time.Time
	// NeedsHuman says that only a person can make the run continue.
	NeedsHuman bool
	// Remedies are command lines that would be accepted now. A person must replace the
	// words in capitals.
	Remedies []string
}

// String returns the sentences as one paragraph.
func (e Explanation) String() string { return strings.Join(e.Sentences, " ") }

// maxStepsDescribed is the largest number of steps that an explanation describes one by one.
const maxStepsDescribed = 5

// Explain explains the run's present status. The parameter `wf` must be the run's workflow. The
// parameter `now` is the present time of the store's clock.
func Explain(s *machine.State, wf *dsl.Workflow, now time.Time) Explanation {
	x := &explainer{wf: wf, s: s, now: now}
	r := s.Run()
	switch {
	case r.ID == 0:
		x.say("The run has not been accepted yet.")
	case r.State.Final():
		x.ended()
	default:
		x.open()
	}
	return x.out
}

type explainer struct {
	wf  *dsl.Workflow
	s   *machine.State
	now time.Time
	out Explanation
}

func (x *explainer) say(format string, args ...any) {
	x.out.Sentences = append(x.out.Sentences, fmt.Sprintf(format, args...))
}

// ended explains a run that has ended.
func (x *explainer) ended() {
	r := x.s.Run()
	at := x.when(r.Finished)
	switch r.State {
	case status.RunSucceeded:
		x.say("The run has succeeded at %s; nothing is left to do.", at)
	case status.RunFailed:
		x.say("The run has failed at %s%s; nothing had to be undone.", at, because(r.Failure))
	case status.RunCompensated:
		x.say("The run was undone and ended at %s%s: %s undone.", at, because(r.Failure), effects(int(r.Undone)))
	default:
		why := because(r.Failure)
		if r.Failure.Code == machine.CodeCancelled && r.Failure.Message == "" {
			why = "" // the sentence already says that the run was cancelled
		}
		x.say("The run was cancelled and ended at %s%s: %s undone.", at, why, effects(int(r.Undone)))
	}
	x.repetition()
	if r.Left > 0 {
		x.say("%s left in place by an operator.", sentence(effects(int(r.Left))))
	}
	if r.Undeclared > 0 {
		x.say("%s not undone because the workflow says so.", sentence(effects(int(r.Undeclared))))
	}
}

// open explains a run that has not ended.
func (x *explainer) open() {
	r := x.s.Run()
	x.out.NeedsHuman = x.s.Run().State.NeedsHuman()
	// If the run was parked because engines died, no engine continues it, so Next stays zero.
	if !r.Lost() {
		x.out.Next, _ = x.s.NextDue()
	}
	switch r.State {
	case status.RunQueued:
		x.say("The run is queued: nothing of it has started.")
	case status.RunPaused:
		x.say("The run was paused%s%s; nothing starts, but deadlines go on.", x.by(r.PausedBy, r.PausedAt), reason(r.PauseWhy))
		if r.Parent.Run != 0 && r.PausedBy == r.Parent.Name {
			x.say("It is a part of the run %s, and goes on with it.", r.Parent.Name)
			if r.PauseWhy == (machine.PauseChild{Parked: true}).Why() {
				x.out.Remedies = append(x.out.Remedies, "engine explain "+word(r.Parent.Name))
				break
			}
			x.remedy(machine.ResumeRequested{}, "resume %s", r.Parent.Name)
			break
		}
		x.remedy(machine.ResumeRequested{}, "resume %s", x.run())
	case status.RunParked:
		if r.Parked {
			x.say("The run was parked at %s%s: nothing starts until a person says how it goes on.", x.when(r.ParkedAt), because(r.Failure))
		}
	case status.RunWaiting:
		x.say("The run waits: no agent works for it.")
	case status.RunCompensating:
		x.say("The run is being undone since %s%s.", x.when(r.UndoStarted), because(r.Failure))
	case status.RunCompensationFailed:
		x.say("The run could not be undone altogether%s: an undo has failed, and a person has to say how it goes on.", because(r.Failure))
	default:
		x.say("The run is %s.", r.State)
	}
	if r.Lost() {
		x.say("The run was parked at %s%s: no engine touches it until a person says how it goes on.", x.when(r.LostAt), because(machine.LostFailure(r)))
	}
	if r.Held() && r.Phase == model.PhaseUndo {
		x.say("It is being undone%s.", because(r.Failure))
	}
	x.repetition()
	if r.Turning {
		x.say("Whether it turns back%s is decided when the outcome of its pivot is known.", because(r.Failure))
	}
	x.steps()
	x.undos()
	x.limits()
	x.verbs()
	x.overdue()
}

// repetition adds a sentence that says why the call that made the run fail was not repeated. It
// adds nothing if there is no reason to show.
func (x *explainer) repetition() {
	blamed := x.s.Run().Failure.Step
	if blamed == "" {
		return
	}
	for i, n := range x.s.Nodes() {
		if n.Of() >= len(x.wf.Steps) || x.wf.Steps[n.Step].Name != blamed {
			continue
		}
		settings, err := x.wf.Steps[n.Step].Settings(&dsl.Scope{Vars: x.s.Run().Vars.V})
		if err != nil {
			// The step's settings depend on results of other steps, so no reason can be found.
			return
		}
		if why := notRepeated(x.wf.Steps[n.Step], settings, n).Because(model.ActionName(x.wf, n, model.CallDo)); why != "" {
			x.say("%s was not repeated, because %s.", model.NodeName(x.wf, i, n), why)
			return
		}
	}
}

// steps adds a sentence for each step that runs or waits, for at most maxStepsDescribed steps. One
// more sentence counts the other ones.
func (x *explainer) steps() {
	told, more := 0, 0
	for i, n := range x.s.Nodes() {
		text := x.step(i, n)
		switch {
		case text == "":
		case told == maxStepsDescribed:
			more++
		default:
			told++
			x.say("%s", text)
		}
	}
	if more > 0 {
		x.say("%d more of its steps are under way or wait.", more)
	}
}

// undos adds sentences about two kinds of undos: undos that have failed, and undos that wait for a
// failed undo.
func (x *explainer) undos() {
	if x.s.Run().Phase != model.PhaseUndo {
		return
	}
	failed, blocked := UndoFailures(x.s, x.wf)
	for k, f := range failed {
		if k == maxStepsDescribed {
			x.say("%d more undos have failed.", len(failed)-k)
			break
		}
		x.say("The undo of %s has failed%s.", f.Step, because(dsl.Failure{Code: f.Code, Message: f.Message}))
	}
	if blocked > 0 {
		x.say("%s in place because their undo comes after: %s.", sentence(effects(blocked)), x.blocked())
	}
}

// blocked returns the names of the steps that cannot be undone yet, because the undo of another
// step must come first. It names at most maxStepsDescribed steps. For the other ones, it adds the
// words "and others".
func (x *explainer) blocked() string {
	var names []string
	for i, n := range x.s.Nodes() {
		step := x.wf.Steps[n.Step]
		if !n.Expanded && n.Undo == model.UndoPending && n.OwnEffect() != status.EffectNone && step.Undo != nil && !step.NoUndo {
			if len(names) == maxStepsDescribed {
				return strings.Join(names, ", ") + " and others"
			}
			names = append(names, model.NodeName(x.wf, i, n))
		}
	}
	return strings.Join(names, ", ")
}

// limits adds sentences about the time by which a step must have begun (StartBy), and about the
// deadline that applies now.
func (x *explainer) limits() {
	r := x.s.Run()
	if r.MustStart() {
		x.say("If no step has begun at %s, the run fails with not_started.", x.when(r.StartBy))
	}
	switch {
	case r.Overdue && r.Phase == model.PhaseForward:
		x.say("It is overdue: its deadline was %s.", x.when(r.Deadline))
	case r.DeadlineRuns() && (r.Passed || r.Parked):
		x.say("Its deadline is %s; then it is reported as overdue.", x.when(r.Deadline))
	case r.DeadlineRuns():
		then := "it turns back"
		if x.wf.CompensationMode == dsl.ModeManual {
			then = "it is parked"
		}
		x.say("Its deadline is %s; then %s.", x.when(r.Deadline), then)
	case r.Phase == model.PhaseUndo && !r.UndoExpired && !r.Stuck && r.UndoDeadline != 0:
		x.say("All undo work has to be done by %s.", x.when(r.UndoDeadline))
	}
}

// overdue adds a sentence if the run has been due for more than 5 s and no engine has acted.
func (x *explainer) overdue() {
	if next := x.out.Next; !next.IsZero() && x.now.Sub(next) > 5*time.Second {
		x.say("This was due at %s and no engine has acted on it yet.", x.when(model.ToInstant(next)))
	}
}

// when returns a text with a time and its distance from the present time.
func (x *explainer) when(at model.Instant) string {
	t := at.Time()
	text := t.Format("2006-01-02 15:04:05Z")
	if y, m, d := t.Date(); sameDay(x.now, y, m, d) {
		text = t.Format("15:04:05Z")
	}
	far := t.Sub(x.now)
	switch {
	case far == 0:
		return text + " (now)"
	case far < 0:
		return text + " (" + span(-far) + " ago)"
	}
	return text + " (in " + span(far) + ")"
}

func sameDay(t time.Time, year int, month time.Month, day int) bool {
	y, m, d := t.UTC().Date()
	return y == year && m == month && d == day
}

// span returns a duration as text. A short duration is rounded to 0.1 s, a longer one to
// seconds or minutes.
func span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return d.Round(time.Second).String()
	}
	return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
}

// because returns a failure as text for the end of a sentence, with the step, code and message. It
// returns "" if the failure has neither a code nor a message.
func because(f dsl.Failure) string {
	text := f.Code
	if f.Message != "" {
		text += ": " + strings.TrimSuffix(f.Message, ".")
	}
	switch {
	case f.Step != "" && text != "":
		return fmt.Sprintf(" because %s failed (%s)", f.Step, text)
	case text != "":
		return " (" + text + ")"
	}
	return ""
}

func reason(text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf(", who said %q", text)
}

func (x *explainer) by(who string, at model.Instant) string {
	text := ""
	if who != "" {
		text = " by " + who
	}
	if at != 0 {
		text += " at " + x.when(at)
	}
	return text
}

func effects(n int) string {
	if n == 1 {
		return "1 effect is"
	}
	return fmt.Sprintf("%d effects are", n)
}

// sentence returns the parameter `text` with a capital first letter.
func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// run returns the run's name, quoted if a shell would not read it as one word.
func (x *explainer) run() string { return word(x.s.Run().Name) }

// word returns a text, quoted if a shell would not read the text as one word.
func word(text string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._:/-@=", r)
	}
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool { return !plain(r) }) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// remedy adds a command line to Remedies if the verb would be accepted now, and if Remedies does
// not have the line yet. It reports whether it added the line.
func (x *explainer) remedy(ev machine.Event, format string, args ...any) bool {
	line := "engine " + fmt.Sprintf(format, args...)
	if slices.Contains(x.out.Remedies, line) || !x.accepted(ev) {
		return false
	}
	x.out.Remedies = append(x.out.Remedies, line)
	return true
}

// accepted reports whether a verb would be accepted now. It calls machine.Decide with a copy of
// the state.
func (x *explainer) accepted(ev machine.Event) bool {
	at := x.now
	if last := x.s.Last(); last.After(at) {
		at = last
	}
	rec := machine.Decide(x.wf, x.s.Clone(), machine.Input{At: at, Event: ev})
	r, refused := rec.Refused()
	if settle, ok := ev.(machine.SettleRequested); ok && refused && settle.As == machine.SettleSucceeded {
		// If the verb was refused only because it has no output, it counts as accepted: the person
		// will add the output.
		return r.WantsOutput()
	}
	return !refused
}
