package dsl

import (
	"fmt"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/report"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// compiledArgument prepares an argument that was written.
func (l argumentLinker) compiledArgument(spec *argSpec, a arg) argument {
	out := argument{spec: spec, name: a.name, path: []byte("/" + value.EscapePointer(a.name)), c: a.expr.Compiled, at: report.Range(a.expr.Range), preset: spec.preset()}
	switch {
	case len(a.expr.Syntax.Variables()) == 0: // perhaps with secret()
		v, err := l.ev.Run(out.c, &eval.Scope{}, max(l.cur, 0))
		if err == nil {
			v, err = spec.accept(v)
		}
		if err == nil {
			out.ready = readyOf(a.name, v) // else the error is that of each evaluation
		}
	case value.IsPlain(a.name):
		out.direct = l.direct(a.expr, shapeOf(spec.field.Type))
	}
	return out
}

// preset is what stands for an argument that is not written; nil if it has no
// default.
func (s *argSpec) preset() *ready {
	if s.def == cty.NilVal {
		return nil
	}
	return readyOf(s.field.Name, s.mark(s.def))
}

// readyOf writes an argument; nil if it cannot be.
func readyOf(name string, v cty.Value) *ready {
	if v == cty.NilVal {
		return &ready{}
	}
	e := value.Encoder{AllowSecrets: true}
	if err := e.Attribute(name, v, false); err != nil {
		return nil
	}
	return &ready{json: e.Out, sensitive: e.Sensitive, secrets: e.Secrets}
}

// usualSize is what room is made for in advance for a value that is not known.
const usualSize = 112

// fold evaluates arguments that refer to nothing once.
func (a *arguments) fold() {
	a.room = 2
	for _, x := range a.list {
		if x.ready == nil {
			a.room += len(x.name) + 4 + usualSize
		} else {
			a.room += len(x.ready.json) + 1
		}
	}
	for _, x := range a.list {
		if x.ready == nil {
			return
		}
	}
	if v, err := a.build(nil, false); err == nil {
		a.konst = &v
	}
}

// eval is the ValueFunc of the arguments.
func (a *arguments) eval(s *eval.Scope) (value.Value, error) { return a.build(s, false) }

// build evaluates the arguments; skipSelf leaves out those that depend on
// self.output. They are written one after the other. What cannot be written
// matters only if all can be evaluated.
func (a *arguments) build(s *eval.Scope, skipSelf bool) (value.Value, error) {
	if a.konst != nil {
		return *a.konst, nil
	}
	e := argumentWriter{value.Encoder{AllowSecrets: true, Out: make([]byte, 0, a.room)}}
	e.Out = append(e.Out, '{')
	var failed error
	for i := range a.list {
		x := &a.list[i]
		r := x.ready
		if skipSelf && x.c != nil && x.c.SelfOutput {
			if r = x.preset; r == nil {
				continue
			}
		}
		if r != nil {
			e.ready(r)
			continue
		}
		if x.direct != nil && e.direct(x, sight{ev: a.ev, s: s, self: a.self}) {
			continue
		}
		v, err := a.evaluate(x, s)
		if err != nil {
			return value.Value{}, err
		}
		if v != cty.NilVal && failed == nil {
			e.next()
			failed = e.Attribute(x.name, v, false)
		}
	}
	if failed != nil {
		return value.Value{}, fmt.Errorf("arguments: %w", failed)
	}
	if len(e.Out) > value.MaxSize {
		return value.Value{}, fmt.Errorf("arguments: %w", value.ErrSize)
	}
	e.Out = append(e.Out, '}')
	return e.Finish(), nil
}

// evaluate has the evaluator evaluate one argument.
func (a *arguments) evaluate(x *argument, s *eval.Scope) (cty.Value, error) {
	if x.c == nil {
		return x.spec.mark(x.spec.def), nil
	}
	v, err := a.ev.Run(x.c, s, a.self)
	if err != nil {
		return cty.NilVal, err
	}
	if v, err = x.spec.accept(v); err != nil {
		return cty.NilVal, fmt.Errorf("%s: argument %q: %w", x.at, x.name, err)
	}
	return v, nil
}

// An argumentWriter writes the object of all arguments.
type argumentWriter struct{ value.Encoder }

// next begins another attribute.
func (e *argumentWriter) next() {
	if e.Out[len(e.Out)-1] != '{' {
		e.Out = append(e.Out, ',')
	}
}

func (e *argumentWriter) ready(r *ready) {
	if r.json == nil {
		return
	}
	e.next()
	e.Out = append(e.Out, r.json...)
	e.Sensitive = append(e.Sensitive, r.sensitive...)
	e.Secrets = append(e.Secrets, r.secrets...)
}

// direct writes an argument without the evaluator; false leaves e as it was.
func (e *argumentWriter) direct(x *argument, at sight) bool {
	before, marks := len(e.Out), len(e.Sensitive)
	e.next()
	e.Out = append(append(append(e.Out, '"'), x.name...), '"', ':')
	from := len(e.Out)
	hidden := x.spec.field.Sensitive || x.spec.hide
	var ok bool
	e.Out, e.Sensitive, ok = x.direct.writeInto(&at, e.Out, x.path[:len(x.path):len(x.path)], e.Sensitive, hidden)
	if ok = ok && x.spec.takes(e.Out[from:]); !ok {
		e.Out, e.Sensitive = e.Out[:before], e.Sensitive[:marks]
	}
	return ok
}

// takes reports whether an argument is surely taken as it is written: neither
// null, for which there may be a default, nor outside its enum, nor a text that
// has to be looked at.
func (s *argSpec) takes(json []byte) bool {
	return s.words == nil && string(json) != "null" && (len(s.enum) == 0 || slices.Contains(s.enumText, string(json)))
}
