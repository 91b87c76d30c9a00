package metered

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/saga-engine/engine/dsl/internal/value"
)

// maxTemplate is the largest size of a template that a function renders, in bytes.
const maxTemplate = 1 << 20

// rendering holds the names of the functions that evaluate a template. The method call.Value passes
// its Meter to such a function as a third argument. So the function can charge for the evaluation.
var rendering = map[string]bool{"templatestring": true, "templatefile": true}

// MeterIn returns the Meter that limits the cost of a function that renders a template. The
// parameter `args` holds the arguments after the template and its variables. The method call.Value
// adds the Meter as such an argument. If args is empty, it has added none, and MeterIn returns a
// new Meter. MeterIn returns false if args has more than one element, or if the element is not a
// Meter.
func MeterIn(args []cty.Value) (*Meter, bool) {
	switch {
	case len(args) == 0:
		return &Meter{}, true
	case len(args) > 1 || args[0].Type() != meterType:
		return nil, false
	}
	return args[0].EncapsulatedValue().(*Meter), true
}

// withMeter returns a copy of the call c with the Meter m as an additional last argument. If "..."
// follows the last argument of c, the elements of the parameter `values` replace the arguments of
// c.
func (m *Meter) withMeter(c hclsyntax.FunctionCallExpr, values []cty.Value) *hclsyntax.FunctionCallExpr {
	if c.ExpandFinal {
		c.ExpandFinal, c.Args = false, nil
		for _, v := range values {
			c.Args = append(c.Args, &hclsyntax.LiteralValueExpr{Val: v, SrcRange: c.NameRange})
		}
	}
	c.Args = append(c.Args, &hclsyntax.LiteralValueExpr{Val: m.Variable(), SrcRange: c.NameRange})
	return &c
}

// ParseTemplate parses a template: a text with parts such as ${name}. It charges before it parses,
// and refuses a template that is nested too deep for the parser. The parser joins the lines of a
// text one by one. So its running time grows with the number of lines times the size of the text.
func (m *Meter) ParseTemplate(text string) (hclsyntax.Expression, error) {
	bytes, tokens := int64(len(text)), int64(marks(text))
	joined := product(bytes, int64(1+strings.Count(text, "\n")+strings.Count(text, "{")))
	if !m.Take(bytes*50+tokens*4000+joined*4, bytes*4+tokens*900+joined/2) {
		return nil, errors.New(m.Over.detail)
	}
	if len(text) > maxTemplate || Crowded(text) {
		return nil, errors.New("a template may hold at most 1 MiB and 300,000 tokens")
	}
	lexed, _ := hclsyntax.LexTemplate([]byte(text), "", hcl.InitialPos) // the parser reports invalid tokens
	if d := CheckTokens(lexed); d != nil {
		return nil, templateError(d)
	}
	syn, diags := hclsyntax.ParseTemplate([]byte(text), "", hcl.InitialPos)
	if diags.HasErrors() {
		return nil, templateError(diags[0])
	}
	return syn, nil
}

// Render evaluates a template. The parameter `vars` holds the values of the names in the
// template, and the parameter `funcs` holds the functions that the template may call. The
// function `check` can refuse the parsed template.
func (m *Meter) Render(text string, vars map[string]cty.Value, funcs map[string]function.Function, check func(hclsyntax.Expression) error) (cty.Value, error) {
	syn, err := m.ParseTemplate(text)
	if err != nil {
		return cty.NilVal, err
	}
	if err := check(syn); err != nil {
		return cty.NilVal, err
	}
	ctx := &hcl.EvalContext{Functions: funcs, Variables: map[string]cty.Value{}}
	for name, v := range vars {
		ctx.Variables[name] = v
	}
	ctx.Variables[MeterName] = m.Variable()
	v, diags := Evaluate(Of(syn), ctx)
	if diags.HasErrors() {
		return cty.NilVal, templateError(diags[0])
	}
	out, err := value.StringOf(v)
	return cty.StringVal(out), err
}

// templateError returns a finding about a template as an error that names the line.
func templateError(d *hcl.Diagnostic) error {
	line := 1
	if d.Subject != nil {
		line = d.Subject.Start.Line
	}
	return fmt.Errorf("line %d of the template: %s: %s", line, d.Summary, strings.TrimSuffix(d.Detail, "."))
}
