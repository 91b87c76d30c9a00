package syntax

import (
	"sort"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/report"
	"github.com/saga-engine/engine/dsl/internal/sorted"
)

// A Reader reads blocks and expressions of source files, and reports the errors in them.
type Reader struct {
	*report.Reporter
	// true = the files belong to a stored definition, and may use earlier names of attributes
	Older bool
}

// A Block is one block of source, read according to its bodySpec. If a required part is missing,
// its field is nil: Reader.Read continues after an error, to report the other errors, too.
type Block struct {
	Kind       string                // type of the block, such as "step"
	Label      string                // name of the block, such as the "book" in step "book"; "" = no label
	labelRange hcl.Range             // position of the label
	DefRange   hcl.Range             // position of the first line of the block
	Attrs      map[string]*eval.Expr // attributes by name; empty if bodySpec.free allows attributes with any name
	Blocks     []*Block              // inner blocks, in the order of the source
	Args       []Arg                 // attributes if bodySpec.free allows any name, in the order of the source; else nil
	// true = the Reader refused a part of the block. A later check then reports no missing
	// part, because the author may have written that part.
	Broken bool
}

// An Arg is one attribute of a block that may have attributes with any name, such as an input
// block.
type Arg struct {
	Name  string
	Where hcl.Range // position of the name
	Expr  *eval.Expr
}

// Attr returns the expression of an attribute. It returns nil if the block does not have the
// attribute, or if b is nil.
func (b *Block) Attr(name string) *eval.Expr {
	if b == nil {
		return nil
	}
	return b.Attrs[name]
}

// One returns the first inner block of this kind. It returns nil if b is nil or has no such block.
func (b *Block) One(kind string) *Block {
	if b == nil {
		return nil
	}
	for _, c := range b.Blocks {
		if c.Kind == kind {
			return c
		}
	}
	return nil
}

// All returns the inner blocks of this kind. It returns nil if b is nil or has no such block.
func (b *Block) All(kind string) []*Block {
	var out []*Block
	if b != nil {
		for _, c := range b.Blocks {
			if c.Kind == kind {
				out = append(out, c)
			}
		}
	}
	return out
}

// Read reads a body and returns it as a Block of this kind. The parameter `def` is the position of
// the block. Read reports each part of the body that `spec` does not allow, and each missing
// required part.
func (r Reader) Read(body hcl.Body, spec *bodySpec, kind string, def hcl.Range) *Block {
	b := &Block{Kind: kind, DefRange: def, Attrs: map[string]*eval.Expr{}}
	if spec.free {
		r.ReadFree(body, b)
		return b
	}
	schema := spec.hcl()
	if r.Older {
		for _, name := range sorted.Keys(spec.was) {
			schema.Attributes = append(schema.Attributes, hcl.AttributeSchema{Name: name})
		}
	}
	content, diags := body.Content(schema)
	adviseForeign(diags, kind)
	for _, d := range diags {
		if d.Summary != "Missing required argument" {
			b.Broken = true
		}
		if d.Subject != nil && d.Summary == "Missing required argument" {
			d.Subject = &b.DefRange
		}
	}
	r.HCL(diags)
	for name, a := range content.Attributes {
		if now, renamed := spec.was[name]; renamed {
			name = now
		}
		b.Attrs[name] = r.expr(a.Expr, spec.attr(name).typ)
	}
	once := map[string]hcl.Range{}
	for _, hb := range content.Blocks {
		bs := spec.block(hb.Type)
		if first, dup := once[hb.Type]; dup && !bs.many {
			r.Errorf(hb.DefRange, "Duplicate "+hb.Type+" block",
				"Only one %s block is allowed here; the first is at %s.", hb.Type, report.Range(first))
			r.Read(hb.Body, bs.body, hb.Type, hb.DefRange) // only to report the errors in the duplicate block
			continue
		}
		once[hb.Type] = hb.DefRange
		c := r.Read(hb.Body, bs.body, hb.Type, hb.DefRange)
		if bs.label && len(hb.Labels) > 0 {
			c.Label, c.labelRange = hb.Labels[0], hb.LabelRanges[0]
			r.checkName(c)
		}
		b.Blocks = append(b.Blocks, c)
	}
	return b
}

// ReadFree reads a body whose attributes may have any name, and adds the attributes to b.Args. It
// reports blocks in the body as errors.
func (r Reader) ReadFree(body hcl.Body, b *Block) {
	attrs, diags := body.JustAttributes()
	for _, d := range diags {
		b.Broken = true
		if strings.HasPrefix(d.Summary, "Unexpected \"") {
			d.Detail = "Blocks are not allowed here. For an argument that is an object write NAME = { ... }."
		}
	}
	r.HCL(diags)
	for name, a := range attrs {
		b.Args = append(b.Args, Arg{Name: name, Where: a.NameRange, Expr: r.expr(a.Expr, false)})
	}
	sort.Slice(b.Args, func(i, j int) bool {
		x, y := b.Args[i].Where, b.Args[j].Where
		if x.Start.Byte != y.Start.Byte {
			return x.Start.Byte < y.Start.Byte
		}
		return b.Args[i].Name < b.Args[j].Name
	})
}

// checkName reports an error if ValidName refuses the label of b. Names become keys, columns of
// tables and labels of metrics, so only a few characters are allowed.
func (r Reader) checkName(b *Block) {
	if !ValidName(b.Label) {
		r.Errorf(b.labelRange, "Invalid name",
			"The name of a %s begins with a letter or _ and holds only letters, digits, _ and -, at most 100 of them.", b.Kind)
		b.Broken = true
	}
}

// ValidName reports whether s is a valid name. A name begins with a letter or "_". It has at most
// 100 characters: letters, digits, "_" and "-".
func ValidName(s string) bool {
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

// expr converts an expression of the hcl library. If `typ` is true, the expression is a type
// constraint. If it is false, expr checks the names of functions and the length of numbers. If expr
// finds an error, it reports the error and sets the field Bad of the result.
func (r Reader) expr(e hcl.Expression, typ bool) *eval.Expr {
	out := &eval.Expr{Range: e.Range()}
	if syn, ok := e.(hclsyntax.Expression); ok {
		out.Syntax, out.Range = syn, syn.Range()
	} else {
		out.Syntax, out.Raw = r.fromJSON(e)
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

// fromJSON converts an expression from a JSON file to an expression of HCL. A string becomes a
// template. An object or an array becomes an object or a tuple expression. For a string, fromJSON
// also returns the raw text. For any other expression, the returned text is nil. If fromJSON cannot
// convert the expression, it reports an error and returns nil.
func (r Reader) fromJSON(e hcl.Expression) (hclsyntax.Expression, *string) {
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
	val, diags := e.Value(nil) // without a context, the hcl library does not evaluate templates in strings
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
