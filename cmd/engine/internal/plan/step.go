package plan

import (
	"fmt"

	"github.com/saga-engine/engine/cmd/engine/internal/graph"
	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/dsl/rung"
)

// A step is one line of a plan.
type step struct {
	wf       *dsl.Workflow
	step     *dsl.Step
	wave     int
	first    bool // this is the first step of its wave
	each     int  // number of instances, which is 1 without for_each; -1 = known only in a run
	forEach  bool
	action   string
	undo     string
	notes    []string
	settings *dsl.Settings // nil = known only in a run
	loop     *loop         // nil = the step has no repeat block
	// undoSettings are the settings of the undo; nil = the step has no undo, or its settings are
	// known only in a run.
	undoSettings *dsl.Settings
	inner        []step // steps inside of a group, in order of waves; nil = the step is no group
	child        *times // how long the child run of the step may take; nil = the step starts none
}

// A planner makes the steps of plans. It remembers how long the child runs of each workflow may
// take.
type planner map[*dsl.Workflow]*times

// childOf sets the times of the child run of a step. If the step is a group, it also sets the
// steps in the group. It uses no variables, because the variables of the child are known only
// in a run.
func (m planner) childOf(p *step) {
	c := p.step.Child
	if c == nil {
		return
	}
	if t, known := m[c.Workflow]; known && !c.Group {
		p.child = t
		return
	}
	scope := &dsl.Scope{}
	inner := m.stepsOf(c.Workflow, scope)
	t := estimate(c.Workflow, inner, scope)
	m[c.Workflow], p.child = &t, &t
	if c.Group {
		p.inner = inner
	}
}

func (m planner) stepsOf(wf *dsl.Workflow, scope *dsl.Scope) []step {
	waves := map[int]int{}
	byWave := map[int][]*dsl.Step{}
	last := 0
	for _, i := range wf.Order {
		wave := 1
		for _, before := range wf.Steps[i].After {
			wave = max(wave, waves[before]+1)
		}
		waves[i], last = wave, max(last, wave)
		byWave[wave] = append(byWave[wave], wf.Steps[i])
	}
	var out []step
	for wave := 1; wave <= last; wave++ {
		for n, s := range byWave[wave] {
			p := step{wf: wf, step: s, wave: wave, first: n == 0, action: graph.Does(s)}
			p.count(scope)
			if settings, err := s.Settings(scope); err == nil {
				p.settings = settings
			}
			p.loop = loopOf(s, p.settings, scope)
			p.undo = undoText(wf, s)
			if s.Undo != nil && s.Undo.Settings != nil && !graph.AfterPivot(wf, s) {
				if settings, err := s.Undo.Settings(scope); err == nil {
					p.undoSettings = settings
				}
			}
			m.childOf(&p)
			p.notes = p.describe()
			out = append(out, p)
		}
	}
	return out
}

// count sets the number of instances of a for_each step. It sets -1 if the number is known only in
// a run, because for_each depends on results of other steps or cannot be evaluated now.
func (p *step) count(scope *dsl.Scope) {
	p.each, p.forEach = 1, p.step.ForEach != nil
	if !p.forEach {
		return
	}
	p.each = -1
	if dependsOnSteps(p.step, scope) {
		return
	}
	if each, err := p.step.ForEach(scope); err == nil {
		p.each = len(each.Keys)
	}
}

// dependsOnSteps reports whether for_each uses the result of a step, or cannot be evaluated.
func dependsOnSteps(s *dsl.Step, scope *dsl.Scope) bool {
	asked := false
	probe := *scope
	probe.Memo = nil
	probe.Step = func(int) dsl.StepResult {
		asked = true
		return dsl.StepResult{}
	}
	_, err := s.ForEach(&probe)
	return asked || err != nil
}

func undoText(wf *dsl.Workflow, s *dsl.Step) string {
	switch {
	case !s.Calls():
		return "undo: none (no call)"
	case s.Do.ReadOnly:
		return "undo: none (read only)"
	case graph.AfterPivot(wf, s):
		if s.Pivot {
			return "undo: none (pivot)"
		}
		return "undo: none (after the pivot)"
	case s.Undo != nil && s.Child != nil && s.Undo.Declared:
		return "undo: its own steps"
	case s.Undo != nil && s.Undo.Declared:
		return "undo: " + s.Undo.Do.Name + " (declared by agent)"
	case s.Undo != nil:
		return "undo: " + graph.ActionName(s.Undo.Do)
	}
	return "undo: none (stated)"
}

func (p *step) describe() []string {
	var notes []string
	if p.step.When != nil || p.step.WhenEach != nil {
		notes = append(notes, "conditional")
	}
	if p.loop != nil {
		notes = append(notes, p.loop.text())
	}
	if l := limitedOf(p.step); l != nil {
		notes = append(notes, l.text())
	}
	if s := p.settings; s == nil {
		notes = append(notes, "limits known at run time")
	} else {
		if p.step.Calls() && p.step.Child == nil {
			notes = append(notes, p.triesText(s.Retry.MaxAttempts))
			if then := exhaustedText(s.Retry); then != "" {
				notes = append(notes, then)
			}
		}
		switch {
		case s.Deadline.After > 0:
			notes = append(notes, "≤"+render.Span(s.Deadline.After))
		case !s.Deadline.At.IsZero():
			notes = append(notes, "until "+words.Stamp(s.Deadline.At))
		}
		if s.MaxParallel > 0 && p.forEach {
			notes = append(notes, fmt.Sprintf("%d at a time", s.MaxParallel))
		}
	}
	if u := p.undoSettings; u != nil && p.step.Child == nil {
		if u.Retry.MaxAttempts != dsl.Unbounded {
			notes = append(notes, "undo "+boundText(u.Retry.MaxAttempts))
		}
		switch {
		case u.Deadline.After > 0:
			notes = append(notes, "undo ≤"+render.Span(u.Deadline.After))
		case !u.Deadline.At.IsZero():
			notes = append(notes, "undo until "+words.Stamp(u.Deadline.At))
		}
	}
	if p.step.Catch != nil {
		notes = append(notes, "errors caught")
	}
	if text := rungsText(p.afterUnknown()); text != "" {
		notes = append(notes, "unknown: "+text)
	}
	return notes
}

