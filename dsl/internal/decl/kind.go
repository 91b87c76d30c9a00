package decl

import (
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/sorted"
	"github.com/saga-engine/engine/dsl/internal/syntax"
)

// kinds lists the kinds of steps. The field `name` is the attribute or block that only a step of
// this kind has. The function `at` returns whether a step block has this attribute or block, and
// where it is in the source.
var kinds = []struct {
	name string
	kind StepKind
	at   func(b *syntax.Block) (hcl.Range, bool)
}{
	{"action", StepCalls, writtenArgument("action")},
	{"workflow", StepChild, writtenArgument("workflow")},
	{"value", StepValue, writtenArgument("value")},
	{"timer", StepTimer, writtenBlock("timer")},
	{"wait", StepWait, writtenBlock("wait")},
}

func writtenArgument(name string) func(*syntax.Block) (hcl.Range, bool) {
	return func(b *syntax.Block) (hcl.Range, bool) {
		if e := b.Attr(name); e != nil {
			return e.Range, true
		}
		return hcl.Range{}, false
	}
}

func writtenBlock(name string) func(*syntax.Block) (hcl.Range, bool) {
	return func(b *syntax.Block) (hcl.Range, bool) {
		if c := b.One(name); c != nil {
			return c.DefRange, true
		}
		return hcl.Range{}, false
	}
}

// kind sets the kind of the step s, and the fields that only steps of this kind have. It reports an
// error if s does not have exactly one of action, workflow, value, timer and wait.
func (d *decoder) kind(s *Step) {
	b, first := s.Block, ""
	for _, k := range kinds {
		at, written := k.at(b)
		switch {
		case !written:
		case first != "":
			d.Errorf(at, "Step does two things", "A step does one thing, and this one has %s already. Write a second step for %s.", first, k.name)
		default:
			first, s.Kind = k.name, k.kind
		}
	}
	if first == "" && !b.Broken {
		d.Errorf(b.DefRange, "Missing required argument", "A step needs an action: action = agent.NAME.ACTION. A step that starts a child run has workflow = workflow.NAME. A step without a call has value = ..., timer { ... } or wait { ... }.")
	}
	s.Agent, s.Action, s.ActionAt = d.action(b)
	switch s.Kind {
	case StepTimer:
		s.Timer = d.timer(b.One("timer"))
	case StepWait:
		s.Wait = d.wait(b.One("wait"))
	case StepChild:
		d.child(s)
	}
	if s.Kind != StepCalls && s.Kind != StepChild {
		d.callOnly(b)
	}
}

// callArguments holds the names of the attributes and blocks that only a step with a call may have.
var callArguments = []string{
	"input", "timeout", "heartbeat_timeout", "retry", "idempotency_key", "idempotent", "read_only", "on_rerun",
	"output_type", "fail_when", "priority", "compensate", "compensation", "pivot",
}

// callOnly reports an error for each name of callArguments that a step block without a call has.
func (d *decoder) callOnly(b *syntax.Block) {
	for _, name := range callArguments {
		at, written := writtenArgument(name)(b)
		if !written {
			at, written = writtenBlock(name)(b)
		}
		if written {
			d.Errorf(at, "Argument of a call", "%s says something about the call of an action, and this step calls none. Remove it.", name)
		}
	}
}

func (d *decoder) timer(b *syntax.Block) *syntax.Block {
	duration, until := b.Attr("duration"), b.Attr("until")
	switch {
	case duration != nil && until != nil:
		d.Errorf(until.Range, "Timer with two times", "A timer has either duration, counted from when the step starts, or until, a point in time.")
	case duration == nil && until == nil && !b.Broken:
		d.Errorf(b.DefRange, "Missing required argument", "A timer needs duration = \"24h\" or until = \"2030-01-31T18:00:00Z\".")
	}
	return b
}

func (d *decoder) wait(b *syntax.Block) *Wait {
	w := &Wait{Block: b, Payload: cty.DynamicPseudoType}
	if e := b.Attr("payload"); e != nil {
		if ty, defaults, ok := d.lit.typeOf(e); ok {
			w.Payload, w.Default = ty, defaults
		}
	}
	e := b.Attr("on_timeout")
	if e == nil {
		return w
	}
	words := []string{"fail", "continue"}
	switch text, ok := d.lit.literalText(e, "on_timeout"); {
	case !ok, text == "fail":
	case text == "continue":
		w.Continue = true
	default:
		d.Errorf(e.Range, "Invalid value for on_timeout", "on_timeout is \"%s\".%s", strings.Join(words, `" or "`), diag.DidYouMean(text, words))
	}
	return w
}

