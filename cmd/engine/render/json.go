package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/story"
)

// StreamVersion is the version of the stream's format. The first line of the stream shows it.
const StreamVersion = "1.0"

// A JSON is a view that writes one JSON object on each line. Each object has the common fields of
// Terraform's JSON output, such as @level. The field "type" holds the kind of fact. The view
// escapes characters that could control a terminal.
type JSON struct {
	out    io.Writer
	exit   func(story.Fact) int
	now    func() time.Time
	binary string
	run    string
	begun  bool
}

var _ View = (*JSON)(nil)

// NewJSON returns a JSON view that writes to out. The parameter `version` is the version of the
// program. The function `exit` returns the exit code with which a fact ends the command, or a
// negative number if the fact does not end it. The function `now` is a clock: it gives the time for
// lines that are not about facts.
func NewJSON(out io.Writer, version string, exit func(story.Fact) int, now func() time.Time) *JSON {
	return &JSON{out: out, exit: exit, now: now, binary: version}
}

// line is one object of the stream. The JSON has the fields in this order.
type line struct {
	Level     string `json:"@level"`
	Message   string `json:"@message"`
	Module    string `json:"@module"`
	Timestamp string `json:"@timestamp"`
	Type      string `json:"type"`

	UI     string `json:"ui,omitempty"`
	Engine string `json:"engine,omitempty"`

	Seq     int    `json:"seq,omitempty"`
	Run     string `json:"run,omitempty"`
	Step    string `json:"step,omitempty"`
	Attempt int    `json:"attempt,omitempty"`

	Workflow string        `json:"workflow,omitempty"`
	Key      string        `json:"key,omitempty"`
	Action   string        `json:"action,omitempty"`
	Agent    string        `json:"agent,omitempty"`
	State    string        `json:"state,omitempty"`
	Purpose  story.Purpose `json:"purpose,omitempty"`
	// Largest number of attempts, or the value Unbounded.
	Of         any    `json:"of,omitempty"`
	Iteration  int    `json:"iteration,omitempty"`
	Iterations int    `json:"max_iterations,omitempty"`
	Undo       bool   `json:"undo,omitempty"`
	Status     string `json:"status,omitempty"`
	ExitCode   *int   `json:"exit_code,omitempty"`
	// Through has the name of the child run, at any depth, because of which the run needs a person.
	Through []string `json:"needs_person_through,omitempty"`
	Code    string   `json:"code,omitempty"`
	// Reason is the message of the fact: the message of a failure, or the reason of a verb or a
	// signal, for example. The field Message holds a sentence about the whole fact.
	Reason     string            `json:"message,omitempty"`
	NotAgain   string            `json:"not_repeated,omitempty"`
	TookMillis *int64            `json:"took_ms,omitempty"`
	CompleteBy *time.Time        `json:"complete_by,omitempty"`
	Until      *time.Time        `json:"until,omitempty"`
	CoolDown   bool              `json:"cool_down,omitempty"`
	Outputs    map[string]output `json:"outputs,omitempty"`
	Undone     *int              `json:"undone,omitempty"`
	Failures   []undoFailure     `json:"undo_failures,omitempty"`
	Blocked    *int              `json:"undo_blocked,omitempty"`
	LeftAsIs   *int              `json:"left_as_is,omitempty"`
	Undeclared int               `json:"not_undone_by_declaration,omitempty"`
	// Kept has the names of the steps and instances whose effects stay.
	Kept   []string `json:"kept_by_declaration,omitempty"`
	By     string   `json:"by,omitempty"`
	Signal string   `json:"signal,omitempty"`
	// If Known is true, the run had accepted a signal with the same id before.
	Known      bool             `json:"known,omitempty"`
	Awaits     []string         `json:"awaits,omitempty"` // signals for which the step waits
	Diagnostic *diag.Diagnostic `json:"diagnostic,omitempty"`

	StepDeadline         *time.Time `json:"step_deadline,omitempty"`
	UndoDeadline         *time.Time `json:"undo_deadline,omitempty"`
	RunDeadline          *time.Time `json:"run_deadline,omitempty"`
	CompensationDeadline *time.Time `json:"compensation_deadline,omitempty"`
}

