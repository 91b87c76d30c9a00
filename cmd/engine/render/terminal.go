package render

import (
	"fmt"
	"io"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/story"
)

// TerminalOptions describe the terminal on which a view draws.
type TerminalOptions struct {
	// Size returns the columns and lines of the terminal; nil = 80 by 24.
	Size func() (columns, lines int)
	// Now returns the current time. The view uses it to draw not too often. nil = time.Now.
	Now func() time.Time
	// Exit returns the exit code with which a fact ends the command, or a negative number if the
	// fact does not end it. If Exit is nil, no fact ends the command.
	Exit  func(story.Fact) int
	Color bool
	ASCII bool // the terminal can show only ASCII characters
}

// A Terminal is a view that draws a block of lines in place: the run's header, a line for each
// step, and a summary. When the screen is full, the lines of ended steps leave the block and scroll
// up. The header stays in the block.
type Terminal struct {
	mu    sync.Mutex // protects all fields below
	out   io.Writer
	opts  TerminalOptions
	board *board
	now   time.Time
	// Width of each line of the block on the screen, in columns; nil = no block is drawn.
	drawn   []int
	columns int       // columns of the screen at the last drawing
	flown   int       // number of rows of board.ended that have scrolled up
	height  int       // largest number of lines of the block
	last    time.Time // time of the last drawing
	// Sentence that says how the run has ended, or what it waits for; "" = none yet.
	verdict string
	// If `whole` is true, this is the last drawing, so the last line of the block is not shortened.
	whole  bool
	closed bool
}

var _ View = (*Terminal)(nil)

// NewTerminal returns a Terminal view that writes to out.
func NewTerminal(out io.Writer, o TerminalOptions) *Terminal {
	if o.Size == nil {
		o.Size = func() (int, int) { return 80, 24 }
	}
	if o.Exit == nil {
		o.Exit = func(story.Fact) int { return -1 }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Terminal{out: out, opts: o, board: newBoard(Story{})}
}

// Begin sets the run that the terminal shows. If this command did not create the run, Begin
// prints a line that says so.
func (t *Terminal) Begin(s Story) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.board = newBoard(s)
	if text := s.attached(); text != "" {
		t.above(strings.ToUpper(text[:1]) + text[1:] + ".")
	}
}

// Facts updates the board with the facts. Then it draws the block again. But if the last drawing
// was less than redrawEvery ago, and no fact ends the command, Facts does not draw.
func (t *Terminal) Facts(_ int, facts []story.Fact) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range facts {
		t.board.apply(f)
		for _, d := range OutputProblems(f.Outputs) {
			t.above("Warning: " + Clean(d.Summary) + ": " + Clean(d.Detail))
		}
		if exit := t.opts.Exit(f); exit >= 0 {
			t.last = time.Time{} // zero = draw at once, without the pause redrawEvery
			t.verdict = Sentence(f, exit)
		}
		if f.At.After(t.now) {
			t.now = f.At
		}
	}
	if t.opts.Now().Sub(t.last) >= redrawEvery {
		t.redraw()
	}
}

// Circuit shows the changed state of a circuit in the summary.
func (t *Terminal) Circuit(c Circuit) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.board.circuits[c.Agent] = c
	t.redraw()
}

// Note shows a remark above the block.
func (t *Terminal) Note(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.above(Clean(text))
}

// Tick draws the block again, so that it shows times relative to the time in the parameter `now`.
func (t *Terminal) Tick(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now = now
	t.redraw()
}

// End draws the block for the last time and leaves it on the screen.
func (t *Terminal) End() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.whole = true
	t.redraw()
	t.closed, t.drawn = true, nil
}

// Write writes log lines above the block.
func (t *Terminal) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.above(strings.TrimRight(string(b), "\n"))
	return len(b), nil
}

// above is the method that prints a text above the block of lines that this view draws. It erases
// the block, writes the text in its place, and draws the block again below the text.
func (t *Terminal) above(text string) {
	var b strings.Builder
	t.erase(&b)
	b.WriteString(text + "\n")
	t.write(b.String())
	t.redraw()
}

