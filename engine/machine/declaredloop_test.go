package machine_test

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/story"
	"github.com/saga-engine/engine/sdk/schema"
)

// declaredLoop is a loop over a declared action, as a person writes it. Its arguments use self.previous
// and self.collected, and other expressions use self.input.
const declaredLoop = `
agent "shop" {
  action "book" {
    uses      = "do"
    arguments = object({ n = number, before = optional(string) })
    input { value = { tens = args.n * 10, key = self.key } }
  }
}
workflow "w" {
  deadline = "1h"
  step "pages" {
    action = agent.shop.book
    input {
      n      = length(self.collected)
      before = try(self.previous.value, null)
    }
    repeat {
      max_iterations = 3
      collect        = "${self.input.n}:${self.output.value}"
      until          = self.input.n == 9
    }
    compensate {
      action     = agent.shop.undo
      idempotent = true
      input { value = "${self.input.n} after ${self.input.before}: ${join(" ", self.collected)}" }
    }
  }
}`

// linkedLoop links declaredLoop, and writes and reads the definition as the journal does.
func linkedLoop(t *testing.T) *dsl.Workflow {
	t.Helper()
	value := []schema.Field{{Name: "value", Type: schema.Type{Kind: schema.KindAny}}}
	agent := dsl.AgentBinary{Version: "1.0.0", Schema: schema.Schema{Name: "shop", Version: "1.0.0", Actions: map[string]schema.Action{
		"do": {Inputs: value, Outputs: value}, "undo": {Inputs: value, Outputs: value},
	}}}
	m, diags := dsl.Parse(fstest.MapFS{"main.hcl": {Data: []byte(declaredLoop)}}, dsl.ParseOptions{})
	def, more := dsl.Link(m, map[string]dsl.AgentBinary{"shop": agent})
	if def == nil {
		t.Fatal(append(diags, more...).Err())
	}
	again, err := dsl.Decode(def.Encode())
	if err != nil {
		t.Fatal(err)
	}
	return again.Workflow("w")
}

// The evaluation of self.previous in the arguments of a declared action must not evaluate the arguments
// again: that would never end, and the engine would die. The undo has the arguments of the last call.
func TestLinkedLoopOfADeclaredAction(t *testing.T) {
	p := start(t, linkedLoop(t), "do pages")
	for _, c := range []struct{ input, output, then string }{
		{`"tens":0`, `{"value":"a"}`, "do pages"}, {`"tens":10`, `{"value":"b"}`, "do pages"}, {`"tens":20`, `{"value":"c"}`, "undo pages"},
	} {
		if got := string(p.call("pages", 0).Input.JSON()); !strings.Contains(got, c.input) || !strings.Contains(got, p.key("pages")) {
			t.Errorf("the input is %s, want %s and the key %s", got, c.input, p.key("pages"))
		}
		p.okWith("pages", c.output, c.then)
	}
	if got, want := string(p.call("pages", 0).Input.JSON()), `{"value":"2 after b: 0:a 1:b 2:c"}`; got != want {
		t.Errorf("the undo is called with %s, want %s", got, want)
	}
	p.failure("pages max_iterations")
}

// engine explain decides verbs on a copy of the run. It works for a run that is parked because engines
// died, and names the verbs that end this state.
func TestExplainOfALostLoop(t *testing.T) {
	p := start(t, linkedLoop(t), "do pages").okWith("pages", `{"value":"a"}`, "do pages")
	p.event(gone, "alert parked").okWith("pages", `{"value":"b"}`).is("parked")
	x := story.Explain(p.s, p.wf, p.now)
	if text := x.String(); !x.NeedsHuman || !strings.Contains(text, "engine_lost") || !strings.Contains(text, gone.Why) {
		t.Errorf("the explanation is %q", text)
	}
	for _, want := range []string{"engine retry o-42", "engine compensate o-42"} {
		if !slices.Contains(x.Remedies, want) {
			t.Errorf("the remedies are %q, want %q among them", x.Remedies, want)
		}
	}
}
