package plan

import (
	"fmt"
	"io"
	"strings"

	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine/status"
)

// Write writes the plan as text.
func (p *Plan) Write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  workflow %q  definition %s%s\n", render.Clean(p.label), p.flow.Name, words.Short(p.flow.Digest), p.openText())
	widths := [4]int{}
	all := rows(p.steps, "", "")
	for _, r := range all {
		for i, c := range r.cells {
			widths[i] = max(widths[i], render.Width(c))
		}
	}
	for _, r := range all {
		line := " "
		for i, c := range r.cells {
			line += " " + c + strings.Repeat(" ", widths[i]-render.Width(c)+1)
		}
		b.WriteString(strings.TrimRight(line+"  "+strings.Join(r.notes, ", "), " ") + "\n")
	}
	if text := p.undosText(); text != "" {
		b.WriteString(text + "\n")
	}
	for _, a := range p.flow.Admits {
		b.WriteString(p.admitText(a.Name, a.Lock) + "\n")
	}
	fmt.Fprintf(&b, "%s  %s\n", p.times.text(), p.runText())
	_, err := io.WriteString(w, b.String())
	return err
}

// admitText returns the line about an admit block. A plan does not run the check.
func (p *Plan) admitText(name, lock string) string {
	if p.embedded {
		return fmt.Sprintf("Admit %q: apply is refused, because the check needs rows in PostgreSQL, and this state is an embedded file.", name)
	}
	return fmt.Sprintf("Admit %q: checked when the run is accepted, lock %s.", name, lock)
}

// undosText returns one line that describes the undos of all steps. If an undo differs from this
// line, a note on its step says so.
func (p *Plan) undosText() string {
	n, unbounded := 0, 0
	for _, s := range p.steps {
		if s.undoSettings == nil {
			continue
		}
		if n++; s.undoSettings.Retry.MaxAttempts == dsl.Unbounded {
			unbounded++
		}
	}
	if n == 0 {
		return ""
	}
	text := "Undo: "
	if p.flow.CompensationMode == dsl.ModeManual {
		text += "when an operator says so, "
	}
	if unbounded > 0 {
		text += "unbounded tries"
		if unbounded < n {
			text += " unless noted"
		}
		text += ", "
	}
	switch d := p.times.compensation; {
	case d.After > 0:
		return text + "deadline " + render.Span(d.After) + " in all."
	case !d.At.IsZero():
		return text + "deadline " + words.Stamp(d.At) + "."
	}
	return text + "deadline known at run time."
}

func (p *Plan) openText() string {
	var parts []string
	if p.sameOpen > 0 {
		parts = append(parts, render.Count(p.sameOpen, "open run")+" of it")
	}
	n := 0
	for _, c := range p.others {
		n += c
	}
	switch {
	case len(p.others) == 1:
		for digest := range p.others {
			verb := "use"
			if n == 1 {
				verb = "uses"
			}
			parts = append(parts, fmt.Sprintf("%s %s %s, untouched", render.Count(n, "open run"), verb, words.Short(digest)))
		}
	case n > 0:
		parts = append(parts, fmt.Sprintf("%s use %d other definitions, untouched", render.Count(n, "open run"), len(p.others)))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, "; ") + ")"
}

func (p *Plan) runText() string {
	key := render.Clean(p.key)
	switch {
	case p.flow.UniqueKey == nil:
		return "Run: new, at each apply."
	case p.earlier == nil:
		return fmt.Sprintf("Run %s: new.", key)
	case p.flow.Unique.Replace && !p.earlier.State.Final():
		return fmt.Sprintf("Run %s: new. It replaces %s (%s), which is cancelled first.", key, p.earlier.Name, p.earlier.State)
	case p.earlier.State == status.RunSucceeded:
		return fmt.Sprintf("Run %s: done by %s.", key, p.earlier.Name)
	}
	return fmt.Sprintf("Run %s: goes on with %s (%s).", key, p.earlier.Name, p.earlier.State)
}
