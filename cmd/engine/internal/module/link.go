package module

import (
	"context"
	"fmt"
	"slices"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/engine/agents"
)

// A Linked is a module that was checked against the schemas of its agents.
type Linked struct {
	*Module
	Def     *dsl.Definition
	Used    []UsedAgent
	Catalog *agents.Catalog
	Locked  bool // true = the module has a lock file, which names the agents to use
	All     diag.Diagnostics
}

// A UsedAgent is an agent of the module and the binary that was chosen for it. If no binary can be
// used, the field Err says why.
type UsedAgent struct {
	dsl.AgentUse
	Binary agents.Binary
	Err    error
}

// Link parses and links the module at PATH. It shows warnings to the user, and returns errors. With
// --json, it shows warnings only if the output of the command is a stream.
func Link(ctx context.Context, a *cli.App, given string, f AgentFlags) (*Linked, error) {
	l, err := Check(ctx, a, given, f)
	if err != nil {
		return nil, err
	}
	if l.Def == nil || l.All.HasErrors() {
		return nil, cli.Problems(l.All)
	}
	if warnings := l.All.Warnings(); !a.JSON {
		a.Show(warnings)
	} else if a.Stream != nil {
		a.Stream.Diagnostics(warnings)
	}
	return l, nil
}

// Check parses and links the module at PATH. The field All of the result holds all errors and
// warnings about the module.
func Check(ctx context.Context, a *cli.App, given string, f AgentFlags) (*Linked, error) {
	m, err := Parse(a, given)
	if err != nil {
		return nil, err
	}
	l := &Linked{Module: m}
	lock, err := m.ReadLock()
	if err != nil {
		return nil, err
	}
	if l.Catalog, err = Catalog(a, m.Dir, lock, f); err != nil {
		return nil, err
	}
	l.Locked = lock != nil
	bins := map[string]dsl.AgentBinary{}
	for _, use := range m.parsed.Agents() {
		u := UsedAgent{AgentUse: use}
		u.Binary, u.Err = l.Catalog.Resolve(ctx, agents.Use{Name: use.Plugin, Constraint: use.Constraint, Source: use.Source}, lock)
		if u.Err == nil {
			bins[use.Name] = u.Binary.Pin()
		}
		l.Used = append(l.Used, u)
	}
	def, diags := dsl.Link(m.parsed, bins)
	l.Def = def
	l.All = append(l.All, m.Diags...)
	l.All = append(l.All, m.Named(l.explain(diags))...)
	l.All = append(l.All, m.Named(l.origins())...)
	l.All = l.All.Sorted()
	return l, ctx.Err()
}

// origins returns two kinds of warnings about agents that came with the files of the module. One
// kind says that such an agent is used in place of an installed agent. The second kind says that
// such an agent is not used, because no lock file names it.
func (l *Linked) origins() diag.Diagnostics {
	var out diag.Diagnostics
	warn := func(u UsedAgent, summary, format string, args ...any) {
		out = append(out, diag.Diagnostic{Severity: diag.SeverityWarning, Summary: summary, Detail: fmt.Sprintf(format, args...), Range: u.Where})
	}
	for _, u := range l.Used {
		if u.Err != nil {
			continue
		}
		if over := l.Catalog.Displaced(u.Binary); len(over) > 0 {
			warn(u, fmt.Sprintf("Agent %q comes from the module", u.Name), "%s is used in place of the installed %s. The lock file names it.", u.Binary.Path, over[0].Path)
		}
		for _, f := range u.Binary.Unlocked {
			warn(u, fmt.Sprintf("Agent %q of the module is not used", u.Name),
				"%s came with the module, and no lock file names it; %s is used. If you trust the file of the module, run `engine init`: it locks it.", f.Path, u.Binary.Path)
		}
	}
	return out
}

// explain returns a copy of diags. For each agent that cannot be used, the copy has an error that
// says why.
func (l *Linked) explain(diags diag.Diagnostics) diag.Diagnostics {
	out := slices.Clone(diags)
	for _, u := range l.Used {
		if u.Err == nil {
			continue
		}
		summary, detail := ExplainAgent(u)
		said := false
		for i, d := range out {
			if d.Severity == diag.SeverityError && d.Range == u.Where && d.Summary == fmt.Sprintf("Agent %q not found", u.Name) {
				out[i].Summary, out[i].Detail, said = summary, detail, true
			}
		}
		if !said {
			out = append(out, diag.Diagnostic{Severity: diag.SeverityError, Summary: summary, Detail: detail, Range: u.Where})
		}
	}
	return out
}
