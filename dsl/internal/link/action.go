package link

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/argument"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/fasteval"
	"github.com/saga-engine/engine/dsl/internal/noun"
	"github.com/saga-engine/engine/dsl/internal/sorted"
	"github.com/saga-engine/engine/dsl/internal/value"
	"github.com/saga-engine/engine/sdk"
	"github.com/saga-engine/engine/sdk/schema"
)

// actionNoun returns a noun.Action for the action a. The parameters `idempotent`, `readOnly` and
// `byKey` are settings in the workflow. If one of them is nil, the workflow does not have this
// setting, and the schema decides. The parameter `out` is the type of the output.
func actionNoun(a *linkedAction, idempotent, readOnly, byKey *bool, out cty.Type) *noun.Action {
	pick := func(promise *bool, declared bool) bool {
		if promise != nil {
			return *promise
		}
		return declared
	}
	do := &noun.Action{
		Agent: a.agent.decl.Name, Name: a.name,
		Idempotent: pick(idempotent, a.schema.Idempotent),
		ReadOnly:   pick(readOnly, a.schema.ReadOnly),
		ByKey:      pick(byKey, a.schema.ByKey),
		Lookup:     a.schema.Lookup, Cancellable: a.schema.Cancellable, Typical: a.schema.Typical,
		Output: ReplyFunc(a.schema.Outputs, a.out, out), Skeleton: skeletonFunc(a.schema.Outputs, out),
	}
	if f := a.form; f != nil {
		do.Uses, do.Keyed = f.used.name, f.keyed
		do.Output, do.Stated = f.reply(a.schema.Outputs, out), do.Output
	}
	if a.asks != nil {
		do.Asks = a.asker(out)
	}
	return do
}

// ReplyFunc returns a function that checks and converts a reply, and marks its sensitive parts
// (S35). The parameter `fields` holds the outputs in the schema, and the parameter `declared` is
// their object type. The parameter `wanted` is the type in output_type. For a step without
// output_type, `wanted` equals `declared`.
func ReplyFunc(fields []schema.Field, declared, wanted cty.Type) func([]byte) (value.Value, error) {
	sh := ReplyShape(fields, declared, wanted)
	slow := ReplyConverted(fields, declared, wanted)
	return func(raw []byte) (value.Value, error) {
		if len(raw) == 0 || string(raw) == "null" {
			raw = []byte("{}")
		}
		if v, ok := fasteval.Canonical(sh, raw); ok {
			return v, nil
		}
		return slow(raw)
	}
}

// ReplyShape returns the shape of the replies that need no conversion. It returns nil if the
// general evaluator must check every reply.
func ReplyShape(fields []schema.Field, declared, wanted cty.Type) *fasteval.Shape {
	sh := fasteval.ShapeOfFields(fields)
	if wanted.Equals(declared) {
		return sh
	}
	return fasteval.Narrowed(sh, fasteval.ShapeFrom(wanted))
}

// ReplyConverted returns a function that checks and converts a reply, as the result of ReplyFunc
// does. But the function of ReplyConverted does not use the fast evaluator, so it is slower. It
// also does not accept an empty reply or the reply null, which ReplyFunc treats as {}. If it
// returns an error, the error says what is wrong with the reply.
func ReplyConverted(fields []schema.Field, declared, wanted cty.Type) func([]byte) (value.Value, error) {
	return func(raw []byte) (value.Value, error) {
		if err := value.CheckDepth(raw); err != nil {
			return value.Value{}, fmt.Errorf("reply: %w", err)
		}
		if err := sdk.CheckObject(fields, raw); err != nil {
			return value.Value{}, fmt.Errorf("reply: %w", err)
		}
		v, err := value.DecodeJSON(raw)
		if err == nil {
			v, err = value.Conform(v, declared)
		}
		if err == nil && !wanted.Equals(declared) {
			if v, err = narrow(v, wanted); err != nil {
				err = fmt.Errorf("output_type: %w", err)
			}
		}
		if err != nil {
			return value.Value{}, fmt.Errorf("reply: %w", err)
		}
		return value.Encode(value.MarkFields(v, fields), false)
	}
}

// narrow converts the reply v to ty, the type in output_type. It returns an error if v does not fit
// ty. It also returns an error if an attribute of v is null, but is not declared with optional() in
// output_type.
func narrow(v cty.Value, ty cty.Type) (cty.Value, error) {
	v, err := value.Conform(v, ty)
	if err != nil {
		return cty.NilVal, err
	}
	var null []string
	for _, name := range value.AttributeNames(ty) {
		if !ty.AttributeOptional(name) && v.GetAttr(name).IsNull() {
			null = append(null, strconv.Quote(name))
		}
	}
	switch len(null) {
	case 0:
		return v, nil
	case 1:
		return cty.NilVal, fmt.Errorf("attribute %s is null", null[0])
	}
	return cty.NilVal, fmt.Errorf("attributes %s are null", strings.Join(null, ", "))
}

func retryable(codes []schema.ErrorCode) func(string) bool {
	set := map[string]bool{}
	for _, c := range codes {
		if c.Retryable {
			set[c.Code] = true
		}
	}
	return func(code string) bool { return set[code] }
}

