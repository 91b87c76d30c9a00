package link

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/argument"
	"github.com/saga-engine/engine/dsl/internal/decl"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/noun"
	"github.com/saga-engine/engine/dsl/internal/sorted"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// A lookupLinker links the attribute `lookup` of action blocks.
type lookupLinker struct{ *linker }

// lookup links the attribute `lookup` of the declared action a. The attribute names another action
// of the agent, which can say whether an earlier call of the action a had its effect. The parameter
// `names` has the names of all actions of the agent.
func (l lookupLinker) lookup(a *linkedAction, d *decl.Action, names []string) {
	if d.Lookup == "" || a.broken {
		return
	}
	la, at := a.agent, d.LookupAt
	if !slices.Contains(names, d.Lookup) {
		l.Errorf(at, "Unknown action", "Agent %q (%s %s) has no action %q.%s",
			la.decl.Name, la.decl.Plugin, la.bin.Version, d.Lookup, diag.DidYouMean(d.Lookup, names))
		a.broken = true
		return
	}
	other := la.declared[d.Lookup]
	if other == nil {
		other = l.pluginAction(la, d.Lookup, at)
	}
	if other == nil || other.broken {
		a.broken = true // the error of the lookup has been reported
		return
	}
	before := len(l.List)
	switch {
	case other == a:
		l.Errorf(at, "Lookup of itself", "%s cannot be its own lookup. Name a read-only action that finds the call by self.key.", a.short())
	case !other.schema.ReadOnly:
		l.Errorf(at, "Lookup changes something", "%s is not read-only, so it cannot be the lookup of %s: the engine may ask several times. If it changes nothing, write read_only = true in its action block.",
			other.short(), a.short())
	}
	for _, name := range sorted.Keys(other.in) {
		own, spec := a.in[name], other.in[name]
		switch {
		case own == nil && spec.Required():
			l.Errorf(at, "Lookup needs an argument", "%s requires the argument %q, and %s has no argument with this name to give to it. Let the lookup find the call by self.key, or add the argument.",
				other.short(), name, a.short())
		case own != nil && !value.Assignable(own.Type, spec.Type):
			l.Errorf(at, "Lookup needs an argument", "The argument %q of %s is %s, and that of %s is %s.",
				name, other.short(), value.TypeText(spec.Type), a.short(), value.TypeText(own.Type))
		}
	}
	l.output(a, other, at)
	if l.List[before:].HasErrors() {
		a.broken = true
		return
	}
	a.asks, a.schema.Lookup = other, true
	for i := range a.schema.Outputs { // an output that is sensitive in the lookup is sensitive in the action a, too
		o := &a.schema.Outputs[i]
		for _, x := range other.schema.Outputs {
			o.Sensitive = o.Sensitive || x.Name == o.Name && x.Sensitive
		}
	}
}

// output reports an error if the output of the lookup cannot be the output of the action a. The
// parameter `other` is the action that is the lookup. The parameter `at` is the position of the
// attribute `lookup`.
func (l lookupLinker) output(a, other *linkedAction, at hcl.Range) {
	for _, name := range value.AttributeNames(a.out) {
		want := a.out.AttributeType(name)
		switch {
		case !other.out.HasAttribute(name) && a.out.AttributeOptional(name):
		case !other.out.HasAttribute(name):
			l.Errorf(at, "Lookup has another output", "When the call had its effect, the output of %s becomes the output of %s, which has an attribute %q. The lookup has none.",
				other.short(), a.short(), name)
		case !value.Assignable(other.out.AttributeType(name), want):
			l.Errorf(at, "Lookup has another output", "When the call had its effect, the output of %s becomes the output of %s. Its attribute %q is %s, and has to be %s.",
				other.short(), a.short(), name, value.TypeText(other.out.AttributeType(name)), value.TypeText(want))
		}
	}
}

// asker returns the lookup of the action a as a noun.Action. The output of the lookup becomes the
// output of the action a. The parameter `out` is the type of this output.
func (a *linkedAction) asker(out cty.Type) *noun.Action {
	do := actionNoun(a.asks, nil, nil, nil, a.asks.out)
	if f := a.asks.form; f != nil {
		do.Output = f.reply(a.schema.Outputs, out)
	} else {
		do.Output = ReplyFunc(a.schema.Outputs, a.asks.out, out)
	}
	return do
}

// askWith sets do.AskInput, the input of the lookup of the action a. The parameter `given` computes
// the arguments of the action a. The lookup gets only the arguments that it also has. If the action
// a has no lookup, askWith does nothing.
func (a *linkedAction) askWith(do *noun.Action, given noun.ValueFunc) {
	if a.asks == nil {
		return
	}
	other := a.asks
	do.AskInput = other.sent(func(s *eval.Scope) (value.Value, error) {
		v, err := given(s)
		if err != nil {
			return value.Value{}, err
		}
		return argument.Passed(v, other.in)
	})
}