// erase adds to b the control sequence that removes the block. If the screen has become narrower
// since the last drawing, the terminal has broken a long line into several lines. So erase computes
// how many lines the block takes on the screen now. Without this, the upper lines of the block
// would stay on the screen.
func (t *Terminal) erase(b *strings.Builder) {
	if len(t.drawn) == 0 {
		return
	}
	columns, lines := t.opts.Size()
	rows := len(t.drawn)
	if columns > 0 && columns < t.columns {
		rows = 0
		for _, width := range t.drawn {
			rows += max(1, (width+columns-1)/columns)
		}
	}
	if rows = min(rows, max(lines-1, 0)); rows > 0 { // the cursor cannot go above the screen
		fmt.Fprintf(b, "\x1b[%dA", rows)
	}
	b.WriteString("\r\x1b[J")
	t.drawn = nil
}

// redrawEvery is the shortest pause between a drawing and the next drawing that new facts cause.
const redrawEvery = 50 * time.Millisecond

func (t *Terminal) redraw() {
	if t.closed || t.board.story.Run == "" {
		return
	}
	columns, lines := t.opts.Size()
	t.height = max(lines-1, 4)
	settled, live, hidden := t.lines()
	var b strings.Builder
	t.erase(&b)
	// If the block is too high for the screen, move the lines of ended steps out of the block: they
	// scroll up.
	for len(settled) > 0 && 1+len(settled)+len(live) > t.height {
		b.WriteString(t.fit(settled[0], columns) + "\n")
		settled = settled[1:]
		t.flown++
	}
	if 1+len(live) > t.height || hidden > 0 {
		keep := min(t.height-3, len(live)-1)
		hidden += len(live) - 1 - keep
		more := styled{text: fmt.Sprintf("  … and %d more", hidden), style: "2"}
		live = append(live[:keep:keep], more, live[len(live)-1])
	}
	block := append(append([]styled{t.headline(columns)}, settled...), live...)
	t.columns = columns
	for i, l := range block {
		if t.whole && i == len(block)-1 {
			columns = 0
		}
		b.WriteString(t.fit(l, columns) + "\n")
		t.drawn = append(t.drawn, t.width(l, columns))
	}
	t.write(b.String())
	t.last = t.opts.Now()
}

// write writes s. It ignores errors, because the run must continue even if the terminal is gone.
func (t *Terminal) write(s string) { _, _ = io.WriteString(t.out, s) }

// A styled line is a line of text with its colour.
type styled struct {
	text  string
	style string // parameters of the terminal's colour command (SGR); "" = no colour
}

// fit shortens a line to the width of the terminal, which is given in columns, and adds the colour
// of the line. If `columns` is 0, fit does not shorten the line.
func (t *Terminal) fit(l styled, columns int) string {
	s := t.cut(l, columns)
	if t.opts.Color && l.style != "" {
		s = "\x1b[" + l.style + "m" + s + "\x1b[0m"
	}
	return s
}

// cut shortens the text of a line to the width of the terminal, which is given in columns. If
// `columns` is 0, cut does not shorten the text.
func (t *Terminal) cut(l styled, columns int) string {
	s := l.text
	if t.opts.ASCII {
		s = toASCII(s)
	}
	if columns > 1 {
		s = Cut(s, columns-1)
	}
	if t.opts.ASCII { // Cut may have added a "…", which is not ASCII
		s = strings.ReplaceAll(s, "…", "~")
	}
	return s
}

// width returns the number of columns that a line takes on the screen.
func (t *Terminal) width(l styled, columns int) int { return Width(t.cut(l, columns)) }

// lines returns the lines that have not scrolled up yet, as two lists. The lines in the list
// `settled` do not change any more, unless an operator starts another round of attempts. The lines
// in the list `live` may still change. If the screen is too small for all lines that may change,
// some of them are in no list. The result `hidden` is the number of these lines.
func (t *Terminal) lines() (settled, live []styled, hidden int) {
	b := t.board
	nameWidth, actionWidth := t.widths()
	for _, r := range b.ended[t.flown:] {
		settled = append(settled, t.rowLine(r, nameWidth, actionWidth))
	}
	most := t.height + 1 // the largest number of live lines; the result `hidden` counts the others
	show := func(r *row, pending bool) {
		if r.phase == phaseEnded || r.waits() != pending || pending && b.turned || r.collapsed(b) {
			return
		}
		if len(live) < most {
			live = append(live, t.rowLine(r, nameWidth, actionWidth))
		} else {
			hidden++
		}
	}
	for _, pending := range []bool{false, true} {
		for _, rows := range [][]*row{b.forward, b.undos} {
			for _, r := range rows {
				if b.wide(r) || len(r.parts) == 0 {
					show(r, pending)
				}
				for _, part := range r.parts {
					show(part, pending)
				}
			}
		}
	}
	return settled, append(live, t.summary()), hidden
}

