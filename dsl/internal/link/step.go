package link

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/decl"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/metered"
	"github.com/saga-engine/engine/dsl/internal/noun"
	"github.com/saga-engine/engine/dsl/internal/report"
	"github.com/saga-engine/engine/dsl/internal/sorted"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// validations checks the validation blocks of the variables.
func (l stepLinker) validations() {
	for _, n := range sorted.Keys(l.decl.Variables) {
		l.validation(l.decl.Variables[n])
	}
	for _, v := range append(append([]*decl.Variable(nil), l.m.TwinVariables...), l.decl.TwinVariables...) {
		l.validation(v)
	}
}

func (l stepLinker) validation(v *decl.Variable) {
	for _, c := range v.Validations {
		exprFunc(l.workflowLinker, c.Condition, "condition", cty.Bool, value.BoolOf)
		exprFunc(l.workflowLinker, c.Message, "error_message", cty.String, value.StringOf)
	}
}

// limits links the deadlines, the unique key, the priority, the concurrency block and the admit
// blocks of the workflow. It also checks the retry block of the workflow.
func (l stepLinker) limits() {
	l.out.Deadline = exprFunc(l.workflowLinker, l.decl.Deadline, "deadline", cty.String, limitOf)
	l.out.CompensationDeadline = exprFunc(l.workflowLinker, l.decl.CompensationDeadline, "deadline", cty.String, limitOf)
	for name, e := range decl.AttrsOf(l.decl.Retry) {
		if l.decl.Outer != nil {
			// A group uses the retry block of the workflow that contains the group. That workflow
			// checks the block.
			break
		}
		if v := l.check(e); v.IsWhollyKnown() && !e.Bad {
			scratch := forwardDefaults(true)
			if err := retrySetters[name](&scratch, v); err != nil {
				l.Invalid(e.Range, name, err)
			}
		}
	}
	if e := l.decl.Unique; e != nil {
		if l.check(e).ContainsMarked() {
			l.Errorf(e.Range, "Sensitive value in key", "unique.key is stored in clear and shown, so it cannot hold a sensitive value.")
		}
		l.out.Unique = l.decl.UniqueRule
		l.out.Unique.Variable = soleVariable(e)
		l.out.UniqueKey = exprFunc(l.workflowLinker, e, "unique.key", cty.String, keyOf)
	}
	l.out.Priority = exprFunc(l.workflowLinker, l.decl.Priority, "priority", cty.Number, priorityOf)
	l.out.Concurrency = concurrencyOf(l.workflowLinker)
	l.out.Admits = admitsOf(l.workflowLinker)
}

// soleVariable returns the name of the variable if the expression is nothing but that variable,
// such as var.id; otherwise "".
func soleVariable(e *eval.Expr) string {
	t := e.Traversal()
	if len(t) != 2 || t.RootName() != "var" {
		return ""
	}
	attr, _ := t[1].(hcl.TraverseAttr)
	return attr.Name
}

// keyOf converts a value to a unique key, an idempotency key or the key of a concurrency block. It
// returns an error if the value is sensitive, cannot be converted to a string, or is the empty
// string.
func keyOf(v cty.Value) (string, error) {
	if v.ContainsMarked() {
		return "", errors.New("a key cannot hold a sensitive value")
	}
	s, err := value.StringOf(v)
	if err == nil && s == "" {
		err = errors.New("a key cannot be empty")
	}
	return s, err
}

func (l stepLinker) outputs() {
	for _, o := range l.decl.Outputs {
		if o.Value == nil {
			continue
		}
		if !o.Sensitive && (l.check(o.Value).ContainsMarked() || l.mentionsSensitive(o.Value)) {
			l.Errorf(o.Value.Range, "Output holds a sensitive value",
				"Output %q shows a sensitive value. Write sensitive = true, or nonsensitive(...) around what may be shown.", o.Name)
		}
		l.out.Outputs = append(l.out.Outputs, noun.Output{
			Name: o.Name, Description: o.Description, Sensitive: o.Sensitive, After: stepsOf(o.Value),
			Value: argumentLinker(l).valueFunc(o.Value, "output "+o.Name, o.Sensitive, nil),
		})
	}
}

// stepsOf returns the indexes of the steps that an expression reads, ascending. This includes the
// steps that the expression reads through a local.
func stepsOf(e *eval.Expr) []int {
	if e.Compiled == nil {
		return nil
	}
	steps := slices.Clone(e.Compiled.Steps)
	slices.Sort(steps)
	return steps
}

