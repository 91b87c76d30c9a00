package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"sync"

	"github.com/saga-engine/engine/sdk/internal/names"
	"github.com/saga-engine/engine/sdk/internal/typed"
	"github.com/saga-engine/engine/sdk/schema"
)

// An Agent is a set of actions with a name. Make it with New, add actions with Action, and
// then pass it to plugin.Serve. Adding actions is not safe for concurrent use. Once all
// actions have been added, Schema, Configure and Invoke are safe for concurrent use.
type Agent struct {
	name    string
	version string
	doc     string
	actions map[string]*action
	config  *config
	errs    []error // mistakes in the agent's code; the method Schema returns them

	mu         sync.Mutex // protects the fields below
	configured bool
	configErr  error
	configRaw  json.RawMessage
}

// config is the typed configuration of an agent.
type config struct {
	plan  *typed.Plan
	apply func(ctx context.Context, v reflect.Value) error
}

// New returns an agent without actions. The parameter `name` is NAME in the file name
// engine-agent-NAME. The parameter `version` is a semantic version such as "1.2.0". The method
// Schema reports mistakes in the name, in the version, and in all actions and options that are
// added later.
func New(name, version string) *Agent {
	a := &Agent{name: name, version: version, actions: map[string]*action{}}
	if !agentName.MatchString(name) {
		a.errs = append(a.errs, fmt.Errorf("agent name %q: want lower-case letters, digits, - and _, starting with a letter", name))
	}
	if !semver.MatchString(version) {
		a.errs = append(a.errs, fmt.Errorf("agent version %q: want a semantic version such as 1.2.0", version))
	}
	return a
}

var (
	agentName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`)
	semver    = regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)
)

// Name returns the agent's name.
func (a *Agent) Name() string { return a.name }

// Version returns the agent's version.
func (a *Agent) Version() string { return a.version }

// Doc sets the sentence that describes the agent in its schema. It returns the same agent, a.
func (a *Agent) Doc(text string) *Agent {
	a.doc = text
	return a
}

// None is the type In of an action without inputs, and the type Out of an action without
// outputs.
type None struct{}

// Action adds an action to the agent a. The function `fn` does the work; several calls of fn may
// run at the same time. In and Out are structs, and the tags of their fields define the schema.
// The context of fn ends when the engine cancels the call, or at Call.CompleteBy. The package
// comment says what fn may return.
func Action[In, Out any](a *Agent, name string, fn func(context.Context, *Call, In) (Out, error), opts ...Option) {
	act := &action{run: func(ctx context.Context, c *Call, in reflect.Value) (reflect.Value, error) {
		out, err := fn(ctx, c, in.Interface().(In))
		return reflect.ValueOf(&out).Elem(), err
	}}
	act.in = act.plan(reflect.TypeFor[In](), typed.Input)
	act.out = act.plan(reflect.TypeFor[Out](), typed.Output)
	if fn == nil {
		act.errs = append(act.errs, errors.New("the function is nil"))
	}
	for _, o := range opts {
		o(act)
	}
	a.add(name, act)
}

func (a *Agent) add(name string, act *action) {
	if !names.Valid(name) {
		act.errs = append(act.errs, errors.New("the name must be snake_case: lower-case letters, digits and _"))
	}
	if _, ok := a.actions[name]; ok {
		act.errs = append(act.errs, errors.New("added twice"))
	}
	for _, err := range act.errs {
		a.errs = append(a.errs, fmt.Errorf("action %q: %w", name, err))
	}
	if act.in != nil {
		act.schema.Inputs = act.in.Schemas()
	}
	if act.out != nil {
		act.schema.Outputs = act.out.Schemas()
	}
	a.actions[name] = act
}

// Schema describes what the agent can do. The error contains all mistakes in the agent,
// such as wrong tags, an action that was added twice, or a compensated_by that names no
// action. plugin.Serve does not serve an agent with mistakes.
func (a *Agent) Schema() (schema.Schema, error) {
	errs := append([]error(nil), a.errs...)
	s := schema.Schema{Name: a.name, Version: a.version, Doc: a.doc, Actions: make(map[string]schema.Action, len(a.actions))}
	if a.config != nil {
		s.Config = a.config.plan.Schemas()
	}
	for _, name := range slices.Sorted(maps.Keys(a.actions)) {
		act := a.actions[name]
		s.Actions[name] = act.schema
		for _, err := range a.soundness(act) {
			errs = append(errs, fmt.Errorf("action %q: %w", name, err))
		}
	}
	if len(a.actions) == 0 {
		errs = append(errs, errors.New("no actions"))
	}
	if len(errs) > 0 {
		return schema.Schema{}, fmt.Errorf("sdk: agent %s: %w", a.name, errors.Join(errs...))
	}
	return s, nil
}

// soundness returns an error for each contradiction between two properties of an action, or between
// the action and another action of the agent. It returns nil if there are none. Call it only after
// the author has added all actions.
func (a *Agent) soundness(act *action) []error {
	var errs []error
	s := act.schema
	if s.CompensatedBy != "" {
		undo, ok := a.actions[s.CompensatedBy]
		switch {
		case !ok:
			errs = append(errs, fmt.Errorf("compensated by %q, which is not an action of this agent", s.CompensatedBy))
		case undo.schema.ReadOnly:
			errs = append(errs, fmt.Errorf("compensated by %q, which is read-only and so undoes nothing", s.CompensatedBy))
		}
		if s.ReadOnly {
			errs = append(errs, errors.New("read-only, so there is nothing to compensate"))
		}
	}
	if s.ByKey {
		for _, f := range s.Inputs {
			if !f.Optional {
				errs = append(errs, fmt.Errorf("called by key, so input %q must be optional", f.Name))
			}
		}
	}
	return errs
}
