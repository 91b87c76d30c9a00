package dsl

import (
	"errors"
	"fmt"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/metered"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// A world supplies the values of references: those of a run, or unknown ones
// while a definition is checked.
type world interface {
	variables() (cty.Value, error)
	step(i int) (cty.Value, error)
	root(name string) (cty.Value, error) // each, self, failure, run
	localValue(l *localDecl) (keptLocal, bool)
	keepLocal(l *localDecl, c *compiled, k keptLocal)
	settle(l *localDecl, k keptLocal) bool // true the first time in an evaluation
	meter() *metered.Meter
}

// A runWorld takes values from a run's scope.
type runWorld struct {
	ev   *evaluator
	s    *Scope
	self int // index of the step that self is about
	// locals are those of this evaluation: one that several others use is
	// still evaluated once.
	locals map[*localDecl]keptLocal
	used   metered.Meter // by this evaluation, its locals included
}

func (w *runWorld) meter() *metered.Meter {
	if w.s != nil {
		w.used.Allowance = w.s.Allowance
	}
	return &w.used
}

// errNoScope is the error of an expression that needs a Scope and has none.
var errNoScope = errors.New("no values are available here")

func (w *runWorld) variables() (cty.Value, error) {
	if w.s == nil {
		return cty.NilVal, errNoScope
	}
	return w.ev.decodeVars(w.meter(), w.s.Vars)
}

// decodeVars decodes the object of all variables to their declared types; the
// result is kept with the Value, so that it is decoded once a run.
func (ev *evaluator) decodeVars(m *metered.Meter, v value.Value) (cty.Value, error) {
	if c := value.KeptDecoded(v, ev); c != nil {
		return c.Value, m.Input(c.Load)
	}
	size := value.LoadOf(v)
	if err := m.Input(size); err != nil {
		return cty.NilVal, err
	}
	raw, err := value.Decode(v)
	if err != nil {
		return cty.NilVal, fmt.Errorf("decode variables: %w", err)
	}
	raw, whole := raw.Unmark() // sensitive as a whole is sensitive in each part
	attrs := map[string]cty.Value{}
	given := map[string]cty.Value{}
	if !raw.IsNull() && raw.Type().IsObjectType() {
		given = raw.AsValueMap()
	}
	for name, seen := range ev.vars {
		x, ok := given[name]
		if !ok {
			x = cty.NullVal(cty.DynamicPseudoType)
		}
		if c, err := value.Conform(x, seen.typ); err == nil {
			x = c
		}
		if seen.sensitive {
			x = x.Mark(value.SensitiveMark{})
		}
		x = x.WithMarks(whole)
		attrs[name] = x
	}
	out := cty.ObjectVal(attrs)
	if !ev.shared {
		value.KeepDecoded(v, &value.Decoded{Owner: ev, Value: out, Load: size})
	}
	return out, nil
}

func (w *runWorld) memo() *Memo { return memoOf(w.s, w.ev) }

// memoOf returns the memo of a run for an evaluator; nil if there is none.
func memoOf(s *Scope, ev *evaluator) *Memo {
	if s == nil || s.Memo == nil || ev.shared {
		return nil
	}
	if m := s.Memo; m.owner != ev {
		*m = Memo{owner: ev}
	}
	return s.Memo
}

// resultOf asks a scope for the result of a step. It keeps the result of a finished step
// with instances: to put it together takes time for each of them.
func resultOf(s *Scope, ev *evaluator, i int) StepResult {
	if !ev.steps[i].each {
		return s.Step(i)
	}
	m := memoOf(s, ev)
	if m != nil {
		if r, ok := m.results[i]; ok {
			return r
		}
	}
	r := s.Step(i)
	if m != nil && r.Final {
		if m.results == nil {
			m.results = map[int]StepResult{}
		}
		m.results[i] = r
	}
	return r
}

func (w *runWorld) step(i int) (cty.Value, error) {
	m := w.memo()
	if m != nil {
		if k, ok := m.steps[i]; ok {
			return k.value, w.meter().Input(k.load)
		}
	}
	if w.s == nil || w.s.Step == nil {
		return cty.NilVal, errors.New("no step is visible here")
	}
	r := resultOf(w.s, w.ev, i)
	size := loadOfStep(r)
	if err := w.meter().Input(size); err != nil {
		return cty.NilVal, err
	}
	v, err := w.ev.stepValue(i, r)
	if err != nil {
		return cty.NilVal, fmt.Errorf("decode the result of step %q: %w", w.ev.steps[i].name, err)
	}
	if m != nil && r.Final {
		if m.steps == nil {
			m.steps = map[int]keptStep{}
		}
		m.steps[i] = keptStep{v, size}
	}
	return v, nil
}

func (ev *evaluator) stepValue(i int, r StepResult) (cty.Value, error) {
	shape := ev.steps[i]
	if !shape.each {
		return instanceValue(r.One, shape.out)
	}
	attrs := make(map[string]cty.Value, len(r.Instances))
	for _, inst := range r.Instances {
		v, err := instanceValue(inst, shape.out)
		if err != nil {
			return cty.NilVal, err
		}
		attrs[inst.Key] = v
	}
	return cty.ObjectVal(attrs), nil
}

// errorType is the type of step.NAME.error.
var errorType = cty.Object(map[string]cty.Type{"code": cty.String, "message": cty.String})

// instanceValue is step.NAME, or one of its instances, in a run.
func instanceValue(r InstanceResult, out cty.Type) (cty.Value, error) {
	output, err := decodeOutput(r.Output, out)
	if err != nil {
		return cty.NilVal, err
	}
	fault := cty.NullVal(errorType)
	if r.ErrorCode != "" {
		fault = cty.ObjectVal(map[string]cty.Value{
			"code": cty.StringVal(r.ErrorCode), "message": cty.StringVal(r.ErrorText),
		})
	}
	return cty.ObjectVal(map[string]cty.Value{
		"output": output, "status": cty.StringVal(r.Status), "attempts": cty.NumberIntVal(int64(r.Attempts)),
		"error": fault, "started_at": timeValue(r.StartedAt), "timed_out": cty.BoolVal(r.TimedOut),
	}), nil
}

// decodeOutput decodes an output to its type. An output that does not fit it keeps its own
// type.
func decodeOutput(v value.Value, ty cty.Type) (cty.Value, error) {
	raw, err := value.Decode(v)
	if err != nil {
		return cty.NilVal, err
	}
	if raw.IsNull() {
		return cty.NullVal(value.PlainType(ty)), nil
	}
	if c, err := value.Conform(raw, ty); err == nil {
		return c, nil
	}
	return raw, nil // such as the substitute output of another shape
}

func timeValue(t time.Time) cty.Value {
	if t.IsZero() {
		return cty.NullVal(cty.String)
	}
	return cty.StringVal(t.UTC().Format(time.RFC3339Nano))
}

func (w *runWorld) root(name string) (cty.Value, error) {
	s := w.s
	if s == nil {
		return cty.NilVal, errNoScope
	}
	switch {
	case name == "run":
		key := cty.NullVal(cty.String)
		if s.Run.Key != "" {
			key = cty.StringVal(s.Run.Key)
		}
		return cty.ObjectVal(map[string]cty.Value{
			"id": cty.StringVal(s.Run.ID), "workflow": cty.StringVal(s.Run.Workflow), "key": key,
			"started_at": timeValue(s.Run.StartedAt), "tick": cty.NullVal(cty.String),
		}), nil
	case name == "each" && s.Each != nil:
		if err := w.meter().Input(value.LoadOf(s.Each.Value)); err != nil {
			return cty.NilVal, err
		}
		v, err := value.Decode(s.Each.Value)
		if err != nil {
			return cty.NilVal, fmt.Errorf("decode each.value: %w", err)
		}
		return cty.ObjectVal(map[string]cty.Value{"key": cty.StringVal(s.Each.Key), "value": v}), nil
	case name == "self" && s.Self != nil:
		if err := w.meter().Input(value.LoadOf(s.Self.Input).Plus(value.LoadOf(s.Self.Output))); err != nil {
			return cty.NilVal, err
		}
		return selfValue(s.Self, w.ev.steps[w.self])
	case name == "failure" && s.Failure != nil:
		return cty.ObjectVal(map[string]cty.Value{
			"step": cty.StringVal(s.Failure.Step), "code": cty.StringVal(s.Failure.Code), "message": cty.StringVal(s.Failure.Message),
		}), nil
	}
	return cty.NilVal, fmt.Errorf("%s has no value here", name)
}

// selfValue is self in a run.
func selfValue(s *Self, shape stepShape) (cty.Value, error) {
	in, err := decodeOutput(s.Input, shape.in)
	if err != nil {
		return cty.NilVal, fmt.Errorf("decode self.input: %w", err)
	}
	out := cty.NullVal(value.PlainType(shape.out))
	if s.OutputKnown {
		if out, err = decodeOutput(s.Output, shape.out); err != nil {
			return cty.NilVal, fmt.Errorf("decode self.output: %w", err)
		}
	}
	return cty.ObjectVal(map[string]cty.Value{
		"input": in, "output": out, "key": cty.StringVal(s.Key), "timed_out": cty.BoolVal(s.TimedOut),
	}), nil
}

func (w *runWorld) localValue(l *localDecl) (keptLocal, bool) {
	if v, ok := w.locals[l]; ok {
		return v, true
	}
	if m := w.memo(); m != nil {
		v, ok := m.locals[l]
		return v, ok
	}
	return keptLocal{}, false
}

func (w *runWorld) settle(l *localDecl, k keptLocal) bool {
	if _, ok := w.locals[l]; ok {
		return false
	}
	w.note(l, k)
	return true
}

func (w *runWorld) note(l *localDecl, k keptLocal) {
	if w.locals == nil {
		w.locals = map[*localDecl]keptLocal{}
	}
	w.locals[l] = k
}

// keepLocal remembers a local value, for the whole run if everything it was
// made of is final.
func (w *runWorld) keepLocal(l *localDecl, c *compiled, k keptLocal) {
	w.note(l, k)
	m := w.memo()
	if m == nil {
		return
	}
	for _, i := range c.steps {
		if _, final := m.steps[i]; !final {
			return
		}
	}
	if m.locals == nil {
		m.locals = map[*localDecl]keptLocal{}
	}
	m.locals[l] = k
}

// A checkWorld knows types only: it finds what is wrong before a run.
type checkWorld struct {
	ev     *evaluator
	vars   cty.Value
	steps  []cty.Value
	each   cty.Value
	self   cty.Value
	locals map[*localDecl]keptLocal
	used   *metered.Meter // of the expression that is looked at
	effort *metered.Allowance
}

// next begins with another expression.
func (w *checkWorld) next() { w.used = nil }

func (w *checkWorld) meter() *metered.Meter {
	if w.used == nil {
		w.used = &metered.Meter{Allowance: w.effort}
	}
	return w.used
}

func (w *checkWorld) settle(*localDecl, keptLocal) bool { return false }

func (w *checkWorld) variables() (cty.Value, error) { return w.vars, nil }

func (w *checkWorld) step(i int) (cty.Value, error) {
	if i >= len(w.steps) {
		return cty.DynamicVal, nil
	}
	return w.steps[i], nil
}

func (w *checkWorld) root(name string) (cty.Value, error) {
	str := cty.UnknownVal(cty.String).RefineNotNull()
	switch name {
	case "each":
		return w.each, nil
	case "self":
		return w.self, nil
	case "failure":
		return cty.ObjectVal(map[string]cty.Value{"step": str, "code": str, "message": str}), nil
	}
	return cty.ObjectVal(map[string]cty.Value{
		"id": str, "workflow": str, "started_at": str,
		"key": cty.UnknownVal(cty.String), "tick": cty.UnknownVal(cty.String),
	}), nil
}

func (w *checkWorld) localValue(l *localDecl) (keptLocal, bool) {
	v, ok := w.locals[l]
	return v, ok
}

func (w *checkWorld) keepLocal(l *localDecl, _ *compiled, k keptLocal) { w.locals[l] = k }
