package link

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/argument"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/noun"
	"github.com/saga-engine/engine/dsl/internal/sorted"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// replyParts are the values of a reply, by the name of the argument that gets the value.
var replyParts = map[string]cty.Type{
	"run": cty.String, "workflow": cty.String, "key": cty.String, "correlation": cty.String, "seq": cty.Number, "status": cty.String, "at": cty.String,
}

// replyNeeds are the arguments that an action must have to take replies. The submitter of a run chooses
// the action. So only an action that was made for replies may take them, and no other action such as a
// refund.
var replyNeeds = []string{"run", "seq", "status"}

// replyStatuses are the statuses of replies.
var replyStatuses = []string{"accepted", "started", "parked", "compensation_failed", "succeeded", "failed", "compensated", "cancelled"}

// replySinks finds the actions that take replies of runs. It reports nothing: an agent without such an
// action is valid.
func (l *linker) replySinks() *noun.ReplySinks {
	out := &noun.ReplySinks{Take: map[string]map[string]*noun.ReplySink{}, Refused: map[string]map[string]string{}}
	for _, name := range sorted.Keys(l.agents) {
		la := l.agents[name]
		if la.noun == nil {
			continue
		}
		take, refused := map[string]*noun.ReplySink{}, map[string]string{}
		out.Take[name], out.Refused[name] = take, refused
		for _, action := range slices.Compact(slices.Sorted(slices.Values(append(sorted.Keys(la.bin.Schema.Actions), declaredNames(la.decl)...)))) {
			a, err := la.untouched(action)
			if err == nil {
				err = a.takesReplies()
			}
			if err != nil {
				refused[action] = err.Error()
				continue
			}
			take[action] = a.replySink(la.noun)
		}
	}
	return out
}

// untouched returns an action of the agent. In contrast to linker.action, it does not count the action
// as used by the module, and reports nothing.
func (la *linkedAgent) untouched(name string) (*linkedAction, error) {
	if a := la.linked(name); a != nil {
		if a.broken {
			return nil, fmt.Errorf("it has errors")
		}
		return a, nil
	}
	a := &linkedAction{agent: la, name: name, schema: la.bin.Schema.Actions[name]}
	var err error
	if a.in, err = argument.Specs(a.schema.Inputs); err == nil {
		a.out, err = value.ObjectFrom(a.schema.Outputs)
	}
	if err != nil {
		return nil, fmt.Errorf("its schema is broken: %w", err)
	}
	return a, nil
}

// takesReplies returns an error if the action takes no replies.
func (a *linkedAction) takesReplies() error {
	for _, name := range replyNeeds {
		if a.in[name] == nil {
			return fmt.Errorf("it has no argument %q, and an action that takes replies has the arguments %s", name, strings.Join(replyNeeds, ", "))
		}
	}
	for _, name := range sorted.Keys(a.in) {
		spec, ty := a.in[name], replyParts[name]
		if ty == cty.NilType {
			if spec.Required() {
				return fmt.Errorf("it requires the argument %q, and a reply has only %s", name, strings.Join(sorted.Keys(replyParts), ", "))
			}
			continue
		}
		if _, err := spec.Accept(cty.UnknownVal(ty)); err != nil {
			return fmt.Errorf("argument %q: %w", name, err)
		}
	}
	for _, status := range replyStatuses {
		if _, err := a.in["status"].Accept(cty.StringVal(status)); err != nil {
			return fmt.Errorf("argument \"status\" does not accept %q: %w", status, err)
		}
	}
	return nil
}

// replySink returns the action as a sink of replies.
func (a *linkedAction) replySink(of *noun.Agent) *noun.ReplySink {
	do := actionNoun(a, nil, nil, nil, a.out)
	out := &noun.ReplySink{Agent: of, Action: a.name, Output: do.Output}
	if do.Uses != "" {
		out.Action = do.Uses
	}
	out.Input = func(s *eval.Scope, told map[string]any) (value.Value, error) {
		return a.sent(func(*eval.Scope) (value.Value, error) { return replyArguments(a.in, told) })(s)
	}
	return out
}

// replyArguments returns the arguments of an action as one object. Arguments that no reply has get
// their default, or are left out.
func replyArguments(specs map[string]*argument.Spec, told map[string]any) (value.Value, error) {
	attrs := map[string]cty.Value{}
	for _, name := range sorted.Keys(specs) {
		v := cty.NullVal(cty.DynamicPseudoType)
		switch x := told[name].(type) {
		case string:
			v = cty.StringVal(x)
		case int:
			v = cty.NumberIntVal(int64(x))
		}
		v, err := specs[name].Accept(v)
		if err != nil {
			return value.Value{}, fmt.Errorf("argument %q: %w", name, err)
		}
		if v != cty.NilVal {
			attrs[name] = v
		}
	}
	return value.Encode(cty.ObjectVal(attrs), true)
}
