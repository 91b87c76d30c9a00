package main

import (
	"fmt"
	"time"

	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl"
)

// A plannedStep is one line of a plan.
type plannedStep struct {
	step     *dsl.Step
	wave     int
	first    bool // of its wave
	each     int  // instances; -1 = known only when it runs, 0 with forEach = none
	forEach  bool
	action   string
	undo     string
	notes    []string
	settings *dsl.Settings // nil = known only when it runs
}

func plannedSteps(wf *dsl.Workflow, scope *dsl.Scope) []plannedStep {
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
	var out []plannedStep
	for wave := 1; wave <= last; wave++ {
		for n, s := range byWave[wave] {
			p := plannedStep{step: s, wave: wave, first: n == 0, action: actionName(s.Do)}
			p.count(scope)
			if settings, err := s.Settings(scope); err == nil {
				p.settings = settings
			}
			p.undo = undoText(wf, s)
			p.notes = p.describe()
			out = append(out, p)
		}
	}
	return out
}

// count finds out how many instances a for_each has. Where that depends on
// other steps it is not known yet.
func (p *plannedStep) count(scope *dsl.Scope) {
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

// dependsOnSteps reports whether for_each asks for the result of a step.
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
	case s.Do.ReadOnly:
		return "undo: none (read only)"
	case afterPivot(wf, s):
		if s.Pivot {
			return "undo: none (pivot)"
		}
		return "undo: none (after the pivot)"
	case s.Undo != nil && s.Undo.Declared:
		return "undo: " + s.Undo.Do.Name + " (declared by agent)"
	case s.Undo != nil:
		return "undo: " + actionName(s.Undo.Do)
	}
	return "undo: none (stated)"
}

func (p *plannedStep) describe() []string {
	var notes []string
	if p.step.When != nil {
		notes = append(notes, "conditional")
	}
	if s := p.settings; s == nil {
		notes = append(notes, "limits known at run time")
	} else {
		notes = append(notes, p.triesText(s.Retry.MaxAttempts))
		switch {
		case s.Deadline.After > 0:
			notes = append(notes, "≤"+render.Span(s.Deadline.After))
		case !s.Deadline.At.IsZero():
			notes = append(notes, "until "+stamp(s.Deadline.At))
		}
		if s.MaxParallel > 0 && p.forEach {
			notes = append(notes, fmt.Sprintf("%d at a time", s.MaxParallel))
		}
	}
	if p.step.Catch != nil {
		notes = append(notes, "errors caught")
	}
	return notes
}

func (p *plannedStep) triesText(n int) string {
	switch {
	case n == dsl.Unbounded:
		return "tries unbounded"
	case n > 1:
		return fmt.Sprintf("≤%d tries", n)
	case p.step.Do.Idempotent || p.step.Do.ReadOnly:
		return "1 try"
	}
	return "1 try (not idempotent)"
}

func (p *plannedStep) waveText() string {
	if !p.first {
		return ""
	}
	return fmt.Sprintf("wave %d", p.wave)
}

func (p *plannedStep) title() string {
	switch {
	case !p.forEach:
		return p.step.Name
	case p.each < 0:
		return p.step.Name + " × ?"
	}
	return fmt.Sprintf("%s × %d", p.step.Name, p.each)
}

func (p *plannedStep) json() map[string]any {
	m := map[string]any{"name": p.step.Name, "wave": p.wave, "action": p.action, "undo": p.undo[len("undo: "):], "pivot": p.step.Pivot}
	if p.forEach {
		m["for_each"] = true
		if p.each >= 0 {
			m["instances"] = p.each
		}
	}
	if s := p.settings; s != nil {
		if s.Retry.MaxAttempts != dsl.Unbounded {
			m["max_attempts"] = s.Retry.MaxAttempts
		}
		m["timeout_s"] = s.Timeout.Seconds()
		if s.Deadline.After > 0 {
			m["deadline_s"] = s.Deadline.After.Seconds()
		}
	}
	return m
}

// times says how long a run may take.
type times struct {
	typical   time.Duration
	known     bool // some action has an estimate
	worst     time.Duration
	unbounded bool
	runtime   bool // some limits are known only when they are evaluated
	deadline  dsl.Limit
}