// waits reports whether nothing in the row has begun: neither the step, nor an instance.
func (r *row) waits() bool { return r.phase == phasePending && len(r.parts) == 0 }

// widths returns the widths of two columns: the column of the names and the column of the actions.
// It computes both widths from the steps, from the first instances of each step, and from the first
// undos.
func (t *Terminal) widths() (name, action int) {
	name, action = 10, 10
	measure := func(r *row) {
		name = max(name, min(Width(Clean(r.name)), 32))
		action = max(action, min(Width(Clean(r.action)), 28))
	}
	for _, r := range t.board.forward {
		if len(r.parts) == 0 || r.wide() {
			measure(r)
		}
		for _, part := range r.parts[:min(len(r.parts), 50)] {
			if !part.collapsed(t.board) {
				measure(part)
			}
		}
	}
	for _, r := range t.board.undos[:min(len(t.board.undos), 50)] {
		measure(r)
	}
	return name, action
}

// headline returns the first line: the names of the workflow and the run, and the time until the
// run's deadline. If the line is too long for the terminal, headline shortens only the names.
func (t *Terminal) headline(columns int) styled {
	s := Clean(t.board.story.Workflow) + "  " + Clean(t.board.story.Name())
	if run := t.board.story.Run; run != t.board.story.Name() {
		s += "  " + Clean(run)
	}
	d := t.board.deadline
	if d.IsZero() || t.board.status != "" {
		return styled{text: s, style: "1"}
	}
	what := "deadline"
	if t.board.turned {
		what = "deadline of the undo"
	}
	right := what + " in " + Span(d.Sub(t.now).Truncate(time.Second))
	if t.now.After(d) {
		right = what + " passed"
	}
	const gap = 52 // column in which the deadline begins, if the terminal is wide enough
	if width := columns - 2 - Width(right); columns > 1 && width < max(gap, Width(s)) {
		s = pad(Cut(s, max(width, 1)), width)
	}
	return styled{text: pad(s, min(gap, max(columns-2-Width(right), 0))) + " " + right, style: "1"}
}

func (t *Terminal) rowLine(r *row, nameWidth, actionWidth int) styled {
	if r.heading {
		return styled{text: "Undoing " + Count(t.board.toUndo(), "step"), style: "1"}
	}
	symbol, detail, style := t.describe(r)
	if t.board.wide(r) && len(r.parts) > 0 {
		symbol, detail, style = t.describeWide(r)
	}
	name := pad(Clean(r.name), nameWidth)
	if r.waits() && !r.undo {
		return styled{text: strings.TrimRight("  "+symbol+" "+name+"  "+detail, " "), style: style}
	}
	return styled{text: strings.TrimRight("  "+symbol+" "+name+"  "+pad(Clean(r.action), actionWidth)+"  "+detail, " "), style: style}
}

func (t *Terminal) describe(r *row) (symbol, detail, style string) {
	switch r.phase {
	case phasePending:
		if after := t.board.waitsFor(r); len(after) > 0 {
			return "·", "after " + Clean(strings.Join(after, ", ")), "2"
		}
		return "·", "", "2"
	case phaseHeld:
		detail = heldText(r.agent, reason(r.code, r.message))
		if !r.until.IsZero() {
			detail += ", next try in " + Took(r.until.Sub(t.now))
		}
		return "‖", detail + t.remaining(r), "33"
	case phaseWaiting:
		detail = awaitText(r.awaits)
		if !r.until.IsZero() {
			detail += " until " + Clock(r.until, t.now)
		}
		return "◌", detail + t.remaining(r), "36"
	case phaseBackoff:
		next := ", next in " + Took(r.until.Sub(t.now))
		switch {
		case r.purpose == story.PurposeLookup:
			detail = "looking up what became of it in " + Took(r.until.Sub(t.now))
		case r.purpose == story.PurposeLearn:
			detail = "learning the output" + next
		case r.coolDown:
			detail = "cooling down until " + Clock(r.until, t.now)
		default:
			detail = "try " + tryOf(r.attempt+1, r.of) + next
		}
		return "↻", detail + prefixed("  ", reason(r.code, r.message)) + t.remaining(r), "33"
	case phaseRunning:
		switch {
		case r.purpose == story.PurposeLookup:
			return "▸", "looking up what became of it" + t.remaining(r), "36"
		case r.purpose == story.PurposeLearn:
			return "▸", "learning the output" + t.remaining(r), "36"
		case r.attempt > 1:
			return "↻", "try " + tryOf(r.attempt, r.of) + prefixed("  ", reason(r.code, r.message)) + t.remaining(r), "33"
		}
		return "▸", Took(t.now.Sub(r.begun)) + t.remaining(r), "36"
	}
	return t.describeEnd(r)
}