// mentionsSensitive reports whether an expression seems to read a sensitive output of a step with
// for_each. Before a run the instances of such a step are unknown and have no marks. So
// mentionsSensitive only compares the names of outputs in the expression with the names in the
// schema. It returns false if the expression calls nonsensitive().
func (l stepLinker) mentionsSensitive(e *eval.Expr) bool {
	if e.Bad || e.Compiled == nil || len(eval.Calls(e.Syntax, "nonsensitive")) > 0 {
		return false
	}
	fields := map[string]bool{}
	for i := range e.Compiled.StepRefs {
		if a := l.steps[i].action; a != nil && l.ev.Steps[i].Each {
			for _, f := range a.schema.Outputs {
				if f.Sensitive || value.HasSensitive(f.Type) {
					fields[f.Name] = true
				}
			}
		}
	}
	found := false
	look := func(t hcl.Traversal) {
		for k := 1; k < len(t); k++ {
			if k == 3 && isInstance(t) {
				continue // t[2] is a key, and no attribute, even if the key is "output"
			}
			if l.m.Older && !(dotted(t[k-1]) && dotted(t[k])) {
				continue // a stored definition stays valid, although it may have brackets
			}
			found = found || eval.NameOf(t[k-1]) == "output" && fields[eval.NameOf(t[k])]
		}
	}
	hclsyntax.VisitAll(e.Syntax, func(n hclsyntax.Node) hcl.Diagnostics {
		switch n := n.(type) {
		case *hclsyntax.ScopeTraversalExpr:
			look(n.Traversal)
		case *hclsyntax.RelativeTraversalExpr:
			look(n.Traversal)
		}
		return nil
	})
	return found
}

// isInstance reports whether t begins with step.NAME[KEY].
func isInstance(t hcl.Traversal) bool {
	if len(t) < 3 || t.IsRelative() || t.RootName() != "step" {
		return false
	}
	_, index := t[2].(hcl.TraverseIndex)
	return index
}

// dotted reports whether a part of a reference is written .NAME, and not ["NAME"].
func dotted(part hcl.Traverser) bool {
	_, attr := part.(hcl.TraverseAttr)
	return attr
}

// step links the step with index i, and adds the result to l.out.Steps.
func (l stepLinker) step(i int) {
	d, ls := l.decl.Steps[i], l.steps[i]
	l.cur = i
	defer func() { l.cur = -1 }()
	out := &noun.Step{
		Index: i, Name: d.Name, Where: report.Range(d.Where).String(),
		After: sorted.Ints(d.After), NoUndo: d.NoUndo, Pivot: d.Pivot,
	}
	ls.noun = out
	l.out.Steps = append(l.out.Steps, out)
	if d.Pivot {
		l.out.Pivot = i
	}
	l.world.Each = l.eachValue(d, out)
	l.world.Self = l.selfValue(i)
	if when := exprFunc(l.workflowLinker, d.Attr("when"), "when", cty.Bool, value.BoolOf); d.WhenEach() {
		out.WhenEach = when
	} else {
		out.When = when
	}
	out.IdempotencyKey = l.idempotencyKey(d)
	l.ownPriority(d)
	out.Pre = l.conditions(d.Pre, "precondition_failed")
	out.FailWhen = l.refusals(d.FailWhen)
	out.Post = l.conditions(d.Post, "postcondition_failed")
	switch d.Kind {
	case decl.StepCalls:
		l.stepAction(d, ls, out)
	case decl.StepChild:
		childLinker(l).step(d, ls, out)
	default:
		l.withoutCall(d, ls, out)
	}
	out.Catch = l.catch(d, ls)
	l.onlyWithEach(d)
	out.Repeat = repeatOf(l, d, ls)
	undoLinker(l).undo(d, ls, out)
	checkLoopedRerun(l, d)
	l.rerun(d, ls, out)
	addAspects(l.m, d, ls, out)
}

// ownPriority sets l.out.StepPriorities if a step has the attribute `priority`. It reports an error
// if the attribute is sensitive. It does not link the value of the attribute: the function in
// out.Settings computes the priority in a run.
func (l stepLinker) ownPriority(d *decl.Step) {
	e := d.Attr("priority")
	if e == nil {
		return
	}
	l.out.StepPriorities = true
	if l.check(e).ContainsMarked() {
		l.Errorf(e.Range, "Sensitive value in priority", "The order in which steps start can be seen, so priority cannot be computed from a sensitive value.")
	}
}

func (l stepLinker) onlyWithEach(d *decl.Step) {
	for _, name := range []string{"max_parallel", "max_failures"} {
		if e := d.Attr(name); e != nil && !d.Each() {
			l.Errorf(e.Range, "Argument without for_each", "%s counts instances, so it needs for_each.", name)
		}
	}
}

