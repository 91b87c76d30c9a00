package fasteval

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/metered"
	"github.com/saga-engine/engine/dsl/internal/sorted"
	"github.com/saga-engine/engine/dsl/internal/value"
	"github.com/saga-engine/engine/sdk/schema"
)

// An Expr is a compiled expression. It reads the JSON bytes of the values to which the expression
// refers. An Expr is a constant, a reference, a template, an object, a list, a comparison or a
// logical operation. If anything is unusual, an Expr gives no result. Then the general evaluator
// (package eval) evaluates the expression. If an Expr gives a result, the general evaluator would
// give the same result.
type Expr struct {
	kind  exprKind   // kind of the expression; it decides which of the following fields are used
	json  []byte     // canonical JSON of a constant; for a part of a template, the bytes inside of the string
	ref   *reference // where the value of a reference is
	shape *Shape     // shape that the value of a constant or reference must have
	keys  []string   // sorted attribute names of an object; keys[i] belongs to parts[i]
	parts []*Expr    // parts of a template, object, list or operation
	op    *hclsyntax.Operation
	local bool // true = the expression is the value of a local, whose size is limited
}

// maxNodes is the largest number of nodes of an Expr. Without a limit, the number of nodes could
// grow exponentially: a local may refer twice to a second local, which refers twice to a third
// local, and so on.
const maxNodes = 200

// smallLocal is a size of JSON, in bytes. A local of at most this size certainly passes the check
// of checkSize in package eval. An expression with a larger local needs this check, so the general
// evaluator must evaluate it.
const smallLocal = 64 << 10

type exprKind uint8

const (
	kindConstant exprKind = iota + 1
	kindReference
	kindTemplate
	kindObject
	kindList
	kindOperation
)

// Compile compiles the expression e of a step. The parameter `self` is the index of the step, and
// the parameter `to` is the shape that the result must have. The parameter `effort` limits the cost
// of compiling. Compile returns nil if the general evaluator must evaluate e.
func Compile(ev *eval.Evaluator, self int, e *eval.Expr, to *Shape, effort *metered.Allowance) *Expr {
	if e == nil || e.Bad || e.Compiled == nil || e.Compiled.Secrets {
		return nil
	}
	nodes := 0
	x := Context{Evaluator: ev, Self: self, locals: e.Compiled.Locals, nodes: &nodes, effort: effort}
	return x.compile(e.Syntax, to)
}

// compile compiles an expression. The result of the expression must have the shape `to`. The method
// `compile` returns nil if the general evaluator must evaluate the expression.
func (x *Context) compile(e hclsyntax.Expression, to *Shape) *Expr {
	if *x.nodes++; to == nil || *x.nodes > maxNodes {
		return nil
	}
	if len(e.Variables()) == 0 {
		return x.constant(e, to)
	}
	switch e := e.(type) {
	case *hclsyntax.TemplateWrapExpr:
		return x.compile(e.Wrapped, to)
	case *hclsyntax.ParenthesesExpr:
		return x.compile(e.Expression, to)
	case *hclsyntax.ScopeTraversalExpr:
		if e.Traversal.RootName() == "local" {
			return x.localValue(e, to)
		}
		return referring(x.reference(e.Traversal), to)
	case *hclsyntax.RelativeTraversalExpr:
		return referring(x.instanceReference(e), to)
	case *hclsyntax.TemplateExpr:
		return x.template(e, to)
	case *hclsyntax.ObjectConsExpr:
		return x.object(e, to)
	case *hclsyntax.TupleConsExpr:
		if to.kind != schema.KindAny {
			return nil
		}
		d := &Expr{kind: kindList}
		return d.of(x, Anything, e.Exprs...)
	case *hclsyntax.BinaryOpExpr:
		return x.operation(e.Op, to, e.LHS, e.RHS)
	case *hclsyntax.UnaryOpExpr:
		return x.operation(e.Op, to, e.Val)
	}
	return nil
}

