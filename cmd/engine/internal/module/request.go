package module

import (
	"context"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/dsl"
)

// A Request is a linked module with the chosen workflow and the values of its variables.
type Request struct {
	*Linked
	Workflow *dsl.Workflow
	Vars     dsl.Value
	// Given has the names of the variables that got a value from the environment, a file or a flag.
	Given map[string]bool
}

// NewRequest links the module at PATH, chooses the workflow, and binds the values to its
// variables.
func NewRequest(ctx context.Context, a *cli.App, path, workflow string, values []Value, f AgentFlags) (*Request, error) {
	l, err := Link(ctx, a, path, f)
	if err != nil {
		return nil, err
	}
	wf, err := Choose(l.Def, workflow)
	if err != nil {
		return nil, err
	}
	assigned, err := Assignments(a, l.Module, values)
	if err != nil {
		return nil, err
	}
	vars, diags := wf.Bind(assigned)
	if diags.HasErrors() {
		return nil, cli.Problems(l.Named(diags))
	}
	r := &Request{Linked: l, Workflow: wf, Vars: vars, Given: map[string]bool{}}
	for _, v := range assigned {
		r.Given[v.Name] = true
	}
	return r, nil
}
