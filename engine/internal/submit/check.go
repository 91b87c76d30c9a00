package submit

import (
	"fmt"
	"slices"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/machine/line"
	"github.com/saga-engine/engine/engine/store/admission"
	"github.com/saga-engine/engine/engine/store/naming"
)

// lineOf evaluates the priority of a run, and the limit and key of its concurrency block. The
// parameter `given` is the priority that the submission has; nil = the workflow decides.
func lineOf(wf *dsl.Workflow, vars dsl.Value, given *int) (line.Line, error) {
	var l line.Line
	scope := &dsl.Scope{Run: dsl.RunInfo{Workflow: wf.Name}, Vars: vars}
	switch {
	case given != nil && (*given < 0 || *given > 100):
		return l, fmt.Errorf("priority is from 0 to 100, not %d", *given)
	case given != nil:
		l.Lift = int32(*given - line.DefaultPriority)
	case wf.Priority != nil:
		p, err := wf.Priority(scope)
		if err != nil {
			return l, fmt.Errorf("evaluate priority: %w", err)
		}
		l.Lift = int32(p - line.DefaultPriority)
	}
	c := wf.Concurrency
	if c == nil {
		return l, nil
	}
	limit, err := c.Limit(scope)
	if err != nil {
		return l, fmt.Errorf("evaluate concurrency.limit: %w", err)
	}
	l.Limit = int32(limit)
	if c.Key != nil {
		if l.Key, err = c.Key(scope); err != nil {
			return l, fmt.Errorf("evaluate concurrency.key: %w", err)
		}
		if len(l.Key) > naming.MaxKeyBytes || l.Key != naming.CleanText(l.Key) {
			return l, fmt.Errorf("concurrency.key must be a text of at most %d bytes", naming.MaxKeyBytes)
		}
	}
	return l, nil
}

// checksOf evaluates the admit blocks of a workflow. The parameter `scope` is the scope of the new
// run.
func checksOf(wf *dsl.Workflow, scope *dsl.Scope) ([]admission.Check, error) {
	var out []admission.Check
	for _, a := range wf.Admits {
		c := admission.Check{Name: a.Name, SQL: a.SQL, Bump: a.Bump, Lock: admission.Lock(slices.Index(admission.LockNames, a.Lock))}
		var err error
		if c.Message, err = a.Message(scope); err != nil {
			return nil, fmt.Errorf("evaluate error_message of admit %q: %w", a.Name, err)
		}
		if a.Args != nil {
			args, err := a.Args(scope)
			if err != nil {
				return nil, fmt.Errorf("evaluate args of admit %q: %w", a.Name, err)
			}
			if most := max(a.Params, a.BumpParams); len(args) != most {
				return nil, fmt.Errorf("admit %q: args has %d values, and the statement uses %d", a.Name, len(args), most)
			}
			c.Args, c.BumpArgs = args[:a.Params], args[:a.BumpParams]
		}
		out = append(out, c)
	}
	return out, nil
}

// confidential reports whether a run may hold data that must be encrypted. A sensitive variable
// is enough. A secret in an agent's configuration is enough, too: the agent may repeat the secret
// in a reply, when it is too late to ask for an encryption key.
func confidential(wf *dsl.Workflow, vars dsl.Value, specs map[string]invoke.AgentSpec) bool {
	for _, step := range wf.Steps {
		if step.Child != nil && confidential(step.Child.Workflow, dsl.Value{}, nil) {
			return true
		}
	}
	for _, block := range wf.Notify {
		if confidential(block.Flow, dsl.Value{}, nil) {
			return true
		}
	}
	if wf.Confidential || len(vars.Sensitive()) > 0 {
		return true
	}
	for _, spec := range specs {
		if len(spec.Config.Secrets()) > 0 || len(spec.Config.Sensitive()) > 0 {
			return true
		}
	}
	return false
}
