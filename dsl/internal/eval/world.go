package eval

import (
	"errors"
	"fmt"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/cron"
	"github.com/saga-engine/engine/dsl/internal/metered"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// A World supplies the values of references. In a run, a World supplies the values of the run.
// While a definition is checked, a World supplies unknown values.
type World interface {
	variables() (cty.Value, error)
	step(i int) (cty.Value, error)
	root(name string) (cty.Value, error) // returns the value of `each`, `self`, `failure`, `args`, `run` or `event`
	localValue(l *Local) (KeptLocal, bool)
	keepLocal(l *Local, c *Compiled, k KeptLocal)
	// mustCharge returns whether the caller must add the cost of the cached local l to the cost of
	// this evaluation. A runWorld returns true at the first use of l in the evaluation. A
	// CheckWorld always returns false, because the cost was added when the local was computed.
	mustCharge(l *Local, k KeptLocal) bool
	meter() *metered.Meter
}

// A runWorld is a World that takes the values from the Scope of a run.
type runWorld struct {
	ev   *Evaluator
	s    *Scope // values of the run; nil = no values are available
	self int    // index of the step that self.* describes
	// Expression that is evaluated. The fields of the Compiled say which attributes of `self` are
	// needed; nil = it is not known which ones are needed.
	c *Compiled
	// locals holds the locals that this evaluation has used. So the evaluation computes a local
	// only once, even if several other locals use it.
	locals map[*Local]KeptLocal
	used   metered.Meter // cost of this evaluation, including its locals
}

func (w *runWorld) meter() *metered.Meter {
	if w.s != nil {
		w.used.Allowance = w.s.Allowance
	}
	return &w.used
}

// ErrNoScope says that an expression cannot be evaluated without a Scope.
var ErrNoScope = errors.New("no values are available here")

func (w *runWorld) variables() (cty.Value, error) {
	if w.s == nil {
		return cty.NilVal, ErrNoScope
	}
	return w.ev.decodeVars(w.meter(), w.s.Vars)
}

// decodeVars decodes the object v of all variables, and converts each variable to its declared
// type. A variable that does not fit its type stays as it is. If only one workflow uses ev,
// decodeVars caches the decoded form in v, so the variables of a run are decoded only once.
func (ev *Evaluator) decodeVars(m *metered.Meter, v value.Value) (cty.Value, error) {
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
	raw, whole := raw.Unmark() // if the whole object is sensitive, each variable is sensitive, too
	attrs := map[string]cty.Value{}
	given := map[string]cty.Value{}
	if !raw.IsNull() && raw.Type().IsObjectType() {
		given = raw.AsValueMap()
	}
	for name, seen := range ev.Vars {
		x, ok := given[name]
		if !ok {
			x = cty.NullVal(cty.DynamicPseudoType)
		}
		if c, err := value.Conform(x, seen.Type); err == nil {
			x = c
		}
		if seen.Sensitive {
			x = x.Mark(value.SensitiveMark{})
		}
		x = x.WithMarks(whole)
		attrs[name] = x
	}
	out := cty.ObjectVal(attrs)
	if !ev.Shared {
		value.KeepDecoded(v, &value.Decoded{Owner: ev, Value: out, Load: size})
	}
	return out, nil
}

func (w *runWorld) memo() *Memo { return memoOf(w.s, w.ev) }

// memoOf returns the Memo of the scope. It returns nil if the scope has no Memo, or if ev is
// shared by many workflows. If another evaluator has made the entries of the Memo, memoOf removes
// these entries.
func memoOf(s *Scope, ev *Evaluator) *Memo {
	if s == nil || s.Memo == nil || ev.Shared {
		return nil
	}
	if m := s.Memo; m.owner != ev {
		*m = Memo{owner: ev}
	}
	return s.Memo
}

// ResultOf returns the result of the step with index i. If the step is finished and has for_each,
// ResultOf caches the result in the Memo, because Scope.Step is slow if there are many instances.
func ResultOf(s *Scope, ev *Evaluator, i int) StepResult {
	if !ev.Steps[i].Each {
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
	r := ResultOf(w.s, w.ev, i)
	size := loadOfStep(r)
	if err := w.meter().Input(size); err != nil {
		return cty.NilVal, err
	}
	v, err := w.ev.stepValue(i, r)
	if err != nil {
		return cty.NilVal, fmt.Errorf("decode the result of step %q: %w", w.ev.Steps[i].Name, err)
	}
	if m != nil && r.Final {
		if m.steps == nil {
			m.steps = map[int]keptStep{}
		}
		m.steps[i] = keptStep{v, size}
	}
	return v, nil
}

func (ev *Evaluator) stepValue(i int, r StepResult) (cty.Value, error) {
	shape := ev.Steps[i]
	if !shape.Each {
		return instanceValue(r.One, shape.Out)
	}
	attrs := make(map[string]cty.Value, len(r.Instances))
	for _, inst := range r.Instances {
		v, err := instanceValue(inst, shape.Out)
		if err != nil {
			return cty.NilVal, err
		}
		attrs[inst.Key] = v
	}
	return cty.ObjectVal(attrs), nil
}

// ErrorType is the type of step.NAME.error.
var ErrorType = cty.Object(map[string]cty.Type{"code": cty.String, "message": cty.String, "data": cty.DynamicPseudoType})

// instanceValue returns the value of step.NAME or step.NAME[KEY] in a run. The parameter `out` is
// the type of the output.
func instanceValue(r InstanceResult, out cty.Type) (cty.Value, error) {
	output, err := decodeOutput(r.Output, out)
	if err != nil {
		return cty.NilVal, err
	}
	fault := cty.NullVal(ErrorType)
	if r.ErrorCode != "" {
		if fault, err = faultValue(r.ErrorCode, r.ErrorText, r.ErrorData); err != nil {
			return cty.NilVal, err
		}
	}
	collected, err := value.Decode(r.Collected)
	if err != nil {
		return cty.NilVal, fmt.Errorf("decode collected: %w", err)
	}
	return cty.ObjectVal(map[string]cty.Value{
		"output": output, "status": cty.StringVal(r.Status), "attempts": cty.NumberIntVal(int64(r.Attempts)),
		"error": fault, "started_at": timeValue(r.StartedAt), "ended_at": timeValue(r.EndedAt),
		"timed_out": cty.BoolVal(r.TimedOut), "signal": signalValue(r.Signal), "collected": collected,
	}), nil
}

// faultValue returns the value of step.NAME.error or self.error.
func faultValue(code, text string, sent value.Value) (cty.Value, error) {
	data, err := value.Decode(sent)
	if err != nil {
		return cty.NilVal, fmt.Errorf("decode error.data: %w", err)
	}
	return cty.ObjectVal(map[string]cty.Value{"code": cty.StringVal(code), "message": cty.StringVal(text), "data": data}), nil
}

// decodeOutput decodes an output and converts it to ty. If the output does not fit this type,
// decodeOutput returns it without a conversion.
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
	return raw, nil // the output does not fit ty: for example, it is the output of a catch block
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
		return cty.NilVal, ErrNoScope
	}
	switch {
	case name == "run":
		key := cty.NullVal(cty.String)
		if s.Run.Key != "" {
			key = cty.StringVal(s.Run.Key)
		}
		status := cty.NullVal(cty.String)
		if s.Run.Status != "" {
			status = cty.StringVal(s.Run.Status)
		}
		_, tick, _ := cron.TickOf(s.Run.Trigger)
		return cty.ObjectVal(map[string]cty.Value{
			"id": cty.StringVal(s.Run.ID), "workflow": cty.StringVal(s.Run.Workflow), "key": key,
			"started_at": timeValue(s.Run.StartedAt), "tick": timeValue(tick), "status": status,
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
	case name == "self" && s.Self != nil && s.Self.ErrorCode != "": // in catch.output, self has only one attribute
		if err := w.meter().Input(value.LoadOf(s.Self.ErrorData)); err != nil {
			return cty.NilVal, err
		}
		fault, err := faultValue(s.Self.ErrorCode, s.Self.ErrorText, s.Self.ErrorData)
		return cty.ObjectVal(map[string]cty.Value{"error": fault}), err
	case name == "self" && s.Self != nil:
		load := value.LoadOf(s.Self.Input).Plus(value.LoadOf(s.Self.Output))
		if !s.Self.Given.IsNull() {
			load = load.Plus(value.LoadOf(s.Self.Given))
		}
		if err := w.meter().Input(load); err != nil {
			return cty.NilVal, err
		}
		return w.selfValue(s)
	case name == "args" && s.Self != nil:
		if err := w.meter().Input(value.LoadOf(s.Self.Input)); err != nil {
			return cty.NilVal, err
		}
		v, err := decodeOutput(s.Self.Input, w.ev.Steps[w.self].In)
		if err != nil {
			return cty.NilVal, fmt.Errorf("decode args: %w", err)
		}
		return v, nil
	case name == "event" && s.Event != nil:
		return w.eventValue(s.Event)
	case name == "failure" && s.Failure != nil:
		return cty.ObjectVal(map[string]cty.Value{
			"step": cty.StringVal(s.Failure.Step), "code": cty.StringVal(s.Failure.Code), "message": cty.StringVal(s.Failure.Message),
		}), nil
	}
	return cty.NilVal, fmt.Errorf("%s has no value here", name)
}

// eventValue returns the value of `event` in expressions: the sent event in the parameter e.
func (w *runWorld) eventValue(e *Event) (cty.Value, error) {
	if e.kept == cty.NilVal {
		e.load = value.LoadOf(e.Data)
	}
	if err := w.meter().Input(e.load); err != nil || e.kept != cty.NilVal {
		return e.kept, err
	}
	data, err := value.Decode(e.Data)
	if err != nil {
		return cty.NilVal, fmt.Errorf("decode event.data: %w", err)
	}
	e.kept = cty.ObjectVal(map[string]cty.Value{
		"id": cty.StringVal(e.ID), "type": cty.StringVal(e.Type), "at": timeValue(e.At), "data": data,
	})
	return e.kept, nil
}

// selfValue returns the value of `self` for the expression that is evaluated. It makes self.input,
// self.previous and self.collected only if the expression uses them. If it is not known which ones
// the expression uses (w.c is nil), selfValue makes only self.input. There are two reasons:
//   - Collected values may be large.
//   - The evaluation must end. To make self.input, selfInput may have to evaluate the input of the
//     step, which may use self.previous and self.collected. If selfValue made self.input for this
//     evaluation, too, selfInput would evaluate the input again, without end.
func (w *runWorld) selfValue(s *Scope) (cty.Value, error) {
	shape := w.ev.Steps[w.self]
	attrs, err := selfParts(s, shape)
	if err != nil {
		return cty.NilVal, err
	}
	if w.c == nil || w.c.SelfInput {
		if attrs["input"], err = selfInput(s, shape); err != nil {
			return cty.NilVal, err
		}
	}
	if w.c == nil {
		return cty.ObjectVal(attrs), nil
	}
	if w.c.SelfPrevious {
		if err := w.meter().Input(value.LoadOf(s.Self.Previous)); err != nil {
			return cty.NilVal, err
		}
		if attrs["previous"], err = decodeOutput(s.Self.Previous, shape.Out); err != nil {
			return cty.NilVal, fmt.Errorf("decode self.previous: %w", err)
		}
	}
	if w.c.SelfCollected {
		all := value.NewValue([]byte("[]"), nil, nil)
		if s.Self.Collected != nil {
			all = s.Self.Collected()
		}
		if err := w.meter().Input(value.LoadOf(all)); err != nil {
			return cty.NilVal, err
		}
		if attrs["collected"], err = value.Decode(all); err != nil {
			return cty.NilVal, fmt.Errorf("decode self.collected: %w", err)
		}
	}
	return cty.ObjectVal(attrs), nil
}

// SelfValue returns the value of `self` in a run, without self.previous and self.collected. The
// field Self of the scope s must not be nil. The parameter `shape` describes the step: it holds the
// types of the input and the output.
func SelfValue(s *Scope, shape StepShape) (cty.Value, error) {
	attrs, err := selfParts(s, shape)
	if err != nil {
		return cty.NilVal, err
	}
	if attrs["input"], err = selfInput(s, shape); err != nil {
		return cty.NilVal, err
	}
	return cty.ObjectVal(attrs), nil
}

// selfParts returns the attributes of `self` that need no evaluation of another expression. It
// leaves out self.previous and self.collected.
func selfParts(s *Scope, shape StepShape) (map[string]cty.Value, error) {
	out := cty.NullVal(value.PlainType(shape.Out))
	if s.Self.OutputKnown {
		var err error
		if out, err = decodeOutput(s.Self.Output, shape.Out); err != nil {
			return nil, fmt.Errorf("decode self.output: %w", err)
		}
	}
	return map[string]cty.Value{
		"output": out, "key": cty.StringVal(s.Self.Key), "timed_out": cty.BoolVal(s.Self.TimedOut), "signal": signalValue(s.Self.Signal),
	}, nil
}

// ErrOwnInput says that an expression in the input of a step uses self.input. Package decl refuses
// such an expression. ErrOwnInput is a second protection: without it, the evaluation of such an
// expression would never end, and the process would die.
var ErrOwnInput = errors.New("self.input cannot be used in the input of its own step")

// selfInput returns the value of self.input. If the step calls a declared action and the run has
// not stored the arguments, selfInput evaluates the input of the step again.
func selfInput(s *Scope, shape StepShape) (cty.Value, error) {
	input := s.Self.Input
	switch {
	case shape.Given == nil:
	case !s.Self.Given.IsNull():
		input = s.Self.Given
	case s.inGiven:
		return cty.NilVal, ErrOwnInput
	default:
		inner := *s
		inner.inGiven = true
		var err error
		if input, err = shape.Given(&inner); err != nil {
			return cty.NilVal, err
		}
	}
	in, err := decodeOutput(input, shape.In)
	if err != nil {
		return cty.NilVal, fmt.Errorf("decode self.input: %w", err)
	}
	return in, nil
}

// signalValue returns the value of step.NAME.signal or self.signal: null if no signal has ended the
// wait.
func signalValue(name string) cty.Value {
	if name == "" {
		return cty.NullVal(cty.String)
	}
	return cty.StringVal(name)
}

func (w *runWorld) localValue(l *Local) (KeptLocal, bool) {
	if v, ok := w.locals[l]; ok {
		return v, true
	}
	if m := w.memo(); m != nil {
		v, ok := m.locals[l]
		return v, ok
	}
	return KeptLocal{}, false
}

func (w *runWorld) mustCharge(l *Local, k KeptLocal) bool {
	if _, ok := w.locals[l]; ok {
		return false
	}
	w.note(l, k)
	return true
}

func (w *runWorld) note(l *Local, k KeptLocal) {
	if w.locals == nil {
		w.locals = map[*Local]KeptLocal{}
	}
	w.locals[l] = k
}

// keepLocal caches the value k of the local l. If all steps to which l refers have finished,
// keepLocal caches k for the whole run. Otherwise it caches k only for this evaluation.
func (w *runWorld) keepLocal(l *Local, c *Compiled, k KeptLocal) {
	w.note(l, k)
	m := w.memo()
	if m == nil {
		return
	}
	for _, i := range c.Steps {
		if _, final := m.steps[i]; !final {
			return
		}
	}
	if m.locals == nil {
		m.locals = map[*Local]KeptLocal{}
	}
	m.locals[l] = k
}
