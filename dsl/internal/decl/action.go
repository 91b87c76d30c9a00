package decl

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/report"
	"github.com/saga-engine/engine/dsl/internal/sorted"
	"github.com/saga-engine/engine/dsl/internal/syntax"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// An actionDecoder reads the action blocks of agents.
type actionDecoder struct{ *decoder }

// actions reads the action blocks of an agent, and adds them to a.Actions. It reports a second
// action with the same name, and adds it to a.twinActions.
func (d actionDecoder) actions(a *Agent) {
	first := map[string]hcl.Range{}
	for _, b := range a.Block.All("action") {
		x := d.action(b)
		if at, dup := first[b.Label]; dup {
			d.Errorf(b.DefRange, fmt.Sprintf("Duplicate action %q", b.Label), "The first one is at %s.", report.Range(at))
			a.twinActions = append(a.twinActions, x)
			continue
		}
		first[b.Label] = b.DefRange
		a.Actions = append(a.Actions, x)
	}
}

func (d actionDecoder) action(b *syntax.Block) *Action {
	a := &Action{
		Name: b.Label, Where: b.DefRange, Block: b, UsesAt: b.DefRange, InputAt: b.DefRange,
		Arguments: cty.EmptyObject, Output: cty.NilType, Result: b.Attr("result"),
	}
	if e := b.Attr("uses"); e != nil {
		a.UsesAt = e.Range
		a.Uses, _ = d.lit.literalText(e, "uses")
	}
	if e := b.Attr("arguments"); e != nil {
		if ty, defaults, ok := d.object(e, "arguments"); ok {
			a.Arguments, a.Defaults = ty, defaults
		}
	}
	if e := b.Attr("output"); e != nil {
		if ty, defaults, ok := d.object(e, "output"); ok {
			a.Output, a.Presets = ty, defaults
		}
	} else if a.Result != nil {
		d.Errorf(a.Result.Range, "Result without output", "result makes the output of the action, so its type has to be declared: output = object({ ... }).")
	}
	if c := b.One("input"); c != nil {
		a.Input, a.InputAt = c.Args, c.DefRange
	}
	for _, c := range b.All("fail_when") {
		a.FailWhen = append(a.FailWhen, &Refusal{*conditionOf(c), d.lit.flag(c, "permanent", false)})
	}
	a.Idempotent = d.lit.promise(b, "idempotent")
	a.ReadOnly = d.lit.promise(b, "read_only")
	a.ByKey = d.lit.promise(b, "by_key")
	if e := b.Attr("compensated_by"); e != nil {
		a.CompensatedByAt = e.Range
		a.CompensatedBy, _ = d.lit.literalText(e, "compensated_by")
	}
	if e := b.Attr("lookup"); e != nil {
		a.LookupAt = e.Range
		a.Lookup, _ = d.lit.literalText(e, "lookup")
	}
	a.Errors = d.errorCodes(b.Attr("errors"))
	return a
}

// object reads an attribute whose value must be the type of an object. It returns the type and
// the defaults of the optional attributes. The parameter `name` is the attribute's name, for
// messages. The schemas of agents have no tuples, so a tuple inside of the type is an error.
// After an error, the method `object` returns false.
func (d actionDecoder) object(e *eval.Expr, name string) (cty.Type, *typeexpr.Defaults, bool) {
	ty, defaults, ok := d.lit.typeOf(e)
	if !ok {
		return cty.NilType, nil, false
	}
	if !ty.IsObjectType() {
		d.Errorf(e.Range, "Invalid value for "+name, "%s is the type of an object: object({ NAME = TYPE }).", name)
		return cty.NilType, nil, false
	}
	if _, err := value.SchemaOf(ty); err != nil {
		d.Invalid(e.Range, name, err)
		return cty.NilType, nil, false
	}
	return ty, defaults, true
}

// errorCodes returns the error codes in the attribute `errors` of an action block. The attribute is
// a list of codes, or an object with one entry for each code. The value of such an entry is an
// object, which may have the attribute `retryable`. After an error, errorCodes returns nil.
func (d actionDecoder) errorCodes(e *eval.Expr) []ErrorCode {
	if e == nil {
		return nil
	}
	v, ok := d.lit.literal(e, "errors")
	if !ok {
		return nil
	}
	var out []ErrorCode
	switch ty := v.Type(); {
	case v.IsNull() || !ty.IsTupleType() && !ty.IsObjectType():
		d.wrongErrors(e)
		return nil
	case ty.IsTupleType():
		for _, x := range v.AsValueSlice() {
			if x.Type() != cty.String || x.IsNull() {
				d.wrongErrors(e)
				return nil
			}
			out = append(out, ErrorCode{Code: x.AsString(), Where: e.Range})
		}
	default:
		codes := v.AsValueMap()
		for _, code := range sorted.Keys(codes) {
			retryable, ok := retryableOf(codes[code])
			if !ok {
				d.wrongErrors(e)
				return nil
			}
			out = append(out, ErrorCode{Code: code, Retryable: retryable, Where: e.Range})
		}
	}
	return out
}

func (d actionDecoder) wrongErrors(e *eval.Expr) {
	d.Errorf(e.Range, "Invalid value for errors", "errors is a list of codes, or an object such as { sold_out = {}, busy = { retryable = true } }.")
}

// retryableOf returns the attribute `retryable` of the object v, or false if v does not have it.
// The result `ok` is false if v is not an object, if `retryable` is not true or false, or if v has
// other attributes.
func retryableOf(v cty.Value) (retryable, ok bool) {
	if v.IsNull() || !v.Type().IsObjectType() {
		return false, false
	}
	for name, x := range v.AsValueMap() {
		if name != "retryable" || x.IsNull() || x.Type() != cty.Bool {
			return false, false
		}
		retryable = x.True()
	}
	return retryable, true
}

// resolve compiles the expressions of all action blocks of an agent. The input block of an
// action may refer to the arguments of the action. The result and the conditions may refer to
// the reply of the agent.
func (d actionDecoder) resolve(a *Agent, refs referenceDecoder) {
	for _, x := range append(append([]*Action(nil), a.Actions...), a.twinActions...) {
		d.span(x.Block.Attr("timeout"), "timeout", &x.Timeout)
		input := &names{
			variables: d.m.Variables, locals: d.m.locals,
			arguments: value.AttributeNames(x.Arguments), onlySelf: "key",
		}
		for _, arg := range x.Input {
			refs.compile(arg.Expr, input, allowVar|allowLocal|allowArgs|allowSelf|allowSecret)
		}
		reply := &names{onlySelf: "output"}
		refs.compile(x.Result, reply, allowSelf)
		for _, c := range x.FailWhen {
			refs.compile(c.Condition.Condition, reply, allowSelf)
			refs.compile(c.Message, reply, allowSelf)
			refs.compile(c.Code, reply, allowSelf)
		}
	}
}