// stepAction links the call of a step: its action, arguments, settings and error codes.
func (l stepLinker) stepAction(d *decl.Step, ls *linkedStep, out *noun.Step) {
	a := ls.action
	if a == nil {
		// The missing action was reported already. Check the arguments anyway.
		for _, x := range d.Input {
			l.check(x.Expr)
		}
		out.Settings, ls.static = settingsOf(l.workflowLinker, forwardDefaults(true), stepSettings(l.decl, d, true))
		return
	}
	out.Do = actionNoun(a, d.Idempotent, d.ReadOnly, nil, l.ev.Steps[d.Index].Out)
	ls.readOnly = out.Do.ReadOnly
	repeatable := out.Do.Idempotent || out.Do.ReadOnly
	out.Retryable = retryable(a.schema.Errors)
	given := argumentLinker(l).arguments(a.in, d.Input, d.InputAt, "action "+a.title(), false)
	given.Instead = l.instead
	ls.given = given.Eval
	out.Input = a.sent(func(s *eval.Scope) (value.Value, error) { return ls.given(s) })
	out.Given = loopGiven(d, a, given)
	a.askWith(out.Do, ls.given)
	out.Settings, ls.static = settingsOf(l.workflowLinker, a.limits(defaultsOf(l.workflowLinker, repeatable)), stepSettings(l.decl, d, repeatable))
	codes := codeLinker(l).codesOf(a, d.Input, d.Conditions()...)
	codes.own = append(codes.own, loopCodes(d)...)
	for _, r := range d.FailWhen {
		if r.Code == nil {
			codes.own = append(codes.own, refusedCode)
		}
	}
	codeLinker(l).codes(d.Block.One("retry").Attr("on"), codes)
	codeLinker(l).codes(d.Block.One("retry").Attr("not_on"), codes)
	if d.Catch != nil {
		codeLinker(l).codes(d.Catch.Attr("errors"), codes, noun.AllCodes)
	}
}

// selfValue returns the value of self.* in step i for the checks before a run. Its parts are
// unknown, but have their types.
func (l stepLinker) selfValue(i int) cty.Value {
	in, out := cty.DynamicVal, cty.DynamicVal
	if !l.steps[i].calls() {
		in, out = cty.EmptyObjectVal, l.outputBefore(i)
	} else if a := l.steps[i].action; a != nil {
		in = value.MarkFields(value.UnknownOf(l.ev.Steps[i].In), a.schema.Inputs)
		out = value.MarkFields(value.UnknownOf(l.ev.Steps[i].Out), a.schema.Outputs)
	}
	attrs := map[string]cty.Value{
		"input": in, "output": out, "key": cty.UnknownVal(cty.String).RefineNotNull(),
		"timed_out": cty.UnknownVal(cty.Bool).RefineNotNull(), "signal": cty.UnknownVal(cty.String), "error": cty.UnknownVal(eval.ErrorType).RefineNotNull(),
	}
	if l.steps[i].decl.Repeat != nil {
		attrs["previous"], attrs["collected"] = previousBefore(out), cty.DynamicVal
	}
	return cty.ObjectVal(attrs)
}

func (l stepLinker) idempotencyKey(d *decl.Step) func(*eval.Scope) (string, error) {
	e := d.Attr("idempotency_key")
	if e == nil {
		return nil
	}
	if d.Each() && !e.Bad && e.Compiled != nil && !e.Compiled.EachKey {
		l.Errorf(e.Range, "Key does not tell instances apart", "Inside for_each idempotency_key must mention each.key, or all instances would be one call to the far side.")
	}
	l.keyOfGroups(d, e)
	if l.check(e).ContainsMarked() {
		l.Errorf(e.Range, "Sensitive value in key", "idempotency_key is stored in clear and shown, so it cannot hold a sensitive value.")
	}
	return exprFunc(l.workflowLinker, e, "idempotency_key", cty.String, keyOf)
}

// keyOfGroups checks the idempotency key e of the step d. If a group with for_each contains d, the
// idempotency key must use each.key of this group. keyOfGroups reports an error for each such group
// whose each.key is not used. Without each.key, the calls for all keys of the group would count as
// one call.
func (l stepLinker) keyOfGroups(d *decl.Step, e *eval.Expr) {
	if l.m.Older || e.Bad || e.Compiled == nil {
		return // a stored definition stays valid
	}
	for _, g := range l.decl.GroupsWithoutKey(e.Compiled) {
		name := g.Holder.Name
		how := fmt.Sprintf("Write locals { %s_key = each.key } in group %q, and use local.%s_key here.", name, name, name)
		if !d.Each() && g == l.decl.EachAround() {
			how = "Write ${each.key} in the key."
		}
		l.Errorf(e.Range, "Key does not tell instances apart",
			"Group %q around this step has for_each, so idempotency_key must mention each.key of this group, or the calls for all keys of the group would be one call to the far side. %s", name, how)
	}
}

