//go:build unix

package hostile

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A source is a way by which something sensitive comes into a run.
type source struct {
	name    string
	pure    bool                                       // it may stand in any expression, not only in an input or a text
	late    bool                                       // it is known only after a step
	declare func(b *strings.Builder, p *places, n int) // what the workflow says of it
	give    func(p *places, n int, value string)       // how its value is given
	ref     func(n int) string                         // how it is named
}

// places are where values are given.
type places struct {
	env   []string
	args  []string
	file  map[string]any // a file of variables
	files map[string]string
}

func sources() []source {
	variable := func(kind string) func(*strings.Builder, *places, int) {
		return func(b *strings.Builder, _ *places, n int) {
			fmt.Fprintf(b, "  variable \"c%d\" {\n    type      = %s\n    sensitive = true\n  }\n", n, kind)
		}
	}
	nothing := func(*strings.Builder, *places, int) {}
	asVar := func(n int) string { return fmt.Sprintf("var.c%d", n) }
	return []source{
		{name: "flag", pure: true, declare: variable("string"), ref: asVar,
			give: func(p *places, n int, v string) { p.args = append(p.args, "--var", fmt.Sprintf("c%d=%s", n, v)) }},
		{name: "variable file", pure: true, declare: variable("string"), ref: asVar,
			give: func(p *places, n int, v string) { p.file[fmt.Sprintf("c%d", n)] = v }},
		{name: "environment", pure: true, declare: variable("string"), ref: asVar,
			give: func(p *places, n int, v string) { p.env = append(p.env, fmt.Sprintf("ENGINE_VAR_c%d=%s", n, v)) }},
		{name: "member", pure: true, declare: variable("object({ a = list(string) })"),
			ref:  func(n int) string { return fmt.Sprintf("var.c%d.a[0]", n) },
			give: func(p *places, n int, v string) { p.file[fmt.Sprintf("c%d", n)] = map[string]any{"a": []string{v}} }},
		{name: "secret of the environment", declare: nothing,
			ref:  func(n int) string { return fmt.Sprintf("secret(\"env:CANARY_%d\")", n) },
			give: func(p *places, n int, v string) { p.env = append(p.env, fmt.Sprintf("CANARY_%d=%s", n, v)) }},
		{name: "secret of a file", declare: nothing,
			ref:  func(n int) string { return fmt.Sprintf("secret(\"file:secret-%d\")", n) },
			give: func(p *places, n int, v string) { p.files[fmt.Sprintf("secret-%d", n)] = v }},
		{name: "output", pure: true, late: true, declare: func(b *strings.Builder, p *places, n int) {
			variable("string")(b, p, n)
			fmt.Fprintf(b, "  step \"first%d\" {\n    action = agent.mock.echo\n    input { value = var.c%d }\n  }\n", n, n)
		}, ref: func(n int) string { return fmt.Sprintf("step.first%d.output.value", n) },
			give: func(p *places, n int, v string) { p.file[fmt.Sprintf("c%d", n)] = v }},
	}
}

// A sink is something that a workflow does with what is sensitive.
type sink struct {
	name   string
	pure   bool   // only for sources that may stand in any expression
	early  bool   // only for sources that are known before a step
	action string // of its step; "" = the field block has the whole text
	input  string // %s is the sensitive expression
	more   string // of the step
	block  string // text in the workflow, with ${N} for its number and ${X} for the sensitive expression
}

// text returns the text of a sink in the workflow.
func (s *sink) text(n int, expr string) string {
	if s.action == "" {
		return strings.NewReplacer("${N}", strconv.Itoa(n), "${X}", expr).Replace(s.block)
	}
	return fmt.Sprintf("  step \"s%d\" {\n    action       = agent.%s\n    compensation = \"none\"\n%s    input {\n%s\n    }\n  }\n", n, s.action, s.more, fmt.Sprintf(s.input, expr))
}

// head begins the module: the agents, one of them with an action that the module declares, and a workflow
// whose runs are child runs.
const head = `agent "mock" {}
agent "exec" {}
agent "shop" {
  plugin = "mock"
  action "put" {
    uses      = "call"
    arguments = object({ what = string })
    input { value = { deep = [args.what] } }
  }
}
workflow "child" {
  deadline = "10m"
  variable "v" {
    type      = string
    sensitive = true
  }
  step "in" {
    action       = agent.mock.call
    compensation = "none"
    input { value = var.v }
  }
  output "v" {
    sensitive = true
    value     = step.in.output.value
  }
}
workflow "w" {
  deadline = "10m"
`

