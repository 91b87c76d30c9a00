package render

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/saga-engine/engine/engine/story"
)

// A Plain is a view that writes lines about the facts of a run, for pipes and log files.
type Plain struct {
	mu    sync.Mutex // protects writes to the field `out`
	out   io.Writer
	exit  func(story.Fact) int
	board *board
}

var _ View = (*Plain)(nil)

// NewPlain returns a Plain view that writes to out. The function `exit` returns the exit code with
// which a fact ends the command, or a negative number if the fact does not end it.
func NewPlain(out io.Writer, exit func(story.Fact) int) *Plain {
	return &Plain{out: out, exit: exit, board: newBoard(Story{})}
}

// Begin sets the run that the view shows. If this command did not create the run, Begin writes
// a line that says so.
func (p *Plain) Begin(s Story) {
	p.board = newBoard(s)
	if text := s.attached(); text != "" {
		p.write(text + "\n")
	}
}

// Facts writes the lines about the facts. A failed attempt and its retry are on one line. A
// successful attempt has no line, because the line about the end of its step shows it. But it has a
// line if the engine makes another attempt.
func (p *Plain) Facts(_ int, facts []story.Fact) {
	for i, f := range facts {
		p.board.apply(f)
		paired := i+1 < len(facts) && pairs(f, facts[i+1])
		switch {
		case !p.board.story.told(f):
			continue
		case f.Kind == story.FactAttemptFinished && f.Status == "ok" && !paired:
			continue
		case f.Kind == story.FactUndoStarted, f.Kind == story.FactStepFinished && len(p.board.at(f.Step, false).parts) > 0 && f.Status == "succeeded":
			continue
		case f.Kind == story.FactRetryScheduled && i > 0 && pairs(facts[i-1], f):
			continue
		case f.Kind == story.FactRunFinished:
			for _, d := range OutputProblems(f.Outputs) {
				p.line(f.At, "warning: "+Clean(d.Summary)+": "+Clean(d.Detail))
			}
		}
		line := Sentence(f, p.exit(f))
		if paired {
			line += pairText(f, facts[i+1])
		}
		p.line(f.At, line)
	}
}

// pairs reports whether a is the end of an attempt, and b is the retry that follows it.
func pairs(a, b story.Fact) bool {
	return a.Kind == story.FactAttemptFinished && b.Kind == story.FactRetryScheduled && a.Step == b.Step && a.Undo == b.Undo
}

// pairText returns the end of one line about two facts: the attempt a, and the retry b that follows
// it. If the attempt was successful, the text also says why the engine makes another attempt.
func pairText(a, b story.Fact) string {
	s := ""
	if a.Status == "ok" {
		s = prefixed(", but ", reason(b.Code, b.Message))
	}
	return s + "; " + retryText(b)
}

// Circuit writes a line about the changed state of a circuit.
func (p *Plain) Circuit(c Circuit) {
	p.line(c.At, circuitText(c)+untilText(", next probe at ", c.Until, c.At))
}

// Note writes a remark on a line of its own.
func (p *Plain) Note(text string) { p.write(Clean(text) + "\n") }

// manyStill is the highest number of steps that have a "still running" line each. If more
// steps are running, one line counts them.
const manyStill = 8

// Tick writes the "still running" lines that are due at the time in the parameter `now`.
func (p *Plain) Tick(now time.Time) {
	if !p.board.story.told(story.Fact{}) {
		return
	}
	rows := p.board.still(now)
	if len(rows) > manyStill {
		p.line(now, fmt.Sprintf("%d steps still running, among them %s", len(rows), Clean(rows[0].name)))
		return
	}
	for _, r := range rows {
		p.line(now, stillText(r, now))
	}
}

// End does nothing, because the view never changes the lines that it has written.
func (p *Plain) End() {}

// Write writes log lines between the lines of the view.
func (p *Plain) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(b)
}

func (p *Plain) line(at time.Time, text string) {
	p.write(fmt.Sprintf("%s %s %s\n", at.UTC().Format("15:04:05Z"), Clean(p.board.story.Name()), text))
}

// write writes s. It ignores errors, because the run must continue even if nothing reads the
// output.
func (p *Plain) write(s string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = io.WriteString(p.out, s)
}

func stillText(r *row, now time.Time) string {
	f := story.Fact{Purpose: r.purpose, Attempt: r.attempt, Of: r.of}
	if r.purpose == story.PurposeLearn {
		f.Attempt, f.Of = 0, 0
	}
	s := Clean(r.name) + ": still "
	switch r.phase {
	case phaseHeld:
		s += heldText(r.agent, reason(r.code, r.message)) + untilText(" until ", r.until, now)
	case phaseBackoff:
		s += waitText(r, f) + untilText(", next at ", r.until, now)
	default:
		s += "running, " + attemptOf(f) + untilText(", complete by ", r.by, now)
	}
	what := ", step by "
	if r.undo {
		what = ", undo by "
	}
	return s + untilText(what, r.limit, now)
}

// waitText returns a text about the row r during a pause. The text says what follows the pause,
// such as a retry.
func waitText(r *row, f story.Fact) string {
	switch {
	case r.purpose == story.PurposeLookup:
		return "waiting to look up what became of it"
	case r.purpose == story.PurposeLearn:
		return "waiting for another " + attemptOf(f)
	case r.coolDown:
		return "cooling down"
	case r.attempt == 0:
		return "waiting to try"
	}
	return "waiting to retry after " + attemptOf(f)
}

func circuitText(c Circuit) string {
	s := "circuit " + Clean(c.Agent) + " " + Clean(c.State)
	if c.State == "closed" && c.Threshold > 0 && c.Failures > 0 {
		s += fmt.Sprintf(" (%d of %d failures)", c.Failures, c.Threshold)
	}
	return s
}
