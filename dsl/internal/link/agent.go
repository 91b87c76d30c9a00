package link

import (
	"fmt"

	"github.com/hashicorp/go-version"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/argument"
	"github.com/saga-engine/engine/dsl/internal/decl"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/noun"
	"github.com/saga-engine/engine/dsl/internal/value"
)

func (l *linker) agent(d *decl.Agent, bins map[string]noun.AgentBinary) {
	la := &linkedAgent{decl: d, actions: map[string]*linkedAction{}, declared: map[string]*linkedAction{}}
	l.agents[d.Name] = la
	bin, ok := bins[d.Name]
	if !ok {
		la.missing = true
		l.Errorf(d.PluginAt, fmt.Sprintf("Agent %q not found", d.Name),
			"No binary engine-agent-%s is known for it. Run engine init to look for it and lock it.", d.Plugin)
		return
	}
	la.bin = bin
	la.noun = &noun.Agent{
		Name: d.Name, Plugin: d.Plugin, Version: bin.Version, Checksum: bin.Checksum,
		Instances: d.Instances, MaxConcurrency: d.Concurrency, RateLimit: d.Rate, Env: d.Env, Breaker: d.Breaker,
	}
	l.constraint(la)
	specs, err := argument.Specs(bin.Schema.Config)
	if err != nil {
		l.Errorf(d.Where, "Invalid agent schema", "The schema of engine-agent-%s is broken: config: %s.", d.Plugin, err)
		return
	}
	ctx := l.contextOf(d)
	at := d.Where
	if b := d.Block.One("config"); b != nil {
		at = b.DefRange
	}
	args := argumentLinker{ctx}.arguments(specs, d.Config, at, "agent "+d.Name, false)
	if len(d.Config) > 0 || len(specs) > 0 {
		la.noun.Config = l.ownScope(d, args.Eval)
	}
}

func (l *linker) constraint(la *linkedAgent) {
	if la.decl.Constraint == "" || la.bin.Version == "" {
		return
	}
	c, err := version.NewConstraint(la.decl.Constraint)
	if err != nil {
		return // package decl has reported the invalid constraint
	}
	v, err := version.NewVersion(la.bin.Version)
	if err != nil || !c.Check(v.Core()) {
		l.Errorf(la.decl.Where, "Unsupported agent version", "Agent %q needs engine-agent-%s %s; the one found is %s. Run engine init --upgrade to choose again.",
			la.decl.Name, la.decl.Plugin, la.decl.Constraint, la.bin.Version)
	}
}

// contextOf returns a workflowLinker that links the expressions in an agent block. These
// expressions refer to the variables and locals of the module that declares the agent.
func (l *linker) contextOf(d *decl.Agent) *workflowLinker {
	if d.Library == nil {
		return l.fileContext()
	}
	return l.library(d.Library).ctx
}

// fileContext returns a workflowLinker that links the expressions outside of workflows.
func (l *linker) fileContext() *workflowLinker {
	return &workflowLinker{
		linker: l, ev: l.fileLevel, cur: -1,
		world: &eval.CheckWorld{Evaluator: l.fileLevel, Vars: unknownVars(l.m.Variables), Locals: map[*eval.Local]eval.KeptLocal{}, Effort: l.Allowance()},
	}
}

// unknownVars returns an object with all variables. Each attribute is an unknown value that has
// the type of the variable.
func unknownVars(decls map[string]*decl.Variable) cty.Value {
	attrs := map[string]cty.Value{}
	for name, v := range decls {
		x := value.UnknownOf(v.Type)
		if v.Type.IsObjectType() && v.Nullable {
			x = cty.UnknownVal(value.PlainType(v.Type)) // the object itself may be null, not only its attributes
		}
		if v.Sensitive {
			x = x.Mark(value.SensitiveMark{})
		}
		attrs[name] = x
	}
	return cty.ObjectVal(attrs)
}