// These are the names of two sinks: a notify block, and a loop that collects values.
const (
	notification = "notification"
	collected    = "collected"
)

// These are the texts of sinks that are no single step with an action.
const (
	asOutput = `  output "o${N}" {
    sensitive = true
    value     = ${X}
  }
`
	asValue = `  step "s${N}" { value = { a = [${X}] } }
`
	asChild = `  step "s${N}" {
    workflow     = workflow.child
    compensation = "none"
    input { v = ${X} }
  }
`
	asGroup = `  group "g${N}" {
    depends_on = [step.s0] # a restart from s0 runs it again: no run takes over the child runs of another
    step "s${N}" {
      action       = agent.mock.call
      compensation = "none"
      input { value = ${X} }
    }
    output "v" {
      sensitive = true
      value     = step.s${N}.output.value
    }
  }
`
	asCondition = `  step "s${N}" {
    action       = agent.mock.call
    compensation = "none"
    input { value = "x" }
    postcondition {
      condition     = self.output.value == ${X}
      error_message = "x is not ${ ${X} }"
    }
    catch {
      errors = ["*"]
      output = { value = "caught ${self.error.message}" }
    }
  }
`
	asNotice = `  notify {
    on     = ["succeeded"]
    action = agent.mock.log
    input { text = "about ${ ${X} }" }
  }
`
)

func sinks() []sink {
	const caught = "    catch { errors = [\"*\"] }\n"
	return []sink{
		{name: "input", action: "mock.call", input: `value = %s`},
		{name: "text", action: "mock.call", input: `value = "id ${%s} end"`},
		{name: "nested", action: "mock.call", input: `value = { a = [{ b = %s }] }`},
		{name: "failure", action: "mock.call", input: `fail = { code = "no", message = "refused ${%s}", permanent = true }`, more: caught},
		{name: "retry", action: "mock.call", input: `fail = { code = "unavailable", message = "not now ${%s}", times = 1 }`},
		{name: "unknown", action: "mock.call", input: `fail = { message = "lost ${%s}", unknown = true, times = 1 }`},
		{name: "log", action: "mock.log", input: `text = "about ${%s}"`},
		{name: "printed", action: "mock.junk", input: `text = "about ${%s}"`},
		{name: "upper case", pure: true, action: "mock.log", input: `text = upper(%s)`},
		{name: "base64", pure: true, action: "mock.log", input: `text = base64encode(%s)`},
		{name: "JSON", pure: true, action: "mock.log", input: `text = jsonencode({ k = %s })`},
		{name: "argument", action: "exec.run", input: "argv = [\"sh\", \"-c\", \"echo \\\"$0\\\"; echo \\\"$0\\\" >&2; exit 3\", %s]\nerrors = { \"3\" = \"no\" }", more: caught},
		{name: "standard input", action: "exec.run", input: "argv = [\"cat\"]\nstdin = %s"},
		{name: "its environment", action: "exec.run", input: "argv = [\"/usr/bin/env\"]\nenv = { X = %s }"},
		{name: "cut output", action: "exec.run", input: "argv = [\"sh\", \"-c\", \"printf %%01010d 0; echo \\\"$0\\\"\", %s]\nmax_output = 1020"},
		{name: "output of the run", pure: true, block: asOutput},
		{name: collected, action: "mock.call", input: `value = %s`, more: "    repeat {\n      max_iterations = 2\n      collect        = self.output.value\n    }\n"},
		{name: "refusal", action: "mock.call", input: `value = %s`, more: "    fail_when {\n      condition     = self.output.value != null\n      error_message = \"refused ${jsonencode(self.output.value)}\"\n      permanent     = true\n    }\n" + caught},
		{name: "caught failure", action: "mock.call", input: `fail = { code = "no", message = "refused ${%s}", permanent = true }`,
			more: "    catch {\n      errors = [\"*\"]\n      output = { value = \"caught ${self.error.message}\" }\n    }\n"},
		{name: "declared action", pure: true, action: "shop.put", input: `what = %s`},
		{name: "value", pure: true, block: asValue},
		{name: "child run", pure: true, block: asChild},
		{name: "group", block: asGroup},
		{name: "condition", pure: true, block: asCondition},
		{name: notification, early: true, block: asNotice},
	}
}

