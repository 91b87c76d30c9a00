package apply

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/module"
	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/invoke"
)

// checkAgents starts every agent that a run would call. So the user learns about an unusable agent
// before the run begins. Before checkAgents starts the agents, it calls the function `say` with a
// text that names them.
func checkAgents(ctx context.Context, pool invoke.Checker, wf *dsl.Workflow, vars dsl.Value, say func(string)) error {
	specs, err := engine.AgentSpecs(wf, vars)
	if err != nil || len(specs) == 0 {
		return err
	}
	say(startingText(words.Sorted(specs)))
	return startAgents(ctx, pool, specs)
}

// startAgents starts all agents at the same time, because each start takes a tenth of a second or
// more. It returns an error that lists the agents that cannot be used; nil = all can be used.
func startAgents(ctx context.Context, pool invoke.Checker, specs map[string]invoke.AgentSpec) error {
	names := words.Sorted(specs)
	errs := make([]error, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() { errs[i] = pool.Check(ctx, specs[name]) })
	}
	all.Wait()
	var found diag.Diagnostics
	for i, name := range names {
		switch {
		case errs[i] == nil:
		case ctx.Err() != nil:
			return ctx.Err()
		default:
			summary, detail := module.ExplainAgent(module.UsedAgent{AgentUse: dsl.AgentUse{Name: name, Plugin: specs[name].Plugin}, Err: errs[i]})
			found = append(found, diag.Diagnostic{Severity: diag.SeverityError, Summary: summary, Detail: detail})
		}
	}
	if len(found) > 0 {
		return cli.Problems(found)
	}
	return nil
}

// startingText returns the message that the agents with these names are starting. The message
// names at most eight agents.
func startingText(names []string) string {
	const most = 8
	shown := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		shown += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("Starting %s: %s.", render.Count(len(names), "agent"), shown)
}
