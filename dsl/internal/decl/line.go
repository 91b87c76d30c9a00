package decl

import (
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/report"
)

// A lineDecoder checks an expression that is not part of a module.
type lineDecoder struct{ *decoder }

// CompileLine compiles an expression that is not part of the module, such as a line of the
// console. The expression may refer to the variables and locals of w. If inRun is true, it may also
// refer to the steps of w and to run.*. CompileLine changes neither m nor w. If the expression has
// errors, CompileLine adds them to r and sets e.Bad.
func (m *Module) CompileLine(r *report.Reporter, w *Workflow, e *eval.Expr, inRun bool) *eval.Compiled {
	d := lineDecoder{&decoder{Reporter: r, lit: literalDecoder{r, m}, m: m}}
	d.checkReads(e)
	allowed := allowVar | allowLocal
	if inRun {
		allowed = allowForward
	} else if d.needsRun(w, e) {
		return nil
	}
	ns := w.names()
	ns.inLine = true
	return referenceDecoder{d.decoder, map[*eval.Local]visit{}}.compile(e, ns, allowed)
}

// checkReads reports an error for each call of file() and env() whose result the definition does
// not hold.
func (d lineDecoder) checkReads(e *eval.Expr) {
	for _, call := range eval.Calls(e.Syntax, "file", "env") {
		text, ok := eval.LiteralString(call)
		known := has(d.m.Reads.Files, text)
		if call.Name == "env" {
			known = has(d.m.Reads.Env, text)
		}
		if ok && known {
			continue
		}
		e.Bad = true
		d.Errorf(call.Range(), "Not read", "%s() is read once, when the definition is loaded. Only the calls in the module's files have a value here.", call.Name)
	}
}

// needsRun reports an error and returns true if an expression refers to step.*, group.* or run.*,
// directly or through a local. Without a run, these references have no values.
func (d lineDecoder) needsRun(w *Workflow, e *eval.Expr) bool {
	needs := false
	for _, t := range e.Syntax.Variables() {
		root := t.RootName()
		if root == "local" && len(t) > 1 {
			if l := w.Locals[eval.NameOf(t[1])]; l != nil && l.Expr.Compiled != nil && (l.Expr.Compiled.Run || len(l.Expr.Compiled.Steps) > 0) {
				d.Errorf(t.SourceRange(), "No run here", "local.%s uses values of a run. Name a run with --run to evaluate it.", l.Name)
				needs = true
			}
		}
		if root == "step" || root == "group" || root == "run" {
			d.Errorf(t.SourceRange(), "No run here", "%s.* has values in a run only. Name a run with --run to evaluate it.", root)
			needs = true
		}
	}
	e.Bad = e.Bad || needs
	return needs
}