// repeat sets s.Repeat to the repeat block of the step s. It reports an error if the loop would
// have no end, or if the step has an attribute that does not fit a loop.
func (d *decoder) repeat(s *Step) {
	b := s.Block.One("repeat")
	if b == nil {
		return
	}
	s.Repeat = b
	if b.Attr("until") == nil && b.Attr("max_iterations") == nil && !b.Broken {
		d.Errorf(b.DefRange, "Loop without end", "A repeat block needs until = CONDITION, or max_iterations = NUMBER, or both.")
	}
	if e := s.Attr("idempotency_key"); e != nil {
		d.Errorf(e.Range, "Key stays the same",
			"idempotency_key would give every iteration of step %q the same key, so only the first would have an effect. Remove it: the engine gives each iteration a key of its own.", s.Name)
	}
	if s.Pivot {
		d.Errorf(b.DefRange, "Not allowed on a pivot", "The pivot is one call that succeeds or not, so it cannot have repeat.")
	}
	if u := s.Block.One("compensate"); u.Attr("by_key") != nil {
		d.Errorf(u.Attr("by_key").Range, "Undo of a loop by key",
			"Each iteration of step %q has a key of its own, and the undo is called once for all of them. Remove by_key, and say in input what to undo: self.output or self.collected.", s.Name)
	}
}

// refusedOfChild holds the advice about attributes and blocks that a step with a child run must not
// have. The key is the name of the attribute or block.
var refusedOfChild = map[string]string{
	"timeout":           `A child run may take any time. Write deadline = "..." in this step, or in the workflow of the child.`,
	"heartbeat_timeout": `A child run sends no heartbeats. Write deadline = "..." in this step, or in the workflow of the child.`,
	"retry":             `A child run is not started again after it has failed. Write retry in the steps of the child, or a repeat block in this step.`,
	"idempotency_key":   `The engine gives each child run a key of its own. To have one run at a time for one key write unique { key = ... } in the workflow of the child.`,
	"idempotent":        `The engine never starts a child run twice for one step. Remove it.`,
	"read_only":         `Whether a child run changes anything is known from its steps. Remove it.`,
	"on_rerun":          `A child run continues where it was, on any engine. Remove it.`,
	"priority":          `A step with a child run needs no slot of an agent. Write priority in the workflow of the child, or in its steps.`,
	"output_type":       `The outputs of a child run are the output blocks of its workflow. Remove it.`,
	"fail_when":         `A child run that has succeeded has changed things. Write a postcondition block: if it fails, the child is undone.`,
}

// child reads the attribute `workflow` of the step s. It also reports attributes and blocks that a
// step with a child run must not have.
func (d *decoder) child(s *Step) {
	s.Child = &Child{}
	e := s.Attr("workflow")
	s.Child.Where = e.Range
	t := e.Traversal()
	var names []string
	for _, part := range t[min(1, len(t)):] {
		if attr, ok := part.(hcl.TraverseAttr); ok && syntax.ValidName(attr.Name) {
			names = append(names, attr.Name)
		}
	}
	switch {
	case len(t) == 2 && len(names) == 1 && t.RootName() == "workflow":
		s.Child.Name = names[0]
	case len(t) == 4 && len(names) == 3 && t.RootName() == "library" && names[1] == "workflow":
		s.Child.Library, s.Child.Name = names[0], names[2]
	default:
		e.Bad = true
		d.Errorf(e.Range, "Invalid workflow", "The workflow of a child run is written workflow.NAME, or library.LIBRARY.workflow.NAME, without quotes.")
	}
	for _, name := range sorted.Keys(refusedOfChild) {
		at, written := writtenArgument(name)(s.Block)
		if !written {
			at, written = writtenBlock(name)(s.Block)
		}
		if written {
			d.Errorf(at, "Not allowed with a child run", "A step with workflow = ... cannot have %s. %s", name, refusedOfChild[name])
		}
	}
}