// describeWide returns what the screen shows for a step that has one line for all of its instances:
// a symbol, a detail, and the style of the line. The detail says how many instances have ended, how
// many are running, and how many are waiting.
func (t *Terminal) describeWide(r *row) (symbol, detail, style string) {
	done, all := r.counted()
	symbol, style, what := "▸", "36", ""
	if r.undo {
		all = max(all, t.board.undoing(r.name))
		symbol, what = "↶", " undone"
	}
	detail = fmt.Sprintf("%d of %d%s", done, all, what)
	if r.phase == phaseEnded {
		symbol, why, style := t.describeEnd(r)
		return symbol, detail + prefixed("  ", why), style
	}
	if r.undo && done == all {
		return symbol, detail, "32"
	}
	running, waiting := 0, 0
	for _, part := range r.parts {
		switch part.phase {
		case phaseRunning:
			running++
		case phaseBackoff, phaseHeld, phaseWaiting:
			waiting++
		}
	}
	if running > 0 {
		detail += fmt.Sprintf(", %d running", running)
	}
	if waiting > 0 {
		detail += fmt.Sprintf(", %d waiting", waiting)
	}
	return symbol, detail, style
}

func (t *Terminal) describeEnd(r *row) (symbol, detail, style string) {
	n := ""
	if r.attempt > 1 {
		n = fmt.Sprintf("  (%d tries)", r.attempt)
	}
	why := reason(r.code, r.message)
	switch r.status {
	case status.StepSucceeded.String():
		return "✔", Took(r.took) + n, "32"
	case status.StepUndone.String():
		return "↶", Took(r.took) + n, "32"
	case status.StepCaught.String():
		return "✘", "caught" + prefixed("  ", why) + n, "33"
	case status.StepFailed.String():
		return "✘", why + n, "31"
	case status.StepUndoFailed.String():
		return "✘", "undo failed" + prefixed("  ", why) + n, "31"
	}
	return "-", undoneText(r.status), "2"
}

// remaining returns a text with the time until the deadline of the step. If the step has no
// deadline, the text has the time until complete-by. The result is "" if there is neither.
func (t *Terminal) remaining(r *row) string {
	by := r.limit
	if by.IsZero() && r.phase == phaseRunning {
		by = r.by
	}
	if by.IsZero() {
		return ""
	}
	return "   ⏱ " + Span(by.Sub(t.now).Truncate(time.Second))
}

func tryOf(n, of int) string {
	if of > 0 {
		return fmt.Sprintf("%d/%d", n, of)
	}
	return fmt.Sprint(n)
}

func (t *Terminal) summary() styled {
	b := t.board
	if b.status != "" {
		style := "31"
		if b.status == status.RunSucceeded.String() {
			style = "32"
		}
		text := t.verdict
		if text == "" {
			text = "run " + Clean(b.status)
		}
		return styled{text: strings.ToUpper(text[:1]) + text[1:] + ".", style: "1;" + style}
	}
	parts := []string{b.progress()}
	names := make([]string, 0, len(b.circuits))
	for name := range b.circuits {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		parts = append(parts, circuitText(b.circuits[name]))
	}
	parts = append(parts, "Ctrl-C stops this command, the run stays")
	return styled{text: strings.Join(parts, " · "), style: "2"}
}

var asciiSymbols = strings.NewReplacer("✔", "+", "✘", "x", "↻", "~", "·", ".", "↶", "<", "▸", ">", "‖", "=", "⏱", "left", "…", "...")

func toASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if r > 0x7e {
			return '?'
		}
		return r
	}, asciiSymbols.Replace(s))
}