// Unbounded is the JSON value for a number of attempts without a limit.
const Unbounded = "unbounded"

// Attempts returns the JSON value for a number of attempts: n, or Unbounded if there is no limit.
func Attempts(n int) any {
	if n == dsl.Unbounded {
		return Unbounded
	}
	return n
}

type undoFailure struct {
	Step    string `json:"step"`
	Code    string `json:"code"`
	Message string `json:"message,omitempty"`
}

func undoFailures(all []story.UndoFailure) []undoFailure {
	out := make([]undoFailure, 0, len(all))
	for _, u := range all {
		out = append(out, undoFailure(u))
	}
	return out
}

type output struct {
	Sensitive bool            `json:"sensitive"`
	Value     json.RawMessage `json:"value"`
	// Problem says why the value could not be evaluated; "" = no problem.
	Problem string `json:"problem,omitempty"`
}

// OutputProblems returns a warning for each output that could not be evaluated.
func OutputProblems(values []story.NamedValue) diag.Diagnostics {
	var out diag.Diagnostics
	for _, v := range values {
		if v.Problem != "" {
			out = append(out, diag.Diagnostic{
				Severity: diag.SeverityWarning, Summary: fmt.Sprintf("Output %q could not be evaluated", v.Name),
				Detail: "It is null. " + strings.TrimSuffix(v.Problem, ".") + ".",
			})
		}
	}
	return out
}

// Outputs returns the outputs of a run as JSON shows them. The value of a sensitive output is
// null.
func Outputs(values []story.NamedValue) map[string]any {
	out := map[string]any{}
	for name, o := range outputs(values) {
		out[name] = o
	}
	return out
}

func outputs(values []story.NamedValue) map[string]output {
	if len(values) == 0 {
		return nil
	}
	out := map[string]output{}
	for _, v := range values {
		o := output{Sensitive: v.Sensitive || len(v.Value.Sensitive()) > 0, Value: json.RawMessage("null"), Problem: v.Problem}
		if !o.Sensitive {
			o.Value = v.Value.JSON()
		}
		out[v.Name] = o
	}
	return out
}

// Version writes the first line of the stream. Later calls do nothing.
func (j *JSON) Version() {
	if j.begun {
		return
	}
	j.begun = true
	j.write(line{Message: "engine " + j.binary, Type: "version", UI: StreamVersion, Engine: j.binary}, j.now())
}

// Begin sets the run that the view shows. If this command did not create the run, Begin writes
// a line that says so.
func (j *JSON) Begin(s Story) {
	j.Version()
	j.run = s.Run
	if s.Attached {
		j.write(line{Type: "run_attached", Message: "attached to run " + s.Run, Run: s.Run, Workflow: s.Workflow, Key: s.Key, Status: s.Status}, j.now())
	}
}

// Facts writes one object for each fact.
func (j *JSON) Facts(first int, facts []story.Fact) {
	j.Version()
	for i, f := range facts {
		exit := j.exit(f)
		l := line{
			Type: string(f.Kind), Message: Sentence(f, exit), Level: level(f),
			Seq: first + i, Run: j.run, Step: f.Step, Attempt: f.Attempt,
			Key: f.Key, Action: f.Action, Agent: f.Agent, Purpose: f.Purpose, Undo: f.Undo, CoolDown: f.CoolDown, Status: f.Status, Code: f.Code, Reason: f.Message,
			Iteration: f.Iteration, Iterations: f.Iterations,
			CompleteBy: timeOrNil(f.CompleteBy), Until: timeOrNil(f.Until),
			StepDeadline: timeOrNil(f.StepDeadline), UndoDeadline: timeOrNil(f.UndoDeadline),
			RunDeadline: timeOrNil(f.RunDeadline), CompensationDeadline: timeOrNil(f.CompensationDeadline),
			Undeclared: f.Undeclared, Kept: f.Kept, By: f.By, Signal: f.Signal, Known: f.Known, Awaits: f.Awaits,
		}
		if f.Of != 0 {
			l.Of = Attempts(f.Of)
		}
		switch f.Kind {
		case story.FactAttemptFinished, story.FactStepFinished, story.FactUndoFinished:
			l.NotAgain = string(f.NotRepeated)
			ms := f.Took.Milliseconds()
			l.TookMillis = &ms
		case story.FactRunParked:
			if len(f.UndoFailures) > 0 {
				l.Failures, l.Undone, l.Blocked = undoFailures(f.UndoFailures), &f.Undone, &f.UndoBlocked
			}
		case story.FactRunFinished:
			j.Diagnostics(OutputProblems(f.Outputs))
			l.Outputs = outputs(f.Outputs)
			l.Undone, l.LeftAsIs = &f.Undone, &f.LeftAsIs
		}
		if exit >= 0 {
			l.ExitCode = &exit
		}
		j.write(l, f.At)
	}
}

