package dsl

import (
	"sort"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/report"
)

// A syntaxReader reads files, blocks and expressions, and reports what is wrong with them.
type syntaxReader struct{ *report.Reporter }

// A block is one block of source, read by its spec. Missing parts are nil, so
// that one error does not hide the others.
type block struct {
	kind       string
	label      string
	labelRange hcl.Range
	def        hcl.Range
	attrs      map[string]*eval.Expr
	blocks     []*block
	args       []arg // of a free body, in order of the source
	broken     bool  // something in it was refused: missing parts may be no fault
}

// An arg is one attribute of a free body.
type arg struct {
	name  string
	where hcl.Range // of the name
	expr  *eval.Expr
}

// attr returns an argument; nil if it is not written, or the block is nil.
func (b *block) attr(name string) *eval.Expr {
	if b == nil {
		return nil
	}
	return b.attrs[name]
}

// one returns the block's inner block of a kind, or nil.
func (b *block) one(kind string) *block {
	if b == nil {
		return nil
	}
	for _, c := range b.blocks {
		if c.kind == kind {
			return c
		}
	}
	return nil
}

// all returns the inner blocks of a kind.
func (b *block) all(kind string) []*block {
	var out []*block
	if b != nil {
		for _, c := range b.blocks {
			if c.kind == kind {
				out = append(out, c)
			}
		}
	}
	return out
}

// read turns a body into a block by its spec and reports what does not fit.
func (r syntaxReader) read(body hcl.Body, spec *bodySpec, kind string, def hcl.Range) *block {
	b := &block{kind: kind, def: def, attrs: map[string]*eval.Expr{}}
	if spec.free {
		r.readFree(body, b)
		return b
	}
	content, diags := body.Content(spec.hcl())
	for _, d := range diags {
		if d.Summary != "Missing required argument" {
			b.broken = true
		}
		if d.Subject != nil && d.Summary == "Missing required argument" {
			d.Subject = &b.def
		}
	}
	r.HCL(diags)
	for name, a := range content.Attributes {
		b.attrs[name] = r.expr(a.Expr, a.Range, spec.attr(name).typ)
	}
	once := map[string]hcl.Range{}
	for _, hb := range content.Blocks {
		bs := spec.block(hb.Type)
		if first, dup := once[hb.Type]; dup && !bs.many {
			r.Errorf(hb.DefRange, "Duplicate "+hb.Type+" block",
				"Only one %s block is allowed here; the first is at %s.", hb.Type, report.Range(first))
			r.read(hb.Body, bs.body, hb.Type, hb.DefRange) // for what else is wrong with it
			continue
		}
		once[hb.Type] = hb.DefRange
		c := r.read(hb.Body, bs.body, hb.Type, hb.DefRange)
		if bs.label && len(hb.Labels) > 0 {
			c.label, c.labelRange = hb.Labels[0], hb.LabelRanges[0]
			r.checkName(c)
		}
		b.blocks = append(b.blocks, c)
	}
	return b
}

// readFree reads a body whose arguments may have any name.
func (r syntaxReader) readFree(body hcl.Body, b *block) {
	attrs, diags := body.JustAttributes()
	for _, d := range diags {
		b.broken = true
		if strings.HasPrefix(d.Summary, "Unexpected \"") {
			d.Detail = "Blocks are not allowed here. For an argument that is an object write NAME = { ... }."
		}
	}
	r.HCL(diags)
	for name, a := range attrs {
		b.args = append(b.args, arg{name: name, where: a.NameRange, expr: r.expr(a.Expr, a.Range, false)})
	}
	sort.Slice(b.args, func(i, j int) bool {
		x, y := b.args[i].where, b.args[j].where
		if x.Start.Byte != y.Start.Byte {
			return x.Start.Byte < y.Start.Byte
		}
		return b.args[i].name < b.args[j].name
	})
}

// checkName enforces one narrow grammar for names: they become keys, columns
// of tables and labels of metrics.
func (r syntaxReader) checkName(b *block) {
	if !validName(b.label) {
		r.Errorf(b.labelRange, "Invalid name",
			"The name of a %s begins with a letter or _ and holds only letters, digits, _ and -, at most 100 of them.", b.kind)
		b.broken = true
	}
}

// validName reports whether a name is within the grammar that checkName enforces.
func validName(s string) bool {
	if s == "" || len(s) > 100 {
		return false
	}
	for i, c := range []byte(s) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		if !letter && (i == 0 || c != '-' && (c < '0' || c > '9')) {
			return false
		}
	}
	return true
}

// expr takes an expression over and checks the parts that depend on nothing
// else: names of functions and the size of numbers.
func (r syntaxReader) expr(e hcl.Expression, rng hcl.Range, typ bool) *eval.Expr {
	out := &eval.Expr{Range: rng}
	if syn, ok := e.(hclsyntax.Expression); ok {
		out.Syntax, out.Range = syn, syn.Range()
	} else {
		out.Syntax, out.Raw = r.fromJSON(e)
		out.Range = e.Range()
	}
	if out.Syntax == nil {
		out.Bad = true
		out.Syntax = &hclsyntax.LiteralValueExpr{Val: cty.DynamicVal, SrcRange: out.Range}
		return out
	}
	if !typ {
		r.checkSyntax(out)
	}
	return out
}

// fromJSON converts an expression of the JSON form: strings are templates,
// objects and arrays are constructors. It returns nil after reporting an
// error, and the raw text of a string.
func (r syntaxReader) fromJSON(e hcl.Expression) (hclsyntax.Expression, *string) {
	rng := e.Range()
	if pairs, diags := hcl.ExprMap(e); !diags.HasErrors() {
		out := &hclsyntax.ObjectConsExpr{SrcRange: rng, OpenRange: e.StartRange()}
		for _, p := range pairs {
			k, _ := r.fromJSON(p.Key)
			v, _ := r.fromJSON(p.Value)
			if k == nil || v == nil {
				return nil, nil
			}
			out.Items = append(out.Items, hclsyntax.ObjectConsItem{KeyExpr: k, ValueExpr: v})
		}
		return out, nil
	}
	if list, diags := hcl.ExprList(e); !diags.HasErrors() {
		out := &hclsyntax.TupleConsExpr{SrcRange: rng, OpenRange: e.StartRange()}
		for _, item := range list {
			v, _ := r.fromJSON(item)
			if v == nil {
				return nil, nil
			}
			out.Exprs = append(out.Exprs, v)
		}
		return out, nil
	}
	val, diags := e.Value(nil) // without a context strings come as they are
	if diags.HasErrors() {
		r.HCL(diags)
		return nil, nil
	}
	if val.Type() != cty.String || val.IsNull() {
		return &hclsyntax.LiteralValueExpr{Val: val, SrcRange: rng}, nil
	}
	raw := val.AsString()
	start := hcl.Pos{Line: rng.Start.Line, Column: rng.Start.Column + 1, Byte: rng.Start.Byte + 1}
	if d := prescanTemplate([]byte(raw), rng.Filename, start); d != nil {
		r.HCL(hcl.Diagnostics{d})
		return nil, nil
	}
	t, diags := hclsyntax.ParseTemplate([]byte(raw), rng.Filename, start)
	r.HCL(diags)
	if diags.HasErrors() {
		return nil, nil
	}
	return t, &raw
}
