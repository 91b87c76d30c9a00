package decl

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/saga-engine/engine/dsl/cron"
	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/noun"
	"github.com/saga-engine/engine/dsl/internal/report"
	"github.com/saga-engine/engine/dsl/internal/sorted"
	"github.com/saga-engine/engine/dsl/internal/syntax"
)

// A scheduleDecoder reads the schedule blocks of a workflow.
type scheduleDecoder struct{ *decoder }

// schedule reads a schedule block and adds the schedule to w.
func (d scheduleDecoder) schedule(w *Workflow, b *syntax.Block) {
	s := &Schedule{Where: b.DefRange, VariablesAt: b.DefRange, Noun: &noun.Schedule{Schedule: cron.Schedule{Name: b.Label}}}
	for _, other := range w.Schedules {
		if other.Noun.Name == b.Label {
			d.duplicate(b, other.Where)
			break
		}
	}
	w.Schedules = append(w.Schedules, s)
	n := s.Noun
	n.Overlap = cron.Overlap(d.word(b.Attr("overlap"), "overlap", cron.OverlapNames))
	n.CatchUp = cron.CatchUp(d.word(b.Attr("catch_up"), "catch_up", cron.CatchUpNames))
	if n.Overlap == cron.OverlapQueue && n.CatchUp == cron.CatchUpNone {
		d.Errorf(b.Attr("catch_up").Range, "Waiting tick would be lost",
			"With overlap = \"queue\" a tick waits until the run before has ended. catch_up = \"none\" would then drop it as a missed tick. Write catch_up = \"latest\" or \"all\", or overlap = \"skip\".")
	}
	d.timetable(n, b)
	if e := b.Attr("variables"); e != nil {
		s.VariablesAt = e.Range
		n.Variables, s.Broken = d.scheduleVariables(e, b.Label)
	}
}

// timetable reads the cron expression and the time zone of a schedule. It checks the zone first,
// so that an error names the argument that is wrong.
func (d scheduleDecoder) timetable(n *noun.Schedule, b *syntax.Block) {
	if e := b.Attr("time_zone"); e != nil {
		text, ok := d.lit.literalText(e, "time_zone")
		if !ok {
			return
		}
		if _, err := cron.Parse("@daily", text); err != nil {
			d.Errorf(e.Range, "Invalid time zone", "%s.", upperFirst(err.Error()))
			return
		}
		n.Zone = text
	}
	e := b.Attr("cron")
	if e == nil {
		return // the Reader has reported the missing argument
	}
	text, ok := d.lit.literalText(e, "cron")
	if !ok {
		return
	}
	table, err := cron.Parse(text, n.Zone)
	if err != nil {
		d.Errorf(e.Range, "Invalid cron expression", "%s.", upperFirst(err.Error()))
		return
	}
	n.Cron, n.Timetable = text, table
}

// scheduleVariables reads the argument `variables` of a schedule. If the argument has errors, it
// reports them, and the result broken is true.
func (d scheduleDecoder) scheduleVariables(e *eval.Expr, schedule string) (list []noun.Assignment, broken bool) {
	v, ok := d.lit.constant(e, "The variables of a schedule must be known before a run, so they cannot refer to anything.")
	if !ok {
		return nil, true
	}
	if v.IsNull() || !v.IsKnown() || !v.Type().IsObjectType() && !v.Type().IsMapType() {
		d.Errorf(e.Range, "Invalid value for variables", "variables is an object with a value for each variable: { tenant = \"demo\" }.")
		return nil, true
	}
	values := v.AsValueMap()
	for _, name := range sorted.Keys(values) {
		at := report.Range(e.Range)
		expr := &hclsyntax.LiteralValueExpr{Val: values[name], SrcRange: e.Range}
		a := noun.AssignmentIn(name, at, expr, nil)
		a.Source = "Schedule \"" + schedule + "\""
		list = append(list, a)
	}
	return list, false
}

// word reads the argument e, which must be one of the words. It returns the index of the word. If e
// is missing or invalid, word returns 0, the index of the default. The parameter name is the name of
// the argument, for messages.
func (d scheduleDecoder) word(e *eval.Expr, name string, words []string) int {
	if e == nil {
		return 0
	}
	text, ok := d.lit.literalText(e, name)
	if !ok {
		return 0
	}
	if i := slices.Index(words, text); i >= 0 {
		return i
	}
	d.Errorf(e.Range, "Invalid value for "+name, "%s is \"%s\".%s", name, strings.Join(words, "\" or \""), diag.DidYouMean(text, words))
	return 0
}

// upperFirst returns the text s with a capital first letter. The text must not be empty.
func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// UsesTick reports whether an expression refers to run.tick, directly or through locals.
func (w *Workflow) UsesTick(e *eval.Expr) bool { return w.usesTick(e, map[string]bool{}) }

func (w *Workflow) usesTick(e *eval.Expr, seen map[string]bool) bool {
	if e == nil || e.Syntax == nil {
		return false
	}
	for _, t := range e.Syntax.Variables() {
		if len(t) < 2 {
			continue
		}
		attr, ok := t[1].(hcl.TraverseAttr)
		switch {
		case !ok:
		case t.RootName() == "run" && attr.Name == "tick":
			return true
		case t.RootName() == "local" && !seen[attr.Name] && w.Locals[attr.Name] != nil:
			seen[attr.Name] = true
			if w.usesTick(w.Locals[attr.Name].Expr, seen) {
				return true
			}
		}
	}
	return false
}

// An eventDecoder reads the on_event blocks of a workflow.
type eventDecoder struct{ *decoder }

// resets reads the reset_on blocks of a unique block.
func (d eventDecoder) resets(w *Workflow, unique *syntax.Block) {
	if unique == nil {
		return
	}
	for _, b := range unique.All("reset_on") {
		if w.UniqueRule.Scope != noun.ScopeGoal {
			d.Errorf(b.DefRange, "Reset without a goal", `reset_on frees the key of a goal that was reached, so it needs scope = "goal". Remove the block, or change scope.`)
		}
		d.read(w, b)
	}
}

// read reads an on_event block or a reset_on block and adds it to w. The type of the events is the label of the block,
// unless the block has the argument `type`.
func (d eventDecoder) read(w *Workflow, b *syntax.Block) {
	e := &OnEvent{Where: b.DefRange, When: b.Attr("when"), Variables: b.Attr("variables"), Key: b.Attr("key"), VariablesAt: b.DefRange, Noun: &noun.OnEvent{Name: b.Label, Type: b.Label}}
	if e.Variables != nil {
		e.VariablesAt = e.Variables.Range
	}
	at := b.DefRange
	if t := b.Attr("type"); t != nil {
		at = t.Range
		text, ok := d.lit.literalText(t, "type")
		if ok && !noun.ValidEventType(text) {
			d.Errorf(at, "Invalid value for type", "%q cannot be the type of an event. A type begins with a letter or a digit, and has at most 200 letters, digits and . _ : / -.", text)
		}
		e.Noun.Type = text
	}
	for _, other := range w.OnEvents {
		if other.Noun.Name == b.Label && (other.Key == nil) == (e.Key == nil) {
			d.duplicate(b, other.Where)
			break
		}
		if other.Noun.Type == e.Noun.Type && e.Noun.Type != "" {
			d.Errorf(at, "Two blocks for one type of event",
				"Block %q has the type %q, too. An event starts one run of a workflow at most, or resets one goal. Write one block, with || in its condition.", other.Noun.Name, e.Noun.Type)
			break
		}
	}
	w.OnEvents = append(w.OnEvents, e)
}