// localValue compiles a reference local.NAME: it compiles the expression of this local. It
// returns nil if the general evaluator must evaluate the reference.
func (x *Context) localValue(e *hclsyntax.ScopeTraversalExpr, to *Shape) *Expr {
	if len(e.Traversal) != 2 {
		return nil
	}
	first, ok := pathStepOf(e.Traversal[1])
	i := slices.IndexFunc(x.locals, func(l *eval.Local) bool { return ok && l.Name == first.Name })
	if i < 0 || x.locals[i].Expr.Bad || x.locals[i].Expr.Compiled == nil || x.locals[i].Expr.Compiled.Secrets {
		return nil
	}
	c := x.locals[i].Expr.Compiled
	inner := Context{Evaluator: x.Evaluator, Self: x.Self, locals: c.Locals, nodes: x.nodes, effort: x.effort}
	d := inner.compile(c.Syntax, to)
	if d != nil {
		d.local = true
	}
	return d
}

// The method `of` compiles each expression in the parameter `list`, and appends the compiled
// expressions to d.parts. It returns d, or nil if it cannot compile one of the expressions.
func (d *Expr) of(x *Context, to *Shape, list ...hclsyntax.Expression) *Expr {
	for _, e := range list {
		p := x.compile(e, to)
		if p == nil {
			return nil
		}
		d.parts = append(d.parts, p)
	}
	return d
}

// constant evaluates an expression without references. It returns nil if the general evaluator
// must evaluate the expression.
func (x *Context) constant(e hclsyntax.Expression, to *Shape) *Expr {
	if len(eval.Calls(e, "secret")) > 0 {
		return nil
	}
	v, diags := metered.EvaluateOnce(e, x.Evaluator.Funcs, x.effort)
	if diags.HasErrors() || v.ContainsMarked() {
		return nil
	}
	out, err := value.Encode(v, false)
	if err != nil {
		return nil
	}
	d := &Expr{kind: kindConstant, json: out.JSON(), shape: to}
	// The bytes are canonical, because Encode has written them. So Canonical refuses them only if
	// the value does not fit the shape.
	if to.kind != schema.KindAny {
		if _, ok := Canonical(to, d.json); !ok {
			return nil
		}
	}
	return d
}

func referring(r *reference, to *Shape) *Expr {
	if r == nil {
		return nil
	}
	sh := meet(r.shape, to)
	if sh == nil {
		return nil
	}
	return &Expr{kind: kindReference, ref: r, shape: sh}
}

// instanceReference compiles step.NAME[KEY].output.A, where KEY is a reference, too. It returns
// nil if the general evaluator must read the value.
func (x *Context) instanceReference(e *hclsyntax.RelativeTraversalExpr) *reference {
	index, ok := e.Source.(*hclsyntax.IndexExpr)
	if !ok {
		return nil
	}
	coll, ok := index.Collection.(*hclsyntax.ScopeTraversalExpr)
	if !ok || coll.Traversal.RootName() != "step" || len(coll.Traversal) != 2 {
		return nil
	}
	key, ok := index.Key.(*hclsyntax.ScopeTraversalExpr)
	if !ok {
		return nil
	}
	first, ok := pathStepOf(coll.Traversal[1])
	if !ok {
		return nil
	}
	r := &reference{root: "step", key: x.reference(key.Traversal)}
	if r.key == nil || r.key.shape == nil {
		return nil
	}
	r.step = slices.IndexFunc(x.Evaluator.Steps, func(s eval.StepShape) bool { return s.Name == first.Name })
	if r.step < 0 || !x.Evaluator.Steps[r.step].Each {
		return nil
	}
	r.each = true
	var rest []value.PathStep
	for _, t := range e.Traversal {
		p, ok := pathStepOf(t)
		if !ok {
			return nil
		}
		rest = append(rest, p)
	}
	return x.ofStep(r, rest)
}

