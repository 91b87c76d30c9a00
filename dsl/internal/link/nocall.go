package link

import (
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/decl"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/noun"
	"github.com/saga-engine/engine/dsl/internal/syntax"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// shapeWithoutCall adds a step without a call to l.steps, and adds the type of its output to
// l.ev.Steps and l.world.Steps. For a value step, this type is not known yet. The method
// valueShapes sets the type later, when all steps are in these lists.
func (l *workflowLinker) shapeWithoutCall(s *decl.Step) {
	shape := eval.StepShape{Name: s.Name, Each: s.Each(), Out: cty.DynamicPseudoType, In: cty.EmptyObject}
	output := cty.DynamicVal
	switch s.Kind {
	case decl.StepTimer:
		output = cty.NullVal(cty.DynamicPseudoType)
	case decl.StepWait:
		shape.Out = s.Wait.Payload
		output = value.UnknownOf(shape.Out)
	}
	l.steps = append(l.steps, &linkedStep{decl: s, readOnly: true})
	l.ev.Steps = append(l.ev.Steps, shape)
	l.world.Steps = append(l.world.Steps, unknownStep(shape, output))
}

// outputBefore returns the output of step i for the checks before a run. Step i must be a timer, a
// wait step or a value step. The output of a timer is null. Any other output is an unknown value,
// with its type if the type is known.
func (l *workflowLinker) outputBefore(i int) cty.Value {
	s := l.decl.Steps[i]
	switch s.Kind {
	case decl.StepTimer:
		return cty.NullVal(cty.DynamicPseudoType)
	case decl.StepWait:
		return value.UnknownOf(l.ev.Steps[i].Out)
	}
	return unknownLike(l.quietly(s.Attr("value")))
}

// withoutCall links a step that calls no agent. It sets the settings, the error codes that the
// catch block may name, and what the step does.
func (l stepLinker) withoutCall(d *decl.Step, ls *linkedStep, out *noun.Step) {
	out.Do = noun.NoCall
	out.Retryable = func(string) bool { return false }
	out.Input = func(*eval.Scope) (value.Value, error) { return value.NewValue([]byte("{}"), nil, nil), nil }
	out.Settings, ls.static = settingsOf(l.workflowLinker, forwardDefaults(true), stepSettings(l.decl, d, true))
	codes := knownCodes{others: "A step without a call does not fail with"}
	for _, c := range d.Conditions() {
		if c.Code != nil {
			codes.literals(c.Code)
		}
	}
	codes.own = append(codes.own, loopCodes(d)...)
	switch d.Kind {
	case decl.StepValue:
		if e := d.Attr("value"); e != nil {
			out.Value = argumentLinker(l).valueFunc(e, "value", false, nil)
		}
	case decl.StepTimer:
		l.timer(d, ls, out)
	case decl.StepWait:
		out.Wait = l.wait(d)
		codes.open = true // `engine signal --fail` can give any code
	}
	if d.Catch != nil {
		codeLinker(l).codes(d.Catch.Attr("errors"), codes, noun.AllCodes)
	}
}

func (l stepLinker) timer(d *decl.Step, ls *linkedStep, out *noun.Step) {
	if e := d.Timer.Attr("duration"); e != nil {
		out.Until = exprFunc(l.workflowLinker, e, "duration", cty.String, func(v cty.Value) (noun.Limit, error) {
			span, err := value.SpanOf(v)
			return noun.Limit{After: span}, err
		})
		if c := e.Compiled; !e.Bad && c != nil && c.Constant != nil {
			if span, err := value.SpanOf(*c.Constant); err == nil {
				ls.timer = span
			}
		}
		return
	}
	out.Until = exprFunc(l.workflowLinker, d.Timer.Attr("until"), "until", cty.String, func(v cty.Value) (noun.Limit, error) {
		limit, err := limitOf(v)
		if err != nil || limit.At.IsZero() {
			return noun.Limit{}, errInstant
		}
		return limit, nil
	})
}

func (l stepLinker) wait(d *decl.Step) *noun.Wait {
	w := &noun.Wait{Continue: d.Wait.Continue, Payload: payloadFunc(d.Wait)}
	if e := d.Wait.Block.Attr("on_timeout"); e != nil && d.Attr("deadline") == nil {
		l.Errorf(e.Range, "Wait without deadline",
			"on_timeout says what happens when the deadline of the step passes, and this step has none. Write deadline = \"48h\", or remove on_timeout.")
	}
	e := d.Wait.Block.Attr("signal")
	if e == nil {
		return w
	}
	if l.check(e).ContainsMarked() {
		l.Errorf(e.Range, "Sensitive value in signal", "The name of a signal is stored in clear and shown, so it cannot hold a sensitive value.")
	}
	w.Signals = exprFunc(l.workflowLinker, e, "signal", cty.DynamicPseudoType, signalsOf)
	if c := e.Compiled; !e.Bad && c != nil && c.Constant != nil {
		if names, err := signalsOf(*c.Constant); err == nil {
			w.Names = names
		}
	}
	return w
}

// maxSignalNames is the largest number of signals that one wait may name.
const maxSignalNames = 100

// signalsOf converts a value to names of signals. The value is one name or a list of names. The
// result is sorted and holds each name once. An invalid name, or no name, is an error.
func signalsOf(v cty.Value) ([]string, error) {
	if v.ContainsMarked() {
		return nil, errors.New("the name of a signal cannot be sensitive")
	}
	var names []string
	if v.IsKnown() && !v.IsNull() && v.Type() == cty.String {
		names = []string{v.AsString()}
	} else {
		var err error
		if names, err = value.StringsOf(v); err != nil {
			return nil, errors.New("the name of a signal, or a list of names, is required")
		}
	}
	switch n := len(names); {
	case n == 0:
		return nil, errors.New("at least one signal must be named")
	case n > maxSignalNames:
		return nil, fmt.Errorf("%d signals are named; at most %d are allowed", n, maxSignalNames)
	}
	for _, name := range names {
		if !syntax.ValidName(name) {
			return nil, fmt.Errorf("%.100q is not the name of a signal: it begins with a letter or _ and holds only letters, digits, _ and -, at most 100 of them", name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// payloadFunc returns the function for noun.Wait.Payload. The function converts the JSON payload of
// a signal to the type that the wait block declares. If the block declares no type, or the type
// `any`, the function accepts every payload, and returns null for a signal without a payload. If
// the block declares another type, a signal without a payload is an error.
func payloadFunc(w *decl.Wait) func([]byte) (value.Value, error) {
	ty, defaults := w.Payload, w.Default
	return func(raw []byte) (value.Value, error) {
		if len(raw) == 0 {
			raw = []byte("null")
		}
		if err := value.CheckDepth(raw); err != nil {
			return value.Value{}, err
		}
		v, err := value.DecodeJSON(raw)
		if err != nil {
			return value.Value{}, err
		}
		if ty == cty.DynamicPseudoType {
			return value.Encode(v, false)
		}
		if v.IsNull() {
			return value.Value{}, fmt.Errorf("the step waits for a payload of type %s, and the signal carries none", typeexpr.TypeString(ty))
		}
		if v, err = conformPayload(v, ty, defaults); err != nil {
			return value.Value{}, err
		}
		return value.Encode(v, false)
	}
}

func conformPayload(v cty.Value, ty cty.Type, defaults *typeexpr.Defaults) (cty.Value, error) {
	if defaults != nil && !v.Type().IsPrimitiveType() {
		v = defaults.Apply(v)
	}
	return value.Conform(v, ty)
}
