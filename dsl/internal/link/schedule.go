package link

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/decl"
	"github.com/saga-engine/engine/dsl/internal/noun"
	"github.com/saga-engine/engine/dsl/internal/report"
	"github.com/saga-engine/engine/dsl/internal/sorted"
	"github.com/saga-engine/engine/dsl/internal/value"
	"github.com/saga-engine/engine/dsl/selection"
)

// A scheduleLinker checks the schedules of a workflow.
type scheduleLinker struct{ *workflowLinker }

// schedules checks the schedules of the workflow and adds them to the linked workflow.
func (l scheduleLinker) schedules(b *bind) {
	told := false
	for _, s := range l.decl.Schedules {
		l.out.Schedules = append(l.out.Schedules, s.Noun)
		lockedRows(l.workflowLinker, s.Noun.Select, s.Where)
		if !told && s.Noun.Select == nil && l.decl.Unique != nil && !l.decl.UsesTick(l.decl.Unique) {
			told = true
			l.Errorf(l.decl.Unique.Range, "Unique key without run.tick",
				"Schedule %q starts a run at each tick. This key is the same at each tick, so the second tick would only find the first run. Put run.tick into the key: join(\"/\", compact([var.x, run.tick])).", s.Noun.Name)
		}
		if !s.Broken {
			l.scheduleVariables(s, b)
		}
	}
}

// lockedRows reports a selection that locks its rows, if the workflow has checks of business rows.
// While the rows of a page are locked, the transaction that accepts a run would wait for the same
// rows.
func lockedRows(l *workflowLinker, n *noun.Selection, at hcl.Range) {
	if n != nil && n.Strategy == selection.Locked && len(l.decl.Admits) > 0 {
		l.Errorf(at, "Locked rows and admit",
			"strategy = \"locked\" locks the rows of a page until their runs are accepted, and admit %q needs the rows to accept a run. So neither could continue. Write strategy = \"exhaust\".", l.decl.Admits[0].Name)
	}
}

// scheduleVariables checks the values that a schedule gives to variables. It also reports a
// variable that has no value at a tick. A variable outside of workflows may get its value when the
// definition is published, so it may be missing here.
func (l scheduleLinker) scheduleVariables(s *decl.Schedule, b *bind) {
	names := s.Given
	for _, a := range s.Noun.Variables {
		names = append(names, a.Name)
	}
	open := givenNames(l.workflowLinker, b, names, s.VariablesAt, "At a tick of schedule \""+s.Noun.Name+"\"")
	if open || s.Noun.Select != nil { // the values of rows are checked when the rows are read
		return
	}
	if _, diags := b.values(s.Noun.Variables); diags.HasErrors() {
		for _, d := range diags {
			if d.Severity == diag.SeverityError {
				l.Push(diag.Diagnostic{Severity: d.Severity, Summary: d.Summary, Detail: d.Detail, Range: report.Range(s.VariablesAt)})
			}
		}
	}
}

// givenNames reports names that are no variables, and variables that have neither a value nor a
// default. The parameter `names` has the names of the variables that get a value. The parameter
// `when` is a text for messages: it says at which time a variable has no value. The result `open`
// is true after an error, or if a variable outside of workflows still needs a value.
func givenNames(l *workflowLinker, b *bind, names []string, at hcl.Range, when string) (open bool) {
	given := map[string]bool{}
	for _, name := range names {
		given[name] = true
		if b.decls[name] == nil {
			l.Errorf(at, "Value for undeclared variable", "The workflow has no variable %q.%s", name, diag.DidYouMean(name, sorted.Keys(b.decls)))
			open = true
		}
	}
	for _, name := range sorted.Keys(b.decls) {
		v := b.decls[name]
		switch {
		case given[name], v.Default != cty.NilVal:
		case v.Deployment:
			open = true
		default:
			l.Errorf(at, "Variable without a value", "%s the variable %q has no value. Write it into variables, or give the variable a default.", when, name)
			open = true
		}
	}
	return open
}