// template compiles a string with interpolations. It returns nil if a part of the string is
// neither a reference nor a constant that inTemplate accepts.
func (x *Context) template(e *hclsyntax.TemplateExpr, to *Shape) *Expr {
	if to.kind != schema.KindAny && to.kind != schema.KindString {
		return nil
	}
	d := &Expr{kind: kindTemplate}
	for _, p := range e.Parts {
		part := x.compile(p, Anything)
		if part == nil {
			return nil
		}
		switch part.kind {
		case kindConstant:
			text, ok := inTemplate(part.json)
			if !ok {
				return nil
			}
			part.json = text
		case kindReference:
		default:
			return nil
		}
		d.parts = append(d.parts, part)
	}
	return d
}

// inTemplate returns the bytes that a JSON value adds to the string of a template. It returns
// false for a text that is not ASCII, because Unicode normalisation may join such a text with
// the text next to it. It also returns false for large numbers, fractions, null, lists and objects.
func inTemplate(raw []byte) ([]byte, bool) {
	switch {
	case len(raw) == 0:
	case raw[0] == '"':
		ascii := !bytes.Contains(raw, []byte(`\u`)) && !slices.ContainsFunc(raw, func(c byte) bool { return c >= 0x7f })
		return raw[1 : len(raw)-1], ascii
	case raw[0] == 't', raw[0] == 'f':
		return raw, true
	case raw[0] != '{' && raw[0] != '[' && raw[0] != 'n':
		return raw, len(raw) <= 15 && bytes.IndexByte(raw, '.') < 0
	}
	return nil, false
}

// object compiles an object whose keys are plain constants (value.IsPlain). It returns nil for any
// other object, if a key occurs twice, or if it cannot compile one of the values.
func (x *Context) object(e *hclsyntax.ObjectConsExpr, to *Shape) *Expr {
	if to.kind != schema.KindAny {
		return nil
	}
	values := map[string]hclsyntax.Expression{}
	for _, item := range e.Items {
		if len(item.KeyExpr.Variables()) > 0 || len(eval.Calls(item.KeyExpr, "secret")) > 0 {
			return nil
		}
		k, diags := metered.EvaluateOnce(item.KeyExpr, x.Evaluator.Funcs, x.effort)
		if diags.HasErrors() || k.IsMarked() || k.Type() != cty.String || !k.IsKnown() || k.IsNull() || !value.IsPlain(k.AsString()) {
			return nil
		}
		if _, twice := values[k.AsString()]; twice {
			return nil
		}
		values[k.AsString()] = item.ValueExpr
	}
	d := &Expr{kind: kindObject, keys: sorted.Keys(values)}
	for _, k := range d.keys {
		if d.of(x, Anything, values[k]) == nil {
			return nil
		}
	}
	return d
}

// operation compiles a comparison or a logical operation. It returns nil for any other operator,
// or if it cannot compile one of the operands.
func (x *Context) operation(op *hclsyntax.Operation, to *Shape, operands ...hclsyntax.Expression) *Expr {
	if to.kind != schema.KindAny && to.kind != schema.KindBool {
		return nil
	}
	switch op {
	case hclsyntax.OpEqual, hclsyntax.OpNotEqual, hclsyntax.OpLogicalAnd, hclsyntax.OpLogicalOr, hclsyntax.OpLogicalNot,
		hclsyntax.OpGreaterThan, hclsyntax.OpGreaterThanOrEqual, hclsyntax.OpLessThan, hclsyntax.OpLessThanOrEqual:
		d := &Expr{kind: kindOperation, op: op}
		return d.of(x, Anything, operands...)
	}
	return nil
}

// WriteInto evaluates d. It appends the result as JSON to the slice `out`, and the JSON pointers of
// the sensitive parts to the slice `marks`. It returns both slices. The parameter `path` is the
// JSON pointer of the result in its document. If `hidden` is true, the whole result is sensitive.
// WriteInto returns false if the general evaluator must evaluate d. Then the returned bytes may end
// with a part of the result.
func (d *Expr) WriteInto(x *Context, out, path []byte, marks []string, hidden bool) ([]byte, []string, bool) {
	c := canonicalWriter{out: out, path: path, marks: marks, depth: 1}
	if hidden {
		c.marks = append(c.marks, string(c.path))
	}
	ok := d.write(x, &c, hidden)
	return c.out, c.marks, ok
}