func (l stepLinker) refusals(decls []*decl.Refusal) []noun.Refusal {
	var out []noun.Refusal
	for _, r := range decls {
		for _, c := range l.conditions([]*decl.Condition{&r.Condition}, refusedCode) {
			out = append(out, noun.Refusal{Condition: c, Permanent: r.Permanent})
		}
	}
	return out
}

func (l stepLinker) conditions(decls []*decl.Condition, code string) []noun.Condition {
	var out []noun.Condition
	for _, c := range decls {
		if c.Condition == nil || c.Message == nil {
			continue
		}
		x := noun.Condition{
			Check:   exprFunc(l.workflowLinker, c.Condition, "condition", cty.Bool, value.BoolOf),
			Message: exprFunc(l.workflowLinker, c.Message, "error_message", cty.String, func(v cty.Value) (string, error) { return messageText(v), nil }),
			Code:    exprFunc(l.workflowLinker, c.Code, "error_code", cty.String, codeOf),
		}
		if x.Code == nil {
			x.Code = func(*eval.Scope) (string, error) { return code, nil }
		}
		out = append(out, x)
	}
	return out
}

func (l stepLinker) catch(d *decl.Step, ls *linkedStep) *noun.Catch {
	if d.Catch == nil || d.Catch.Attr("errors") == nil {
		return nil
	}
	out := &noun.Catch{Errors: exprFunc(l.workflowLinker, d.Catch.Attr("errors"), "errors", cty.List(cty.String), value.StringsOf)}
	e := d.Catch.Attr("output")
	if e == nil {
		return out
	}
	ty := cty.DynamicPseudoType
	if !ls.calls() {
		ty = substituteType(l.ev.Steps[d.Index].Out)
	} else if ls.action != nil {
		ty = substituteType(l.ev.Steps[d.Index].Out)
		if cons, ok := e.Syntax.(*hclsyntax.ObjectConsExpr); ok && !e.Bad {
			l.substituteAttributes(cons, ty, ls.action)
		}
	}
	out.Output = argumentLinker(l).valueFunc(e, "output", false, func(v cty.Value) (cty.Value, error) {
		if v.IsKnown() && v.IsNull() {
			return v, nil
		}
		return value.Conform(v, ty)
	})
	return out
}

// substituteType returns the type for the output of a catch block: the type of the step's output,
// but with every attribute optional. If catch does not set an attribute, the attribute is null.
func substituteType(ty cty.Type) cty.Type {
	if !ty.IsObjectType() {
		return ty
	}
	return cty.ObjectWithOptionalAttrs(ty.AttributeTypes(), value.AttributeNames(ty))
}

func (l stepLinker) substituteAttributes(cons *hclsyntax.ObjectConsExpr, ty cty.Type, a *linkedAction) {
	for _, item := range cons.Items {
		key, diags := metered.EvaluateOnce(item.KeyExpr, nil, l.Allowance())
		if diags.HasErrors() || !key.IsKnown() || key.IsNull() || key.Type() != cty.String {
			continue
		}
		if name := key.AsString(); ty.IsObjectType() && !ty.HasAttribute(name) {
			l.Errorf(item.KeyExpr.Range(), "Unsupported output attribute", "%s has no output %q.%s", a.subject(), name,
				diag.DidYouMean(name, value.AttributeNames(ty)))
		}
	}
}

// shortest returns the shortest time in the settings of all steps and undos: a timeout, deadline,
// timer, interval of a loop, first pause of a retry, or cool-down. A deadline counts only if it is
// a duration. shortest returns 0 if some of these times are known only in a run, if a timer ends at
// a fixed time, or if there are no steps.
func (l stepLinker) shortest() time.Duration {
	best := time.Duration(-1)
	add := func(d time.Duration) {
		if d > 0 && (best < 0 || d < best) {
			best = d
		}
	}
	for i, ls := range l.steps {
		if ls.static == nil {
			return 0
		}
		if ls.decl.Kind == decl.StepTimer {
			if ls.timer == 0 {
				return 0
			}
			add(ls.timer)
		}
		if ls.decl.Repeat.Attr("interval") != nil {
			if ls.interval == 0 {
				return 0
			}
			add(ls.interval)
		}
		add(ls.static.Timeout)
		add(ls.static.HeartbeatTimeout)
		add(ls.static.Retry.InitialInterval)
		add(ls.static.Deadline.After)
		if ls.static.Retry.OnExhausted == noun.ExhaustedCoolDown {
			add(ls.static.Retry.CoolDown)
		}
		if l.out.Steps[i].Undo == nil {
			continue
		}
		if ls.undoStatic == nil {
			return 0
		}
		add(ls.undoStatic.Timeout)
		add(ls.undoStatic.Retry.InitialInterval)
		add(ls.undoStatic.Deadline.After)
	}
	return max(best, 0)
}