// limits returns the default settings of a step or undo that calls the action a: the parameter
// `base`, but with the timeout of the action block, if there is one. If a is nil, limits returns
// base.
func (a *linkedAction) limits(base noun.Settings) noun.Settings {
	if a != nil && a.form != nil && a.form.decl.Timeout > 0 {
		base.Timeout = a.form.decl.Timeout
	}
	return base
}

// sent returns a function that computes the input which the engine sends to the agent. The
// parameter `given` is a function that computes the arguments in the workflow. For an action of the
// plugin, these arguments are the input, so the method `sent` returns `given` itself. For a
// declared action, the returned function computes the input of the plugin's action from these
// arguments.
func (a *linkedAction) sent(given noun.ValueFunc) noun.ValueFunc {
	f := a.form
	if f == nil {
		return given
	}
	return func(s *eval.Scope) (value.Value, error) {
		args, err := given(s)
		if err != nil {
			return value.Value{}, err
		}
		inner := &eval.Scope{Run: s.Run, Vars: f.vars(s.Vars), Allowance: s.Allowance, Self: &eval.Self{Input: args}}
		if s.Self != nil {
			inner.Self.Key = s.Self.Key
		}
		return f.input.Build(inner, false)
	}
}

// reply returns the function for the field Output of noun.Action, for a declared action. The
// function checks a reply of the plugin's action against the schema and against the fail_when
// blocks, and returns the declared output. The parameter `fields` describes the declared output,
// and the parameter `wanted` is the type of the step's output.
func (f *actionForm) reply(fields []schema.Field, wanted cty.Type) func([]byte) (value.Value, error) {
	raw := ReplyFunc(f.used.schema.Outputs, f.used.out, f.used.out)
	return func(json []byte) (value.Value, error) {
		got, err := raw(json)
		if err != nil {
			return value.Value{}, err
		}
		s := &eval.Scope{Self: &eval.Self{Output: got, OutputKnown: true}}
		if err := f.refused(s, got); err != nil {
			return value.Value{}, err
		}
		v, err := f.value(s)
		if err == nil {
			v, err = f.conform(v, wanted)
		}
		if err != nil {
			return value.Value{}, fmt.Errorf("result: %w", err)
		}
		return value.Encode(value.MarkFields(v, fields), false)
	}
}

// refused returns a *noun.Refused if the condition of a fail_when block is true for the agent's
// reply. The parameter `got` is this reply. If a condition or an error_code cannot be evaluated,
// refused returns an error of another type, and the outcome of the call is unknown. If no condition
// is true, refused returns nil.
func (f *actionForm) refused(s *eval.Scope, got value.Value) error {
	for _, r := range f.refusals {
		holds, err := r.Check(s)
		if err != nil {
			return fmt.Errorf("fail_when: %w", err)
		}
		if !holds {
			continue
		}
		out := &noun.Refused{Permanent: r.Permanent, Data: got}
		if out.Code, err = r.Code(s); err != nil {
			return fmt.Errorf("fail_when: %w", err)
		}
		if out.Message, err = r.Message(s); err != nil {
			out.Message = "error_message: " + err.Error()
		}
		return out
	}
	return nil
}

// value evaluates the attribute `result` of the action block, and returns its value. If the block
// does not have this attribute, value returns the reply of the plugin's action.
func (f *actionForm) value(s *eval.Scope) (cty.Value, error) {
	if e := f.decl.Result; e != nil {
		return f.ev.Run(e.Compiled, s, 0)
	}
	return value.Decode(s.Self.Output)
}

var errNullResult = errors.New("a value is required, this is null")

// conform converts v to ty and returns the result. The parameter `v` is the value of the attribute
// `result`. The method `conform` also fills in the defaults of the declared output. It returns an
// error if v is null or does not fit ty.
func (f *actionForm) conform(v cty.Value, ty cty.Type) (cty.Value, error) {
	if v.IsKnown() && v.IsNull() {
		return cty.NilVal, errNullResult
	}
	if f.decl.Presets != nil && !v.Type().IsPrimitiveType() {
		v = f.decl.Presets.Apply(v)
	}
	return narrow(v, ty)
}

// replyParts holds the type of each value in a reply of a run. The keys are the names of the
// arguments that an action needs to get these values.
var replyParts = map[string]cty.Type{
	"run": cty.String, "workflow": cty.String, "key": cty.String, "correlation": cty.String, "seq": cty.Number, "status": cty.String, "at": cty.String,
}

// replyNeeds are the arguments that an action must have to take replies. The submitter of a run
// names the action that gets the replies. With this rule, a submitter cannot name an action that
// was not made for replies, such as a refund, because such an action does not have all these
// arguments.
var replyNeeds = []string{"run", "seq", "status"}

// replyStatuses holds every status that a reply of a run can have.
var replyStatuses = []string{"accepted", "started", "parked", "compensation_failed", "succeeded", "failed", "compensated", "cancelled"}

// replySinks finds the actions that take replies of runs. It reports nothing: an agent without such
// an action is valid.
func replySinks(l *linker) *noun.ReplySinks {
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

// untouched returns an action of the agent. In contrast to linker.action, it does not count the
// action as used by the module, and reports nothing.
func (la *linkedAgent) untouched(name string) (*linkedAction, error) {
	if a := la.linked(name); a != nil {
		if a.broken {
			return nil, errors.New("it has errors")
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

// replyArguments returns the arguments of an action as one object. If a reply has no value for an
// argument, the argument gets its default. If it has no default, it is left out.
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