// An eventLinker links the on_event and reset_on blocks of a workflow.
type eventLinker struct{ *workflowLinker }

// events links the on_event and reset_on blocks of the workflow and adds them to the linked
// workflow.
func (l eventLinker) events(b *bind) {
	for _, e := range l.decl.OnEvents {
		n := *e.Noun // a copy, because Link must not change the module
		n.When = exprFunc(l.workflowLinker, e.When, "when", cty.Bool, value.BoolOf)
		n.ForEach = exprFunc(l.workflowLinker, e.ForEach, "for_each", cty.DynamicPseudoType, keysOf)
		n.Args = exprFunc(l.workflowLinker, e.Args, "args", cty.DynamicPseudoType, textsOf)
		l.world.Each = l.eachKey(e)
		source := "on_event \"" + e.Noun.Name + "\""
		n.Variables = exprFunc(l.workflowLinker, e.Variables, "variables", cty.DynamicPseudoType, func(v cty.Value) ([]noun.Assignment, error) {
			return assignmentsOf(v, source)
		})
		n.Key = exprFunc(l.workflowLinker, e.Key, "key", cty.String, keyOf)
		l.out.OnEvents = append(l.out.OnEvents, &n)
		lockedRows(l.workflowLinker, e.Noun.Select, e.Where)
		switch {
		case e.Key != nil || e.Broken:
		case e.Noun.Select != nil:
			givenNames(l.workflowLinker, b, e.Given, e.VariablesAt, "When a row of on_event \""+e.Noun.Name+"\" starts a run,")
		default:
			l.eventVariables(e, b)
		}
		l.world.Each = cty.NilVal
	}
}

// eachKey returns the value of each.* for the checks of an on_event block before an event. If the
// value of for_each is not known yet, but its type is a string, a number or a bool, eachKey reports
// an error.
func (l eventLinker) eachKey(e *decl.OnEvent) cty.Value {
	if e.ForEach == nil {
		return cty.NilVal
	}
	v := l.quietly(e.ForEach)
	if ty := v.Type(); !v.IsWhollyKnown() && ty.IsPrimitiveType() {
		l.Errorf(e.ForEach.Range, "Invalid for_each", "for_each takes a list of keys, or a map; this is a %s.", ty.FriendlyName())
	}
	return eachBefore(v)
}

// keysOf converts the value of for_each in an on_event block to keys and values. JSON has no
// sets. So a list of strings and numbers counts as a set of keys, and a key that is in the
// list twice counts once.
func keysOf(v cty.Value) (noun.Each, error) {
	v, _ = v.UnmarkDeep()
	if v.IsNull() || !v.IsWhollyKnown() || !v.Type().IsTupleType() && !v.Type().IsListType() && !v.Type().IsSetType() {
		each, err := eachOf(v)
		return each, errors.Join(err, usable(each.Keys))
	}
	keys := map[string]bool{}
	for _, x := range v.AsValueSlice() {
		if x.IsNull() || x.Type() != cty.String && x.Type() != cty.Number {
			return noun.Each{}, errors.New("a list of keys holds strings or numbers; for other elements write { for x in ... : x.id => x }")
		}
		text, err := convert.Convert(x, cty.String)
		if err != nil {
			return noun.Each{}, err
		}
		keys[text.AsString()] = true
	}
	out := noun.Each{Keys: sorted.Keys(keys)}
	for _, k := range out.Keys {
		x, err := value.Encode(cty.StringVal(k), false)
		if err != nil {
			return noun.Each{}, err
		}
		out.Values = append(out.Values, x)
	}
	return out, usable(out.Keys)
}

// maxEventKey is the largest size of a key of for_each in an on_event block, in bytes.
const maxEventKey = 1000