// A hidden canary is one value in one place.
type hidden struct {
	source, sink string
	value        string
	expr         string // by which the console can name it in a run; "" = it cannot
}

// forms are the texts in which a value could be read.
func (h *hidden) forms() []string {
	quoted, _ := json.Marshal(h.value) // a string always has a JSON form
	return []string{
		h.value, strings.ToUpper(h.value), string(quoted[1 : len(quoted)-1]), strings.Trim(strconv.Quote(h.value), `"`), url.QueryEscape(h.value),
		base64.StdEncoding.EncodeToString([]byte(h.value)), hex.EncodeToString([]byte(h.value)), h.value[:12], hex.EncodeToString([]byte(h.value[:12])),
	}
}

// nest writes the module. It also returns the values that are hidden in the module: each source is
// combined with each sink, in each of the given shapes.
func (p *places) nest(shapes []string) (module string, all []hidden) {
	var b strings.Builder
	b.WriteString(head)
	n := 0
	for _, src := range sources() {
		for _, to := range sinks() {
			for _, shape := range shapes {
				if to.pure && !src.pure || to.early && src.late {
					continue
				}
				h := hidden{source: src.name, sink: to.name, value: canaryValue(shape, n)}
				switch {
				case to.name == collected:
					h.expr = fmt.Sprintf("step.s%d.collected", n)
				case to.action != "":
					h.expr = fmt.Sprintf("step.s%d.output", n)
				case src.pure:
					h.expr = src.ref(n)
				}
				all = append(all, h)
				src.declare(&b, p, n)
				src.give(p, n, h.value)
				b.WriteString(to.text(n, src.ref(n)))
				n++
			}
		}
	}
	b.WriteString("}\n")
	return b.String(), all
}

// These are the shapes of values: one that is written as it is, and one that is escaped in JSON, in
// URLs and in HCL.
const (
	plainShape   = "%s-canary%s"
	escapedShape = "%s \"ä\\ %s"
)

// canaryValue returns value number n. No value contains the first 12 bytes of another one.
func canaryValue(shape string, n int) string {
	return fmt.Sprintf(shape, fmt.Sprintf("hush%08x", 0x9e3779b1*uint32(n+1)), "tail")
}

// T22: of 300 sensitive values, each with a way in and a use of its own, none can be read
// in what the engine prints, in its log, or in its state (I13). On PostgreSQL the state is all tables,
// and all that the engines send to the server. `make test` tries half of the values on SQLite and the
// other half on PostgreSQL. `make hostile` tries all values on both.
func TestCanaries(t *testing.T) {
	b := newBench(t)
	both := []string{plainShape, escapedShape}
	for _, kind := range []struct {
		state  string
		open   func(*testing.T, *scene)
		shapes []string
	}{
		{"SQLite", func(*testing.T, *scene) {}, both[:1]},
		{"PostgreSQL", onPostgres, both[1:]},
	} {
		if os.Getenv(envAll) == "all" {
			kind.shapes = both
		}
		t.Run(kind.state+"/forward", func(t *testing.T) {
			t.Parallel()
			p := newPlaces()
			module, all := p.nest(kind.shapes)
			if len(all) < 140*len(kind.shapes) {
				t.Fatalf("%d canaries", len(all))
			}
			p.files["main.hcl"] = module
			p.files["next/main.hcl"] = strings.ReplaceAll(module, `"10m"`, `"11m"`) // for engine migrate
			s := newScene(t, b, p.files, p.env)
			kind.open(t, s)
			forward(t, s, p, all)
			s.search(t, all)
		})
		t.Run(kind.state+"/undone", func(t *testing.T) {
			t.Parallel()
			undone(t, b, kind.open)
		})
	}
}

