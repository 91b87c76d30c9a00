package argument

import (
	"fmt"

	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/sorted"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// A Filler builds the arguments of a declared undo. A declared undo is an undo that the schema of
// the agent names with compensated_by.
type Filler struct {
	Evaluator *eval.Evaluator
	Self      int    // index of the step that is undone
	ByKey     bool   // true = the undo needs no output of the step
	UsesSelf  bool   // true = an argument comes from the output of the step
	Fields    []Fill // arguments of the undo
}

// A Fill says where one argument of a declared undo comes from: the output or input of the step.
type Fill struct {
	Spec *Spec
	From string // "output" or "input": the part of the step that holds the value; "" = use the default
}

// Eval returns the object of all arguments. Callers use Eval as a ValueFunc. If s.Self is nil, Eval
// returns eval.ErrNoScope. If the output of the step is not known, and the undo needs this output,
// Eval returns an error, too.
func (f *Filler) Eval(s *eval.Scope) (value.Value, error) {
	if s == nil || s.Self == nil {
		return value.Value{}, eval.ErrNoScope
	}
	self, err := eval.SelfValue(s, f.Evaluator.Steps[f.Self])
	if err != nil {
		return value.Value{}, err
	}
	attrs := map[string]cty.Value{}
	for _, x := range f.Fields {
		name := x.Spec.Field.Name
		v := cty.NullVal(cty.DynamicPseudoType)
		switch {
		case x.From == "output" && !s.Self.OutputKnown && !f.ByKey:
			return value.Value{}, fmt.Errorf("argument %q comes from the output of the step, which is not known", name)
		case x.From == "output" && !s.Self.OutputKnown:
		case x.From != "":
			v = attribute(self.GetAttr(x.From), name)
		}
		if v, err = x.Spec.Accept(v); err != nil {
			return value.Value{}, fmt.Errorf("argument %q, from self.%s: %w", name, x.From, err)
		}
		if v != cty.NilVal {
			attrs[name] = v
		}
	}
	v, err := value.Encode(cty.ObjectVal(attrs), true)
	if err != nil {
		return value.Value{}, fmt.Errorf("arguments: %w", err)
	}
	return v, nil
}

// attribute returns the attribute of v with this name. It returns null if v is null, is not an
// object, or does not have the attribute.
func attribute(v cty.Value, name string) cty.Value {
	raw, marks := v.Unmark()
	if raw.IsNull() || !raw.IsKnown() || !raw.Type().IsObjectType() || !raw.Type().HasAttribute(name) {
		return cty.NullVal(cty.DynamicPseudoType)
	}
	return raw.GetAttr(name).WithMarks(marks)
}

// Passed returns the arguments of a lookup: the action that says whether an earlier call had
// its effect. The parameter `given` holds the arguments of the earlier call. Each argument of
// the lookup gets the value of the argument with the same name in the earlier call. If the
// earlier call has no such argument, the argument of the lookup gets its default. Without a
// default, it is left out if it is optional, and otherwise Passed returns an error. The parameter
// `specs` holds the arguments of the lookup, by name.
func Passed(given value.Value, specs map[string]*Spec) (value.Value, error) {
	from, err := value.Decode(given)
	if err != nil {
		return value.Value{}, err
	}
	attrs := map[string]cty.Value{}
	for _, name := range sorted.Keys(specs) {
		v, err := specs[name].Accept(attribute(from, name))
		if err != nil {
			return value.Value{}, fmt.Errorf("argument %q of the lookup: %w", name, err)
		}
		if v != cty.NilVal {
			attrs[name] = v
		}
	}
	return value.Encode(cty.ObjectVal(attrs), true)
}
