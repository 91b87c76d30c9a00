package link

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/decl"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/noun"
	"github.com/saga-engine/engine/dsl/internal/sorted"
	"github.com/saga-engine/engine/dsl/internal/syntax"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// A printer writes the parts of a step as text. Two definitions that give the same text for a part
// count as equal in this part. So the text of an expression also contains the texts of its locals.
// White space between the tokens of an expression, the order of attributes, and comments do not
// change the text. White space inside of a quoted string or heredoc changes it: "a  b" is not "a
// b".
type printer struct {
	m *decl.Module
	b strings.Builder
}

// addAspects sets the field Aspects of a linked step.
func addAspects(m *decl.Module, d *decl.Step, ls *linkedStep, out *noun.Step) {
	out.Aspects = func() map[string]string { return stepAspects(m, d, ls, out) }
}

func stepAspects(m *decl.Module, d *decl.Step, ls *linkedStep, s *noun.Step) map[string]string {
	aspects := map[string]string{}
	for name, e := range d.Block.Attrs {
		switch name {
		case "action", "compensation", "depends_on":
		default:
			aspects[name] = printed(m, func(p *printer) { p.expr(e) })
		}
	}
	for _, b := range d.Block.Blocks {
		if b.Kind != "compensate" {
			aspects[b.Kind] += printed(m, func(p *printer) { p.block(b) })
		}
	}
	aspects[noun.AspectKind] = s.Does()
	if s.Calls() {
		aspects[noun.AspectAction] = actionText(m, ls.action)
	}
	aspects[noun.AspectUndo] = undoText(m, d, s, ls)
	return aspects
}

// actionText returns a text that contains the plugin and the name of an action, and for a declared
// action also the action block without `timeout`. The name of the agent is not part of the text, so
// a new name of the agent does not count as a change. For a child run, the text is "group" or the
// name of the workflow. If the action is not known, the text is "".
func actionText(m *decl.Module, a *linkedAction) string {
	if a == nil {
		return ""
	}
	if a.child != nil {
		// The steps of the child are not part of the text: a child run that has started keeps its
		// definition. The text for a group is "group", without the name of the group's workflow.
		// That name contains the name of the step, and a new name of a step does not count as a
		// change.
		if a.child.decl.Outer != nil {
			return "group"
		}
		return "workflow " + a.name
	}
	text := a.agent.decl.Plugin + "." + a.name
	if a.form == nil {
		return text
	}
	if a.agent.decl.Library != nil {
		m = a.agent.decl.Library
	}
	return text + printed(m, func(p *printer) { p.block(a.form.decl.Block, "timeout") })
}

// undoText returns the undo of a step as text: the action, and for a compensate block also the
// input and by_key. The attributes timeout, deadline, retry and idempotent are not part of the
// text, so new values of these attributes do not count as a change.
func undoText(m *decl.Module, d *decl.Step, s *noun.Step, ls *linkedStep) string {
	u := s.Undo
	switch {
	case s.NoUndo || u == nil:
		return "none"
	case d.Undo == nil && ls.action.child != nil:
		return "child run"
	case u.Declared:
		return "declared " + actionText(m, ls.action.agent.linked(u.Do.Name))
	}
	text := "none"
	if a := ls.undoAction; a != nil {
		text = actionText(m, a)
	}
	return text + printed(m, func(p *printer) { p.block(d.Undo.Block, "action", "timeout", "deadline", "retry", "idempotent") })
}

func printed(m *decl.Module, write func(*printer)) string {
	p := &printer{m: m}
	write(p)
	return p.b.String()
}

// block writes a block. It leaves out the attributes and inner blocks that the parameter `without`
// names.
func (p *printer) block(b *syntax.Block, without ...string) {
	p.b.WriteString(b.Kind + " " + strconv.Quote(b.Label) + " {")
	for _, name := range sorted.Keys(b.Attrs) {
		if !slices.Contains(without, name) {
			p.attr(name, b.Attrs[name])
		}
	}
	args := slices.Clone(b.Args)
	slices.SortFunc(args, func(a, b syntax.Arg) int { return strings.Compare(a.Name, b.Name) })
	for _, a := range args {
		p.attr(a.Name, a.Expr)
	}
	for _, inner := range b.Blocks {
		if !slices.Contains(without, inner.Kind) {
			p.block(inner)
		}
	}
	p.b.WriteString("}")
}

func (p *printer) attr(name string, e *eval.Expr) {
	p.b.WriteString(" " + name + " = ")
	p.expr(e)
	p.b.WriteString(";")
}

// expr writes an expression and the locals on which it depends. If the expression or one of these
// locals calls file() or a similar function, expr also writes a checksum of everything that the
// module has read.
func (p *printer) expr(e *eval.Expr) {
	p.source(e)
	var locals []*eval.Local
	gather(e, &locals)
	reads := decl.ReadsFiles(e)
	for _, l := range locals {
		p.b.WriteString(" local." + l.Name + " = ")
		p.source(l.Expr)
		reads = reads || decl.ReadsFiles(l.Expr)
	}
	if reads {
		p.b.WriteString(" reads " + decl.ReadsSum(p.m))
	}
}

// source writes the text of an expression as its tokens, with one space between two tokens. So the
// text inside quotes and heredocs stays as it is. If the text cannot be split into tokens, source
// writes it unchanged. If the text is not known, source writes "?".
func (p *printer) source(e *eval.Expr) {
	src := p.m.Sources[e.Range.Filename]
	from, to := e.Range.Start.Byte, e.Range.End.Byte
	if from < 0 || from > to || to > len(src) {
		p.b.WriteString("?")
		return
	}
	tokens, diags := hclsyntax.LexExpression(src[from:to], e.Range.Filename, hcl.InitialPos)
	if diags.HasErrors() {
		p.b.Write(src[from:to])
		return
	}
	for _, t := range tokens {
		switch t.Type {
		case hclsyntax.TokenNewline, hclsyntax.TokenComment, hclsyntax.TokenEOF:
		default:
			p.b.Write(t.Bytes)
			p.b.WriteByte(' ')
		}
	}
}

// gather adds to the list each local on which the expression depends, directly or through other
// locals. No local is in the list twice.
func gather(e *eval.Expr, list *[]*eval.Local) {
	if e.Compiled == nil {
		return
	}
	for _, l := range e.Compiled.Locals {
		if !slices.Contains(*list, l) {
			*list = append(*list, l)
			gather(l.Expr, list)
		}
	}
}

// Rebind gives the values of a run's variables, which are in the parameter `vars`, to the variables
// of the workflow w. It leaves out a variable that w does not declare. A variable of w that is not
// in `vars` gets its default. Rebind reports the same errors as Workflow.Bind, and an error if
// `vars` is not an object.
func Rebind(w *noun.Workflow, vars value.Value) (value.Value, diag.Diagnostics) {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(vars.JSON(), &raw); err != nil {
		return value.Value{}, diag.Diagnostics{{Severity: diag.SeverityError, Summary: "Invalid variables", Detail: err.Error()}}
	}
	var given []noun.Assignment
	for _, v := range w.Variables {
		text, ok := raw[v.Name]
		if !ok {
			continue
		}
		val, err := value.DecodeJSON(text)
		if err != nil {
			return value.Value{}, diag.Diagnostics{{Severity: diag.SeverityError, Summary: "Invalid variables", Detail: v.Name + ": " + err.Error()}}
		}
		given = append(given, noun.AssignmentIn(v.Name, diag.Range{}, &hclsyntax.LiteralValueExpr{Val: val, SrcRange: hcl.Range{}}, nil))
	}
	return w.Bind(given)
}
