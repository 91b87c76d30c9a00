package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing/fstest"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/sdk"
)

// A plan is a generated workflow: the source text, and for each step the properties that the
// checks (judge.go) need.
type plan struct {
	source string
	steps  []planStep
}

type planStep struct {
	name   string
	action string // "" = the step calls no action
	after  []int
	keys   []string // keys of a for_each step; nil = the step has no for_each
	catch  bool
	none   bool   // the step has compensation = "none": its effect is never undone
	loops  bool   // the step has a repeat block, and one undo for all iterations
	body   string // source text of what a step without a call does; "" = the step makes a call
}

// uncalled holds what steps without a call do: they compute a value, wait for a time, or wait for a
// signal. If no signal comes until the deadline, a wait step with on_timeout = "continue" ends, and
// any other wait step fails.
var uncalled = []string{
	"value = { at = run.started_at }",
	"timer { duration = \"3s\" }",
	"timer { duration = \"2m\" }",
	"deadline = \"40s\"\n    wait {\n      signal     = \"go\"\n      on_timeout = \"continue\"\n    }",
	"deadline = \"90s\"\n    wait { signal = [\"go\", \"stay\"] }",
	"value = { n = try(self.previous.n, 0) + 1 }\n    repeat { until = self.output.n == 3 }",
	"timer { duration = \"2s\" }\n    repeat { max_iterations = 3 }",
}

// actions are the actions of the remote service. They differ in what the engine may do when an
// outcome is unknown, and in how an effect is undone. The key is the idempotency key.
var actions = []string{
	"do",     // idempotent; may be interrupted; its undo needs only the key
	"do",     // the usual case is listed twice, so that it is chosen more often
	"once",   // not idempotent; its undo needs only the key
	"lookup", // not idempotent; its outcome can be looked up; its undo needs only the key
	"pay",    // idempotent; its undo needs the output
	"keep",   // idempotent; it has no undo
}

// newPlan generates a workflow with 1 to 5 steps and random dependencies between them.
func newPlan(rng *rand.Rand) plan {
	var p plan
	var b strings.Builder
	b.WriteString("workflow \"w\" {\n  deadline = \"10m\"\n")
	for i := range 1 + rng.IntN(5) {
		s := planStep{name: fmt.Sprintf("s%d", i), action: actions[rng.IntN(len(actions))]}
		for j := range i {
			if rng.IntN(3) == 0 {
				s.after = append(s.after, j)
			}
		}
		if i > 0 && rng.IntN(4) == 0 {
			s.action, s.body = "", uncalled[rng.IntN(len(uncalled))]
			p.steps = append(p.steps, s)
			s.write(&b, rng, p.steps)
			continue
		}
		if rng.IntN(5) == 0 {
			s.keys = []string{"a", "b", "c"}
		}
		s.catch = rng.IntN(6) == 0
		s.none = s.action == "keep"
		s.loops = s.action == "pay" && rng.IntN(2) == 0
		p.steps = append(p.steps, s)
		s.write(&b, rng, p.steps)
	}
	b.WriteString("}\n")
	p.source = b.String()
	return p
}

// writeAfter writes the argument depends_on, if the step depends on others.
func (s planStep) writeAfter(b *strings.Builder, all []planStep) {
	if len(s.after) == 0 {
		return
	}
	var names []string
	for _, j := range s.after {
		names = append(names, "step."+all[j].name)
	}
	fmt.Fprintf(b, "    depends_on = [%s]\n", strings.Join(names, ", "))
}

func (s planStep) write(b *strings.Builder, rng *rand.Rand, all []planStep) {
	if s.action == "" {
		fmt.Fprintf(b, "  step %q {\n", s.name)
		s.writeAfter(b, all)
		fmt.Fprintf(b, "    %s\n  }\n", s.body)
		return
	}
	fmt.Fprintf(b, "  step %q {\n    action  = agent.far.%s\n    timeout = \"%ds\"\n", s.name, s.action, 2+rng.IntN(8))
	if s.keys != nil {
		fmt.Fprintf(b, "    for_each = toset([\"%s\"])\n", strings.Join(s.keys, `", "`))
		if rng.IntN(2) == 0 {
			b.WriteString("    max_parallel = 2\n")
		}
	}
	s.writeAfter(b, all)
	if s.none {
		b.WriteString("    compensation = \"none\"\n")
	}
	if s.catch {
		b.WriteString("    catch { errors = [\"*\"] }\n")
	}
	switch {
	case s.loops:
		fmt.Fprintf(b, "    repeat {\n      max_iterations = %d\n      interval       = \"%ds\"\n      collect        = self.output.id\n    }\n", 1+rng.IntN(4), 1+rng.IntN(4))
		b.WriteString("    compensate {\n      action = agent.far.refund_all\n      input { ids = self.collected }\n    }\n")
	case s.action == "pay":
		b.WriteString("    compensate {\n      action = agent.far.refund\n      input { id = self.output.id }\n    }\n")
	}
	if rng.IntN(3) == 0 && s.action != "once" && s.action != "lookup" {
		fmt.Fprintf(b, "    retry {\n      max_attempts = %d\n    }\n", 1+rng.IntN(4))
	}
	name := fmt.Sprintf("%q", s.name)
	if s.keys != nil {
		name = fmt.Sprintf("\"%s-${each.key}\"", s.name)
	}
	fmt.Fprintf(b, "    input {\n      name = %s\n    }\n  }\n", name)
}

// badAgent is the name of the agent that the poisonous run calls. The poisonous run ends or
// hangs every engine that decides it.
const badAgent = "bad"

// poisonName is the name of the poisonous run.
const poisonName = "poison"

// poisonSource is the source text of the poisonous run's workflow. Simulate appends it to the
// source of the generated workflow.
const poisonSource = `
agent "bad" {
  plugin = "far"
}
workflow "poison" {
  deadline = "30m"
  step "a" {
    action = agent.bad.do
    input { name = "poison-a" }
  }
  step "b" {
    action     = agent.bad.do
    depends_on = [step.a]
    input { name = "poison-b" }
  }
}
`

// define links a module with the agents of the remote service.
func define(files map[string]string, agent *sdk.Agent) (*dsl.Definition, error) {
	fs := fstest.MapFS{}
	for path, text := range files {
		fs[path] = &fstest.MapFile{Data: []byte(text)}
	}
	m, diags := dsl.Parse(fs, dsl.ParseOptions{})
	if diags.HasErrors() {
		return nil, diags.Err()
	}
	schema, err := agent.Schema()
	if err != nil {
		return nil, err
	}
	def, diags := dsl.Link(m, map[string]dsl.AgentBinary{
		"far": {Schema: schema, Version: "1.0.0", Checksum: "00"}, badAgent: {Schema: schema, Version: "1.0.0", Checksum: "00"},
		"kit.far": {Schema: schema, Version: "1.0.0", Checksum: "00"},
	})
	return def, diags.Err()
}
