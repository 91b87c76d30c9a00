package rule

import (
	"encoding/json"
	"math/big"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// maxDigits is the largest length of a number. The language computes with 512 bits, and PostgreSQL
// with decimal digits. If two numbers have at most 100 digits, they are equal in the language if
// and only if they are equal in PostgreSQL.
const maxDigits = 100

// maxDepth is the largest depth of a rule. The SQL function calls itself for each level, and
// PostgreSQL has a limit for the memory of nested calls.
const maxDepth = 50

// Of translates a condition. The function `types` returns the type of a variable; cty.NilType = the
// variable is not part of the input. Of returns nil if the condition has a part that rules do not
// have, is not a bool, or needs a rule that is deeper than maxDepth.
func Of(condition hclsyntax.Expression, types func(variable string) cty.Type) json.RawMessage {
	n, ty := translation{types}.node(condition)
	if ty != cty.Bool || depth(n) > maxDepth {
		return nil
	}
	data, err := json.Marshal(n)
	if err != nil {
		return nil // JSON cannot hold a number of the rule
	}
	return data
}

// depth returns how many levels of operations a rule has.
func depth(rule []any) int {
	most := 0
	for _, x := range rule {
		if operand, ok := x.([]any); ok {
			most = max(most, depth(operand))
		}
	}
	return most + 1
}

// A translation translates the parts of one condition. Its methods return a rule and the type of
// its value. The type cty.NilType means that the part cannot be translated.
type translation struct {
	types func(variable string) cty.Type
}

func (t translation) node(e hclsyntax.Expression) ([]any, cty.Type) {
	switch e := e.(type) {
	case *hclsyntax.ParenthesesExpr:
		return t.node(e.Expression)
	case *hclsyntax.TemplateWrapExpr:
		return t.node(e.Wrapped)
	case *hclsyntax.ScopeTraversalExpr:
		return t.input(e.Traversal)
	case *hclsyntax.UnaryOpExpr:
		if n, ty := t.node(e.Val); e.Op == hclsyntax.OpLogicalNot && ty == cty.Bool {
			return []any{"not", n}, cty.Bool
		}
	case *hclsyntax.BinaryOpExpr:
		return t.binary(e)
	case *hclsyntax.FunctionCallExpr:
		if !e.ExpandFinal {
			return t.call(e)
		}
	}
	if v, ty := constant(e); ty != cty.NilType {
		return []any{"is", v}, ty
	}
	return nil, cty.NilType
}

// constant returns the value of a number, a text or a bool in the source.
func constant(e hclsyntax.Expression) (any, cty.Type) {
	switch e.(type) {
	case *hclsyntax.LiteralValueExpr, *hclsyntax.TemplateExpr, *hclsyntax.UnaryOpExpr:
	default:
		return nil, cty.NilType
	}
	v, diags := e.Value(nil) // nil: no variables and functions, so only a constant has a value
	if diags.HasErrors() || v.IsNull() || !v.IsKnown() {
		return nil, cty.NilType
	}
	switch v.Type() {
	case cty.Bool:
		return v.True(), cty.Bool
	case cty.String:
		if s := v.AsString(); printable(s) {
			return s, cty.String
		}
	case cty.Number:
		if s := decimal(v.AsBigFloat()); s != "" {
			return json.Number(s), cty.Number
		}
	}
	return nil, cty.NilType
}

// decimal returns a number in decimal digits; "" = the number has too many digits, or is infinite.
func decimal(f *big.Float) string {
	if f.IsInf() {
		return ""
	}
	if e := f.MantExp(nil); e > 4*maxDigits || e < -4*maxDigits {
		return ""
	}
	if s := f.Text('f', -1); len(s) <= maxDigits {
		return s
	}
	return ""
}

// printable reports whether a text has only the printable characters of ASCII.
func printable(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c > '~' })
}

// input translates a reference such as var.order.total.
func (t translation) input(ref hcl.Traversal) ([]any, cty.Type) {
	if len(ref) < 2 || ref.RootName() != "var" {
		return nil, cty.NilType
	}
	ty, path := cty.NilType, make([]string, 0, len(ref)-1)
	for i, step := range ref[1:] {
		attr, ok := step.(hcl.TraverseAttr)
		switch {
		case !ok:
			return nil, cty.NilType
		case i == 0:
			ty = t.types(attr.Name)
		case ty.IsObjectType() && ty.HasAttribute(attr.Name):
			ty = ty.AttributeType(attr.Name)
		default:
			return nil, cty.NilType
		}
		if ty == cty.NilType {
			return nil, cty.NilType
		}
		path = append(path, `"`+attr.Name+`"`) // a name has no quote and no backslash
	}
	return []any{"input", "{" + strings.Join(path, ",") + "}"}, ty
}

