package publish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/refusal"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/replies"
	"github.com/saga-engine/engine/engine/store/schedules"
)

// A Publication asks the method Publish to publish workflows of a definition.
type Publication struct {
	Definition *dsl.Definition
	Workflows  []string         // names of the workflows to publish; nil = all of the definition
	Assigned   []dsl.Assignment // values of variables; the store keeps only those of variables outside of workflows
	By         string           // person who publishes; only for display
}

// ErrNoSchedules says that the store does not keep schedules.
var ErrNoSchedules = errors.New("engine: this store keeps no published workflows")

// Publish publishes workflows, and returns the rows of their schedules: see engine.Publish.
func (c Publisher) Publish(ctx context.Context, p Publication) ([]schedules.Row, error) {
	role, ok := schedules.Of(c.Store)
	if !ok {
		return nil, ErrNoSchedules
	}
	names := p.Workflows
	if names == nil {
		names = p.Definition.Names()
	}
	entries := make([]publication, 0, len(names))
	for _, name := range names {
		e, err := c.prepared(p, name, time.Now())
		if err == nil {
			err = checkSelections(ctx, c.Store, p.Definition.Workflow(name))
		}
		if err != nil {
			return nil, fmt.Errorf("publish %q: %w", name, err)
		}
		entries = append(entries, e)
	}
	if err := journal.PinKey(ctx, c.Store, c.Sealer, time.Now()); err != nil {
		return nil, err
	}
	ids, err := journal.NewDefinitions(c.Store, c.Sealer).Put(ctx, p.Definition)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		e.workflow.ID = ids[e.workflow.Name]
		if err := role.Publish(ctx, e.workflow, e.rows); err != nil {
			return nil, err
		}
	}
	all, err := role.Schedules(ctx, time.Time{}, maxListed)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(r schedules.Row) bool { return !slices.Contains(names, r.Workflow) }), nil
}

// maxListed is the largest number of schedules that Publish reads back from the store.
const maxListed = 100_000

// A publication is what the store gets for one published workflow.
type publication struct {
	workflow schedules.Workflow
	rows     []schedules.Row
}

// prepared returns what the store gets for the workflow with the given name. The first tick of a
// new schedule is the first one after the time in the parameter `now`.
func (c Publisher) prepared(p Publication, name string, now time.Time) (publication, error) {
	wf := p.Definition.Workflow(name)
	if wf == nil {
		return publication{}, errors.New("the definition holds no such workflow")
	}
	e := publication{workflow: schedules.Workflow{Name: name, By: p.By}}
	var err error
	if e.workflow.Variables, err = describe(wf); err != nil {
		return publication{}, err
	}
	e.workflow.UniqueVariable = wf.Unique.Variable
	e.workflow.Sinks = []string{}
	for _, name := range wf.ReplySinks.Names() {
		e.workflow.Sinks = append(e.workflow.Sinks, replies.Agent+name)
	}
	outside, diags := wf.BindDeployed(p.Assigned)
	if diags.HasErrors() {
		return publication{}, &refusal.VariableError{Workflow: name, Err: diags.Err()}
	}
	if c.Sealer == nil && (wf.Confidential || len(outside.Sensitive()) > 0) {
		return publication{}, &crypt.KeyError{Hint: crypt.HintMakeKey}
	}
	if e.workflow.Given, err = journal.EncodeGiven(c.Sealer, wf, outside); err != nil {
		return publication{}, err
	}
	for _, on := range wf.OnEvents {
		e.workflow.Events = append(e.workflow.Events, on.Type)
	}
	for _, s := range wf.Schedules {
		next := s.Timetable.Next(now)
		if next.IsZero() {
			next = store.Never
		}
		e.rows = append(e.rows, schedules.Row{Name: s.Name, Timetable: s.Text(), Next: next})
		if s.Select != nil {
			continue // each row of the selection gives its own values to the variables
		}
		vars, diags := wf.Bind(append(slices.Clone(p.Assigned), s.Variables...))
		if diags.HasErrors() {
			return publication{}, &refusal.VariableError{Workflow: name, Schedule: s.Name, Err: diags.Err()}
		}
		if c.Sealer == nil && len(vars.Sensitive()) > 0 {
			return publication{}, &crypt.KeyError{Hint: crypt.HintMakeKey}
		}
	}
	return e, nil
}

// describe returns the description of a workflow's variables for schedules.Workflow.Variables. It
// leaves out the variables that are declared outside of workflows, because the publication gives
// values to them.
func describe(wf *dsl.Workflow) ([]byte, error) {
	type rule struct {
		Check   json.RawMessage `json:"check"`
		Message string          `json:"message"`
	}
	type variable struct {
		Name      string          `json:"name"`
		Type      json.RawMessage `json:"type"`
		Required  bool            `json:"required"`
		Nullable  bool            `json:"nullable"`
		Sensitive bool            `json:"sensitive"`
		Rules     []rule          `json:"rules,omitempty"`
	}
	list := []variable{}
	for _, v := range wf.Variables {
		if v.Deployment {
			continue
		}
		item := variable{Name: v.Name, Type: v.Form, Required: !v.HasDefault, Nullable: v.Nullable, Sensitive: v.Sensitive}
		for _, r := range v.Rules {
			item.Rules = append(item.Rules, rule{Check: r.Check, Message: r.Message})
		}
		list = append(list, item)
	}
	data, err := json.Marshal(list)
	if err != nil {
		return nil, fmt.Errorf("describe variables: %w", err)
	}
	return data, nil
}