func (p *step) afterUnknown() []rung.Rung { return afterUnknown(p.wf, p.step, p.settings) }

func (p *step) triesText(n int) string {
	switch {
	case n != 1 && (p.step.Do.Idempotent || p.step.Do.ReadOnly || p.step.OnRerun == dsl.RerunUndoFirst):
		return boundText(n)
	case n != 1:
		return boundText(n) + " (while surely nothing was done)"
	case p.step.Do.Idempotent || p.step.Do.ReadOnly:
		return "1 try"
	}
	return "1 try (not idempotent)"
}

func boundText(n int) string {
	switch n {
	case dsl.Unbounded:
		return "unbounded tries"
	case 1:
		return "1 try"
	}
	return fmt.Sprintf("≤%d tries", n)
}

// exhaustedText returns a text about the reaction of the engine when all attempts of the step have
// failed. It returns "" if the step does not set this reaction.
func exhaustedText(r dsl.Retry) string {
	switch r.OnExhausted {
	case dsl.ExhaustedCompensate:
		return "then undo"
	case dsl.ExhaustedPark:
		return "then park"
	case dsl.ExhaustedCoolDown:
		return fmt.Sprintf("then cool down %s, %s", render.Span(r.CoolDown), render.Count(r.CoolDowns, "time"))
	}
	return ""
}

// onExhausted returns, for --json, the reaction of the engine when all attempts of the step have
// failed. If the step does not set this reaction, it follows from the compensation mode of the
// workflow, the parameter `mode`.
func onExhausted(r dsl.Retry, mode dsl.Mode) string {
	switch {
	case r.OnExhausted == dsl.ExhaustedCoolDown:
		return "cool_down"
	case r.OnExhausted == dsl.ExhaustedPark, r.OnExhausted == dsl.ExhaustedMode && mode == dsl.ModeManual:
		return "park"
	}
	return "compensate"
}

// A row is one line of the plan as text.
type row struct {
	cells []string
	notes []string
}

// rows returns the rows of the given steps. Below the row of a group are the rows of the steps in
// the group. If the given steps are inside of a group, the parameter `wave` is the number of the
// group's wave, with a full stop; "" = the steps are not in a group. The name of each step begins
// with the text in the parameter `space`.
func rows(steps []step, wave, space string) []row {
	var out []row
	for i := range steps {
		p := &steps[i]
		own, shown := fmt.Sprintf("%s%d", wave, p.wave), ""
		if p.first {
			shown = "wave " + own
		}
		out = append(out, row{[]string{shown, space + p.title(), p.action, p.undo}, p.notes})
		out = append(out, rows(p.inner, own+".", space+"  ")...)
	}
	return out
}

func (p *step) title() string {
	switch {
	case !p.forEach:
		return p.step.Name
	case p.each < 0:
		return p.step.Name + " × ?"
	}
	return fmt.Sprintf("%s × %d", p.step.Name, p.each)
}

func (p *step) json(mode dsl.Mode) map[string]any {
	m := map[string]any{"name": p.step.Name, "wave": p.wave, "action": p.action, "undo": p.undo[len("undo: "):], "pivot": p.step.Pivot}
	if p.forEach {
		m["for_each"] = true
		if p.each >= 0 {
			m["instances"] = p.each
		}
	}
	if p.loop != nil {
		m["repeat"] = p.loop.json()
	}
	if l := limitedOf(p.step); l != nil {
		m["concurrency"] = l.json()
	}
	if rungs := p.afterUnknown(); len(rungs) > 0 {
		m["after_unknown"] = rungs
	}
	if s := p.settings; s != nil {
		if p.step.Child == nil {
			m["timeout_s"] = s.Timeout.Seconds()
		}
		m["max_attempts"] = render.Attempts(s.Retry.MaxAttempts)
		m["on_exhausted"] = onExhausted(s.Retry, mode)
		if s.Retry.OnExhausted == dsl.ExhaustedCoolDown {
			m["cool_down_s"], m["cool_downs"] = s.Retry.CoolDown.Seconds(), s.Retry.CoolDowns
		}
		if s.Deadline.After > 0 {
			m["deadline_s"] = s.Deadline.After.Seconds()
		}
	}
	if c := p.step.Child; c != nil {
		m["workflow"] = c.Workflow.Name
	}
	if p.inner != nil {
		inner := make([]map[string]any, len(p.inner))
		for i := range p.inner {
			inner[i] = p.inner[i].json(mode)
		}
		m["steps"] = inner
	}
	if u := p.undoSettings; u != nil && p.step.Child == nil {
		m["undo_max_attempts"] = render.Attempts(u.Retry.MaxAttempts)
		m["undo_timeout_s"] = u.Timeout.Seconds()
		if u.Deadline.After > 0 {
			m["undo_deadline_s"] = u.Deadline.After.Seconds()
		}
	}
	return m
}