// write evaluates d and appends the result to c.out as canonical JSON. c.path is the JSON pointer
// of the result in its document. The method `write` returns false if the general evaluator must
// evaluate d.
func (d *Expr) write(x *Context, c *canonicalWriter, hidden bool) bool {
	from := len(c.out)
	return d.append(x, c, hidden) && (!d.local || len(c.out)-from <= smallLocal)
}

func (d *Expr) append(x *Context, c *canonicalWriter, hidden bool) bool {
	switch d.kind {
	case kindConstant:
		return c.other(d.json, d.shape, hidden)
	case kindReference:
		f, ok := d.ref.find(x)
		if !ok {
			return false
		}
		if f.sensitive && !hidden {
			c.marks = append(c.marks, string(c.path))
			hidden = true
		}
		if f.raw == nil {
			c.out = value.AppendText(c.out, cty.NormalizeString(f.text))
			return d.shape.kind == schema.KindAny || d.shape.kind == schema.KindString
		}
		return c.other(f.raw, d.shape, hidden)
	case kindTemplate:
		return d.writeTemplate(x, c, hidden)
	case kindObject, kindList:
		return d.writeParts(x, c, hidden)
	case kindOperation:
		v, ok := d.truth(x, c)
		c.out = strconv.AppendBool(c.out, v)
		return ok
	}
	return false
}

// Scalar evaluates d and returns the result. The result `ok` is false if the value is sensitive, or
// is not a string, number or boolean. It is also false if d is nil, or if the general evaluator
// must evaluate the expression.
func (d *Expr) Scalar(x *Context) (v cty.Value, ok bool) {
	if d == nil {
		return cty.NilVal, false
	}
	if d.kind == kindReference && !d.local {
		if f, ok := d.ref.find(x); ok && !f.sensitive && f.raw == nil {
			return cty.StringVal(f.text), true
		}
	}
	c := canonicalWriter{out: make([]byte, 0, 64)}
	if !d.write(x, &c, false) || len(c.marks) > 0 {
		return cty.NilVal, false
	}
	switch c.out[0] {
	case '"':
		s, ok := plainText(c.out)
		return cty.StringVal(s), ok
	case 't', 'f':
		return cty.BoolVal(c.out[0] == 't'), true
	case '{', '[', 'n':
		return cty.NilVal, false
	}
	v, err := value.ParseNumber(string(c.out))
	return v, err == nil
}

// Value evaluates d and returns the result. If the parameter `whole` is true, Value marks the whole
// result as sensitive. It returns false if the general evaluator must evaluate d.
func (d *Expr) Value(x *Context, whole bool) (value.Value, bool) {
	c := canonicalWriter{}
	if whole {
		c.marks = []string{""}
	}
	if !d.write(x, &c, whole) || len(c.out) > value.MaxSize {
		return value.Value{}, false
	}
	slices.Sort(c.marks)
	return value.NewValue(c.out, c.marks, nil), true
}

// other makes c read the JSON value in raw, and appends this value to c.out. It returns false if
// the general evaluator must copy the value.
func (c *canonicalWriter) other(raw []byte, sh *Shape, hidden bool) bool {
	c.Lexer = value.Lex(raw)
	c.out = slices.Grow(c.out, len(raw)+1)
	return c.value(sh, hidden) && c.End()
}

func (d *Expr) writeTemplate(x *Context, c *canonicalWriter, hidden bool) bool {
	c.out = append(c.out, '"')
	sensitive := false
	for _, p := range d.parts {
		if p.kind == kindConstant {
			c.out = append(c.out, p.json...)
			continue
		}
		f, ok := p.ref.find(x)
		if !ok || p.local && len(f.raw)+len(f.text) > smallLocal {
			return false
		}
		sensitive = sensitive || f.sensitive
		at := len(c.out)
		if f.raw == nil {
			c.out = value.AppendText(c.out, f.text)
		} else if !c.other(f.raw, p.shape, true) {
			return false
		}
		text, ok := inTemplate(c.out[at:])
		if !ok {
			return false
		}
		c.out = append(c.out[:at], text...)
	}
	c.out = append(c.out, '"')
	if sensitive && !hidden {
		c.marks = append(c.marks, string(c.path))
	}
	return true
}