func (t translation) binary(e *hclsyntax.BinaryOpExpr) ([]any, cty.Type) {
	if e.Op == hclsyntax.OpEqual || e.Op == hclsyntax.OpNotEqual {
		return t.equal(e)
	}
	ops := map[*hclsyntax.Operation]struct {
		name string
		of   cty.Type
	}{
		hclsyntax.OpLogicalAnd: {"and", cty.Bool}, hclsyntax.OpLogicalOr: {"or", cty.Bool},
		hclsyntax.OpLessThan: {"lt", cty.Number}, hclsyntax.OpLessThanOrEqual: {"le", cty.Number},
		hclsyntax.OpGreaterThan: {"gt", cty.Number}, hclsyntax.OpGreaterThanOrEqual: {"ge", cty.Number},
	}
	op, ok := ops[e.Op]
	a, first := t.node(e.LHS)
	b, second := t.node(e.RHS)
	if !ok || first != op.of || second != op.of {
		return nil, cty.NilType
	}
	return []any{op.name, a, b}, cty.Bool
}

// equal translates == and != between two values of the same simple type, or between a value and
// `null`.
func (t translation) equal(e *hclsyntax.BinaryOpExpr) ([]any, cty.Type) {
	left, right := e.LHS, e.RHS
	if null(left) {
		left, right = right, left
	}
	a, ty := t.node(left)
	var n []any
	if null(right) && ty != cty.NilType {
		n = []any{"null", a}
	} else if b, other := t.node(right); ty == other && ty.IsPrimitiveType() {
		n = []any{"eq", a, b}
	} else {
		return nil, cty.NilType
	}
	if e.Op == hclsyntax.OpNotEqual {
		n = []any{"not", n}
	}
	return n, cty.Bool
}

// null reports whether the expression is the word `null`.
func null(e hclsyntax.Expression) bool {
	lit, ok := e.(*hclsyntax.LiteralValueExpr)
	return ok && lit.Val.IsNull()
}

// call translates a call of one of the functions that rules have.
func (t translation) call(e *hclsyntax.FunctionCallExpr) ([]any, cty.Type) {
	switch {
	case e.Name == "length" && len(e.Args) == 1:
		if n, ty := t.node(e.Args[0]); ty == cty.String || ty != cty.NilType && (ty.IsListType() || ty.IsMapType()) {
			return []any{"length", n}, cty.Number
		}
	case e.Name == "trimspace" && len(e.Args) == 1:
		if n, ty := t.node(e.Args[0]); ty == cty.String {
			return []any{"trim", n}, cty.String
		}
	case (e.Name == "startswith" || e.Name == "endswith") && len(e.Args) == 2:
		a, first := t.node(e.Args[0])
		b, second := t.node(e.Args[1])
		if first == cty.String && second == cty.String {
			return []any{strings.TrimSuffix(e.Name, "with"), a, b}, cty.Bool
		}
	case e.Name == "contains" && len(e.Args) == 2:
		return t.contains(e.Args[0], e.Args[1])
	case e.Name == "can" && len(e.Args) == 1:
		regex, ok := e.Args[0].(*hclsyntax.FunctionCallExpr)
		if ok && regex.Name == "regex" && len(regex.Args) == 2 && !regex.ExpandFinal {
			return t.match(regex.Args[0], regex.Args[1])
		}
	}
	return nil, cty.NilType
}

// contains translates contains(["a", "b"], TEXT), and the same with numbers.
func (t translation) contains(list, item hclsyntax.Expression) ([]any, cty.Type) {
	tuple, ok := list.(*hclsyntax.TupleConsExpr)
	n, ty := t.node(item)
	if !ok || len(tuple.Exprs) == 0 || ty != cty.String && ty != cty.Number {
		return nil, cty.NilType
	}
	values := make([]any, len(tuple.Exprs))
	for i, e := range tuple.Exprs {
		v, of := constant(e)
		if of != ty {
			return nil, cty.NilType
		}
		values[i] = v
	}
	return []any{"in", values, n}, cty.Bool
}

// match translates can(regex("PATTERN", TEXT)).
func (t translation) match(pattern, text hclsyntax.Expression) ([]any, cty.Type) {
	source, ty := constant(pattern)
	n, of := t.node(text)
	if ty != cty.String || of != cty.String {
		return nil, cty.NilType
	}
	translated, ok := patternOf(source.(string))
	if !ok {
		return nil, cty.NilType
	}
	return []any{"match", translated, n}, cty.Bool
}
