package argument

import (
	"fmt"

	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/fasteval"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// A List holds the compiled attributes of an input or config block.
type List struct {
	Evaluator *eval.Evaluator
	Self      int        // index of the step that self.* describes
	List      []Argument // arguments in the source and arguments with a default, sorted by name
	UsesSelf  bool       // true = an argument uses self.output
	// Instead returns another value for an argument that cannot be evaluated. If the value is
	// cty.NilVal, Build leaves the argument out. If the second result is false, there is no other
	// value, and Build returns the error. Instead is nil, except in a notify block.
	Instead func(x *Argument, s *eval.Scope) (cty.Value, bool)
	konst   *value.Value // object of all arguments, if it is known before a run; otherwise nil
	size    int          // estimated size in bytes of the JSON object of all arguments
}

// An Argument is one attribute of an input or config block.
type Argument struct {
	Spec     *Spec
	Name     string
	Path     []byte         // JSON pointer of the argument, such as /amount
	Compiled *eval.Compiled // expression of the argument; nil = not in the source, use the default
	At       diag.Range     // position of the argument in the source
	Fast     *fasteval.Expr // expression for the fast evaluator; nil = use the general evaluator
	Ready    *ready         // encoded value; nil = not known before a run
	Preset   *ready         // encoded default; nil = the argument has no default
}

// The type ready holds the encoded value or the encoded default of an argument. If the field `json`
// is nil, the object of all arguments does not contain the argument.
type ready struct {
	json      []byte   // name, colon and value as JSON
	sensitive []string // JSON pointers of sensitive parts in the object of all arguments
	secrets   []value.Secret
}

// ReadyOf encodes the value v of the argument with this name. If v is cty.NilVal, the result
// contains no JSON. ReadyOf returns nil if it cannot encode v.
func ReadyOf(name string, v cty.Value) *ready {
	if v == cty.NilVal {
		return &ready{}
	}
	e := value.Encoder{AllowSecrets: true}
	if err := e.Attribute(name, v, false); err != nil {
		return nil
	}
	return &ready{json: e.Out, sensitive: e.Sensitive, secrets: e.Secrets}
}

// usualSize is the size in bytes that Fold assumes for an argument whose value is not known
// before a run.
const usualSize = 112

// Fold estimates the size of the object of all arguments. If all arguments are known before a
// run, Fold also builds this object, so that Build need not do so for each call.
func (a *List) Fold() {
	a.size = 2
	for _, x := range a.List {
		if x.Ready == nil {
			a.size += len(x.Name) + 4 + usualSize
		} else {
			a.size += len(x.Ready.json) + 1
		}
	}
	for _, x := range a.List {
		if x.Ready == nil {
			return
		}
	}
	if v, err := a.Build(nil, false); err == nil {
		a.konst = &v
	}
}

// Eval evaluates all arguments and returns one object. Callers use Eval as a ValueFunc.
func (a *List) Eval(s *eval.Scope) (value.Value, error) { return a.Build(s, false) }

// Build evaluates all arguments and returns one object. If the parameter `skipSelf` is true, Build
// does not evaluate an argument that depends on self.output. Such an argument gets its default. If
// the argument has no default, Build leaves it out. Build may find two errors: one argument cannot
// be evaluated, and a different argument cannot be encoded. Then it returns the error of the
// evaluation.
func (a *List) Build(s *eval.Scope, skipSelf bool) (value.Value, error) {
	if a.konst != nil {
		return *a.konst, nil
	}
	e := argumentWriter{value.Encoder{AllowSecrets: true, Out: make([]byte, 0, a.size)}}
	e.Out = append(e.Out, '{')
	var failed error
	for i := range a.List {
		x := &a.List[i]
		r := x.Ready
		if skipSelf && x.Compiled != nil && x.Compiled.SelfOutput {
			if r = x.Preset; r == nil {
				continue
			}
		}
		if r != nil {
			e.ready(r)
			continue
		}
		if x.Fast != nil && e.fast(x, fasteval.Context{Evaluator: a.Evaluator, Scope: s, Self: a.Self}) {
			continue
		}
		v, err := a.evaluate(x, s)
		if err != nil && a.Instead != nil {
			if instead, ok := a.Instead(x, s); ok {
				v, err = instead, nil
			}
		}
		if err != nil {
			return value.Value{}, err
		}
		if v != cty.NilVal && failed == nil {
			e.next()
			failed = e.Attribute(x.Name, v, false)
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

// evaluate evaluates one argument with the general evaluator. It returns cty.NilVal if the
// argument must be left out.
func (a *List) evaluate(x *Argument, s *eval.Scope) (cty.Value, error) {
	if x.Compiled == nil {
		return x.Spec.mark(x.Spec.Default), nil
	}
	v, err := a.Evaluator.Run(x.Compiled, s, a.Self)
	if err != nil {
		return cty.NilVal, err
	}
	if v, err = x.Spec.Accept(v); err != nil {
		return cty.NilVal, fmt.Errorf("%s: argument %q: %w", x.At, x.Name, err)
	}
	return v, nil
}

// An argumentWriter writes the object of all arguments.
type argumentWriter struct{ value.Encoder }

// next writes a comma, except before the first attribute.
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

// fast evaluates the argument x with the fast evaluator, and writes the value to e. It
// returns false and does not change e in two cases: the fast evaluator cannot evaluate x, or
// the value needs more checks.
func (e *argumentWriter) fast(x *Argument, at fasteval.Context) bool {
	before, marks := len(e.Out), len(e.Sensitive)
	e.next()
	e.Out = append(append(append(e.Out, '"'), x.Name...), '"', ':')
	from := len(e.Out)
	hidden := x.Spec.Field.Sensitive || x.Spec.hide
	var ok bool
	e.Out, e.Sensitive, ok = x.Fast.WriteInto(&at, e.Out, x.Path[:len(x.Path):len(x.Path)], e.Sensitive, hidden)
	if ok = ok && x.Spec.takes(e.Out[from:]); !ok {
		e.Out, e.Sensitive = e.Out[:before], e.Sensitive[:marks]
	}
	return ok
}