func (d *Expr) writeParts(x *Context, c *canonicalWriter, hidden bool) bool {
	brackets := "{}"
	if d.kind == kindList {
		brackets = "[]"
	}
	if c.depth++; c.depth > value.MaxDepth {
		return false
	}
	c.out = append(c.out, brackets[0])
	n := len(c.path)
	for i, p := range d.parts {
		if i > 0 {
			c.out = append(c.out, ',')
		}
		c.path = append(c.path[:n], '/')
		if d.kind == kindList {
			c.path = strconv.AppendInt(c.path, int64(i), 10)
		} else {
			c.path = append(c.path, value.EscapePointer(d.keys[i])...)
			c.out = append(append(append(c.out, '"'), d.keys[i]...), '"', ':')
		}
		if !p.write(x, c, hidden) {
			return false
		}
	}
	c.path = c.path[:n]
	c.out = append(c.out, brackets[1])
	c.depth--
	return true
}

// truth evaluates an operation whose result is a boolean. It evaluates both operands, even if
// the first operand alone gives the result. The result `ok` is false if the general evaluator must
// evaluate the operation, for example because an operand is sensitive.
func (d *Expr) truth(x *Context, c *canonicalWriter) (v, ok bool) {
	var buf [2][]byte
	at := len(c.out)
	for i, p := range d.parts {
		marks, from := len(c.marks), len(c.out)
		if !p.write(x, c, false) || len(c.marks) > marks {
			return false, false
		}
		buf[i] = c.out[from:len(c.out):len(c.out)]
	}
	// Remove the operands from c.out. The bytes in the variable `buf` stay valid until the next
	// write to c.out.
	c.out = c.out[:at]
	a, b := buf[0], buf[1]
	switch d.op {
	case hclsyntax.OpLogicalNot:
		v, ok = truthOf(a)
		return !v, ok
	case hclsyntax.OpLogicalAnd, hclsyntax.OpLogicalOr:
		l, okL := truthOf(a)
		r, okR := truthOf(b)
		if d.op == hclsyntax.OpLogicalAnd {
			return l && r, okL && okR
		}
		return l || r, okL && okR
	case hclsyntax.OpEqual:
		return bytes.Equal(a, b), scalars(a, b)
	case hclsyntax.OpNotEqual:
		return !bytes.Equal(a, b), scalars(a, b)
	}
	l, okL := wholeOf(a)
	r, okR := wholeOf(b)
	switch d.op {
	case hclsyntax.OpGreaterThan:
		v = l > r
	case hclsyntax.OpGreaterThanOrEqual:
		v = l >= r
	case hclsyntax.OpLessThan:
		v = l < r
	case hclsyntax.OpLessThanOrEqual:
		v = l <= r
	}
	return v, okL && okR
}

func truthOf(raw []byte) (v, ok bool) {
	return string(raw) == "true", string(raw) == "true" || string(raw) == "false"
}

// scalars reports whether two JSON values are both strings, both booleans or both numbers. Such
// values are equal if and only if their canonical forms are equal.
func scalars(a, b []byte) bool {
	class := func(raw []byte) byte {
		switch c := raw[0]; {
		case c == '"', c == 'n', c == '{', c == '[':
			return c
		case c == 't', c == 'f':
			return 't'
		}
		return '0'
	}
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	k := class(a)
	return k == class(b) && strings.IndexByte(`"t0`, k) >= 0
}

// wholeOf parses a whole number of at most 15 characters. It returns false for any other value.
func wholeOf(raw []byte) (int64, bool) {
	if len(raw) > 15 {
		return 0, false
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	return n, err == nil
}