// estimate adds up the slowest path through the graph.
func estimate(wf *dsl.Workflow, steps []plannedStep, scope *dsl.Scope) times {
	var t times
	typical, worst := make([]time.Duration, len(wf.Steps)), make([]time.Duration, len(wf.Steps))
	for _, p := range steps { // in order of waves, so dependencies come first
		var before, beforeWorst time.Duration
		for _, i := range p.step.After {
			before, beforeWorst = max(before, typical[i]), max(beforeWorst, worst[i])
		}
		rounds := time.Duration(p.rounds())
		typical[p.step.Index] = before + p.step.Do.Typical*rounds
		t.known = t.known || p.step.Do.Typical > 0
		w, bounded := p.worst()
		t.unbounded = t.unbounded || !bounded
		t.runtime = t.runtime || p.settings == nil || p.each < 0
		worst[p.step.Index] = beforeWorst + w
		t.typical, t.worst = max(t.typical, typical[p.step.Index]), max(t.worst, worst[p.step.Index])
	}
	if wf.Deadline != nil {
		if l, err := wf.Deadline(scope); err == nil {
			t.deadline = l
		}
	}
	return t
}

// rounds is how many instances run one after another.
func (p *plannedStep) rounds() int {
	if !p.forEach || p.each < 0 || p.settings == nil || p.settings.MaxParallel <= 0 {
		return min(1, max(p.each, -p.each))
	}
	return (p.each + p.settings.MaxParallel - 1) / p.settings.MaxParallel
}

// worst is the longest a step can take; false = without bound.
func (p *plannedStep) worst() (time.Duration, bool) {
	s := p.settings
	if s == nil {
		return 0, true // said separately
	}
	limit := s.Deadline.After
	if s.Retry.MaxAttempts == dsl.Unbounded {
		return limit, limit > 0
	}
	round := time.Duration(s.Retry.MaxAttempts) * s.Timeout
	for n := 1; n < s.Retry.MaxAttempts; n++ {
		round += pause(s.Retry, n)
	}
	total := round
	if s.Retry.OnExhausted == dsl.ExhaustedCoolDown {
		total += time.Duration(s.Retry.CoolDowns) * (s.Retry.CoolDown + round)
	}
	total *= time.Duration(p.rounds())
	if limit > 0 && total > limit {
		return limit, true
	}
	return total, true
}

// pause is the longest pause after the n-th attempt.
func pause(r dsl.Retry, n int) time.Duration {
	d := float64(r.InitialInterval)
	switch r.Strategy {
	case dsl.Linear:
		d *= float64(n)
	case dsl.Exponential:
		for range n - 1 {
			if d *= r.Multiplier; d > float64(r.MaxInterval) {
				break
			}
		}
	}
	if r.MaxInterval > 0 && d > float64(r.MaxInterval) {
		return r.MaxInterval
	}
	return time.Duration(d)
}

func (t times) text() string {
	s := "Time: "
	if t.known {
		s += "typical " + render.Span(t.typical.Round(100*time.Millisecond)) + " (agents' estimates), "
	}
	switch {
	case t.unbounded:
		s += "worst unbounded"
	case t.runtime:
		s += "worst known at run time"
	default:
		s += "worst " + render.Span(t.worst.Round(time.Second))
	}
	switch {
	case t.deadline.After > 0:
		s += ", deadline " + render.Span(t.deadline.After)
	case !t.deadline.At.IsZero():
		s += ", deadline " + stamp(t.deadline.At)
	default:
		s += ", no deadline"
	}
	return s + "."
}

func (t times) json() map[string]any {
	m := map[string]any{}
	if t.known {
		m["typical_s"] = t.typical.Seconds()
	}
	if !t.unbounded && !t.runtime {
		m["worst_s"] = t.worst.Seconds()
	}
	switch {
	case t.deadline.After > 0:
		m["deadline_s"] = t.deadline.After.Seconds()
	case !t.deadline.At.IsZero():
		m["deadline"] = t.deadline.At.UTC()
	}
	return m
}