// usable returns an error if the store could not hold one of the keys.
func usable(keys []string) error {
	for _, k := range keys {
		switch {
		case k == "":
			return errors.New("a key is an empty text")
		case len(k) > maxEventKey:
			return fmt.Errorf("a key has %d bytes, more than the %d allowed", len(k), maxEventKey)
		case strings.ContainsRune(k, 0):
			return fmt.Errorf("the key %q has a NUL character", k)
		}
	}
	return nil
}

// textsOf converts the value of the argument `args` to one text for each parameter. The text nil
// means NULL.
func textsOf(v cty.Value) (map[string]*string, error) {
	v, _ = v.UnmarkDeep()
	if v.IsNull() || !v.IsKnown() || !v.Type().IsObjectType() && !v.Type().IsMapType() {
		return nil, errors.New("an object with a value for each parameter is required, such as { day = event.data.day }")
	}
	out := map[string]*string{}
	for name, x := range v.AsValueMap() {
		if x.IsNull() {
			out[name] = nil
			continue
		}
		text, err := convert.Convert(x, cty.String)
		if err != nil || !text.IsKnown() {
			return nil, fmt.Errorf("the value of %s must be a string, a number or a bool; pass a list as text, such as join(\",\", list), and split it in the query", name)
		}
		s := text.AsString()
		out[name] = &s
	}
	return out, nil
}

// eventVariables checks the values that an on_event block gives to variables, as far as they are
// known before an event. It also reports a variable that has no value when an event comes. A
// variable outside of workflows may get its value when the definition is published, so it may be
// missing here.
func (l eventLinker) eventVariables(e *decl.OnEvent, b *bind) {
	given := cty.EmptyObjectVal
	if e.Variables != nil {
		given = l.quietly(e.Variables)
		if e.Variables.Bad || !given.Type().IsObjectType() || given.IsNull() {
			return // the names of the variables are known only when an event comes, or an error was reported
		}
	}
	given, _ = given.Unmark()
	values := given.AsValueMap()
	for _, name := range sorted.Keys(values) {
		v := b.decls[name]
		switch {
		case v == nil:
			l.Errorf(e.VariablesAt, "Value for undeclared variable", "The workflow has no variable %q.%s", name, diag.DidYouMean(name, sorted.Keys(b.decls)))
		case v.Sensitive:
			l.Errorf(e.VariablesAt, "Sensitive variable from an event",
				"Variable %q is sensitive, and a store keeps the data of events in clear. Send a reference to the secret, and let a step read it.", name)
		case values[name].IsWhollyKnown():
			if _, err := v.Convert(values[name]); err != nil {
				l.Errorf(e.VariablesAt, "Invalid value for variable", "on_event %q gives variable %q a value that does not fit its type %s: %s.", e.Noun.Name, name, v.TypeText, err)
			}
		}
	}
	for _, name := range sorted.Keys(b.decls) {
		v := b.decls[name]
		if _, ok := values[name]; !ok && v.Default == cty.NilVal && !v.Deployment {
			l.Errorf(e.VariablesAt, "Variable without a value", "When an event starts a run by on_event %q, the variable %q has no value. Write it into variables, or give the variable a default.", e.Noun.Name, name)
		}
	}
}

// assignmentsOf returns an assignment for each attribute of an object. The parameter `source` says
// where the values come from, for messages. assignmentsOf returns an error if v is not an object.
func assignmentsOf(v cty.Value, source string) ([]noun.Assignment, error) {
	v, _ = v.UnmarkDeep()
	if v.IsNull() || !v.Type().IsObjectType() && !v.Type().IsMapType() {
		return nil, errors.New("an object with a value for each variable is required, such as { id = event.data.id }")
	}
	values := v.AsValueMap()
	var list []noun.Assignment
	for _, name := range sorted.Keys(values) {
		a := noun.AssignmentIn(name, diag.Range{}, &hclsyntax.LiteralValueExpr{Val: values[name]}, nil)
		a.Source = source
		list = append(list, a)
	}
	return list, nil
}