// forward has runs succeed in several ways, and shows them with every command.
func forward(t *testing.T, s *scene, p *places, all []hidden) {
	given := append([]string{"--workflow", "w"}, p.given(t, s)...)
	s.run(t, append([]string{"plan", "."}, given...)...)
	s.run(t, append([]string{"plan", ".", "--json"}, given...)...)
	s.run(t, append([]string{"apply", ".", "--run-id", "canaries", "--reply-to", "table:canaries"}, given...)...)
	s.run(t, append([]string{"apply", ".", "--run-id", "served", "--detach", "--reply-to", "table:canaries"}, given...)...)
	for _, args := range [][]string{
		{"migrate", "served", "--to", "next", "--dry-run"}, {"migrate", "served", "--to", "next", "--json"}, {"migrate", "--all", "--workflow", "w", "--to", "next"},
		{"migrate", "served", "--to", "next", "--yes"},
		{"restart", "canaries", "--from", "s0", "--again", "--dry-run"}, {"restart", "canaries", "--from", "s0", "--again", "--json"},
		{"restart", "canaries", "--from", "s0", "--again", "--run-id", "again", "--yes"},
	} {
		s.run(t, args...)
	}
	engine := s.serve(t)
	engine.await(t, map[string]int{`run ended" run=served .*succeeded`: 1, `run ended" run=again .*succeeded`: 1, `run ended.*\.notify\.`: 2 * notices(all)})
	engine.stop(t)
	for _, args := range [][]string{
		{"show", "served"}, {"logs", "served"}, {"explain", "served", "--json"}, {"show", "again"}, {"show", "again", "--events"}, {"explain", "again"},
		{"show", "canaries"}, {"show", "canaries", "--json"}, {"show", "canaries", "--events"}, {"show", "canaries", "--events", "--json"},
		{"show", "canaries", "--definition"}, {"logs", "canaries"}, {"logs", "canaries", "--json"}, {"watch", "canaries"}, {"explain", "canaries"},
		{"list", "--limit", "1000"}, {"list", "--json"}, {"list", "--alerts"}, {"list", "--alerts", "--json"}, {"list", "--notifications", "--json"},
		{"graph", ".", "--workflow", "w"}, {"validate", ".", "--json"}, {"doctor"}, {"db", "verify"},
		{"replies", "canaries"}, {"replies", "canaries", "--json"}, {"replies", "canaries", "--take"},
	} {
		s.run(t, args...)
	}
	names := family(t, []string{"w", "w.g", "w.notify", "child"},
		s.run(t, "list", "--workflow", "child", "--json"), s.run(t, "list", "--workflow", "w.notify", "--json"), s.run(t, "list", "--json", "--limit", "1000"))
	for _, name := range names {
		s.run(t, "show", name)
		s.run(t, "show", name, "--events", "--json")
		s.run(t, "explain", name)
	}
	s.evaluate(t, "canaries", all)
	s.env = append(slices.Clone(s.env), "ENGINE_ENCRYPTION_KEY="+encryptionKey(8)+","+encryptionKey(7))
	s.run(t, "key", "rotate", "--preview")
	s.run(t, "key", "rotate")
	s.env = append(slices.Clone(s.env), "ENGINE_ENCRYPTION_KEY="+encryptionKey(8))
	s.run(t, "key", "list")
	s.run(t, "show", "canaries", "--json")
	s.run(t, "db", "verify")
	if n := s.masked(); n < 6 { // of both runs, and of a run of each kind
		t.Errorf("%d commands show something masked: the test looks at the wrong things", n)
	}
}

// family returns the name of one run of each workflow in the lists of runs. It fails the test if a
// workflow of the list `want` has none.
func family(t *testing.T, want []string, lists ...[]byte) (names []string) {
	t.Helper()
	seen := map[string]bool{}
	for _, list := range lists {
		var all struct {
			Runs []struct{ Run, Workflow string }
		}
		if err := json.Unmarshal(list, &all); err != nil {
			t.Fatalf("%v: %s", err, list)
		}
		for _, r := range all.Runs {
			kind := strings.TrimRight(r.Workflow, "0123456789") // one group for all
			if !seen[kind] {
				seen[kind] = true
				names = append(names, r.Run)
			}
		}
	}
	for _, kind := range want {
		if !seen[kind] {
			t.Errorf("no run of %s is listed: %v", kind, seen)
		}
	}
	return names
}

// notices returns how many notifications announce the success of a run.
func notices(all []hidden) (n int) {
	for _, h := range all {
		if h.sink == notification {
			n++
		}
	}
	return n
}