// Circuit writes an object about the changed state of a circuit.
func (j *JSON) Circuit(c Circuit) {
	j.Version()
	l := line{Type: "circuit_changed", Message: circuitText(c), Agent: c.Agent, State: c.State, Until: timeOrNil(c.Until)}
	if c.State == "open" {
		l.Level = "warn"
	}
	j.write(l, c.At)
}

// Note writes a remark as a diagnostic of severity info.
func (j *JSON) Note(text string) {
	j.Diagnostics(diag.Diagnostics{{Severity: diag.SeverityInfo, Summary: text}})
}

// NeedsPerson writes the object that ends the stream if the run needs a person because of a child
// run. No fact of the run itself says so. The parameter `text` is a sentence for people, `child` is
// the name of the child run, and `exit` is the exit code of the command.
func (j *JSON) NeedsPerson(text, child string, exit int) {
	j.Version()
	j.write(line{Level: "error", Type: "needs_person", Message: Clean(text), Run: j.run, ExitCode: &exit, Through: []string{child}}, j.now())
}

// Diagnostics writes one object for each diagnostic.
func (j *JSON) Diagnostics(diags diag.Diagnostics) {
	j.Version()
	for i := range diags {
		d := &diags[i]
		l := line{Type: "diagnostic", Message: d.Severity.String() + ": " + Clean(d.Summary), Run: j.run, Diagnostic: d}
		switch d.Severity {
		case diag.SeverityError:
			l.Level = "error"
		case diag.SeverityWarning:
			l.Level = "warn"
		}
		j.write(l, j.now())
	}
}

// Tick does nothing: a program that reads the lines has its own clock.
func (j *JSON) Tick(time.Time) {}

// End does nothing.
func (j *JSON) End() {}

// write writes the line l with the time in the parameter `at`. It ignores errors, because the run
// must continue even if nothing reads the output.
func (j *JSON) write(l line, at time.Time) {
	if l.Level == "" {
		l.Level = "info"
	}
	l.Module = "engine.ui"
	l.Timestamp = at.UTC().Format("2006-01-02T15:04:05.000000Z")
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(l); err != nil { // a value is not JSON: write the line without the outputs
		l.Outputs = nil
		_ = enc.Encode(l)
	}
	_, _ = io.WriteString(j.out, EscapeJSON(b.String()))
}

// EscapeJSON returns text with \u escapes in place of the characters from U+007F on that Clean
// would replace, except U+FFFD. In JSON these characters can only be inside strings, so the meaning
// stays the same.
func EscapeJSON(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r >= 0x7f && Clean(string(r)) != string(r) && r != utf8.RuneError {
			fmt.Fprintf(&b, "\\u%04x", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func level(f story.Fact) string {
	switch {
	case f.Kind == story.FactAttemptFinished && f.Status != "ok", f.Kind == story.FactRunTurned:
		return "warn"
	case f.Kind == story.FactStepFinished && f.Status == status.StepFailed.String(),
		f.Kind == story.FactUndoFinished && f.Status == status.StepUndoFailed.String(),
		f.Kind == story.FactRunParked,
		f.Kind == story.FactRunFinished && f.Status != status.RunSucceeded.String():
		return "error"
	}
	return "info"
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
