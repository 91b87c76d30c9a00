//go:build unix

package hostile

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// backHead begins the module of the runs that do not succeed.
// Calls fail on purpose, so no circuit opens.
const backHead = `agent "mock" {
  circuit_breaker {
    trip_after = 1000
    min_calls  = 1000
  }
}
agent "exec" {}
agent "teller" {
  circuit_breaker {
    trip_after = 1000
    min_calls  = 1000
  }
}
workflow "kept" {
  deadline = "10m"
  variable "v" {
    type      = string
    sensitive = true
  }
  step "in" {
    action = agent.mock.call
    input { value = var.v }
    compensate {
      action = agent.mock.call
      input { value = [var.v] }
    }
  }
}
workflow "held" {
  deadline = "10m"
  variable "v" {
    type      = string
    sensitive = true
  }
  step "in" {
    action = agent.mock.call
    input { value = var.v }
    compensate {
      action = agent.mock.call
      input { fail = { code = "no", message = "cannot ${var.v}", permanent = true } }
    }
  }
}
`

// undoneBy returns the text of a step that has an effect, and that the given call undoes.
func undoneBy(action, input string) string {
	return `  step "s${N}" {
    depends_on = [${NEEDS}]
    action     = agent.mock.call
    input { value = "x" }
    compensate {
      action     = agent.` + action + `
      idempotent = true
      input {
        ` + input + `
      }
      retry {
        max_attempts     = 2
        initial_interval = "10ms"
      }
    }
  }
`
}

// These are the texts of more steps that are undone.
const (
	asOwn = `  step "s${N}" {
    action = agent.mock.call
    input { value = ${X} }
    compensate {
      action = agent.mock.call
      input { value = { in = self.input.value, out = "got ${self.output.value}" } }
    }
  }
`
	asLookup = `  step "s${N}" {
    action = agent.mock.do_once
    input {
      value = ${X}
      fail  = { message = "lost ${ ${X} }", unknown = true, times = 1 }
      undo  = { fail = { message = "not now ${ ${X} }", times = 1 } }
    }
  }
`
	asDeclared = `  step "s${N}" {
    action = agent.mock.do
    input {
      value = ${X}
      undo  = { fail = { code = "no", message = "cannot ${ ${X} }", permanent = true } }
    }
  }
`
	asEach = `  step "s${N}" {
    for_each = { a = ${X}, b = "open" }
    action   = agent.mock.call
    input { value = each.value }
    compensate {
      action = agent.mock.call
      input { value = { each = each.value, text = "${each.key}: ${each.value}" } }
    }
  }
`
	asEachHeld = `  step "s${N}" {
    for_each = { a = ${X}, b = "open" }
    action   = agent.mock.call
    input { value = each.value }
    compensate {
      action = agent.mock.call
      input { fail = { code = "no", message = "cannot ${each.value}", permanent = true } }
    }
  }
`
	asTold = `  step "s${N}" {
    action            = agent.teller.tell
    heartbeat_timeout = "30s"
    compensation      = "none"
    input { text = ${X} }
    retry {
      max_attempts     = 2
      initial_interval = "10ms"
    }
  }
`
	asBackChild = `  step "s${N}" {
    workflow = workflow.${CHILD}
    input { v = ${X} }
  }
`
	asBackGroup = `  group "g${N}" {
    step "s${N}" {
      action = agent.mock.call
      input { value = ${X} }
      compensate {
        action = agent.mock.call
        input { ${INPUT} }
      }
    }
  }
`
	refused = `fail = { code = "no", message = "cannot ${ ${X} }", permanent = true }`
)

// A journey is a workflow whose runs do not succeed.
type journey struct {
	workflow string
	state    string // the status in which a run of it rests
	exit     int    // exit code of `engine watch` for such a run; 0 = the run does not rest
	sinks    []sink
	last     string // the step that ends the run; ${AFTER} is the list of all other steps, ${ALL} a text with all values
}

func journeys() []journey {
	group := func(input string) string { return strings.ReplaceAll(asBackGroup, "${INPUT}", input) }
	child := func(name string) string { return strings.ReplaceAll(asBackChild, "${CHILD}", name) }
	const stop = `  step "stop" {
    depends_on   = [${AFTER}]
    action       = agent.mock.call
    compensation = "none"
    input { fail = { code = "no", message = "stopped ${ALL}", permanent = true } }
  }
`
	return []journey{
		{workflow: "undone", state: "compensated", exit: 4, last: stop, sinks: []sink{
			{name: "undo", block: undoneBy("mock.call", `value = ${X}`)},
			{name: "undo that is refused once", block: undoneBy("mock.call", `fail = { message = "not now ${ ${X} }", times = 1 }`)},
			{name: "undo with an unknown outcome", block: undoneBy("mock.call", `fail = { message = "lost ${ ${X} }", unknown = true, times = 1 }`)},
			{name: "undo by a program", block: undoneBy("exec.run", `argv = ["sh", "-c", "echo \"$0\"; echo \"$0\" >&2", ${X}]`)},
			{name: "undo with a checkpoint", block: undoneBy("teller.tell", `text = ${X}`)},
			{name: "undo with its own input", block: asOwn},
			{name: "lookup", block: asLookup},
			{name: "each", pure: true, block: asEach},
			{name: "checkpoint", block: asTold},
			{name: "child run", pure: true, block: child("kept")},
			{name: "group", block: group(`value = [${X}]`)},
		}},
		{workflow: "stuck", state: "compensation_failed", exit: 5, last: stop, sinks: []sink{
			{name: "undo that fails", block: undoneBy("mock.call", refused)},
			{name: "undo of a program that fails", block: undoneBy("exec.run", `argv = ["sh", "-c", "echo \"$0\"; echo \"$0\" >&2; exit 3", ${X}]`+"\n"+`errors = { "3" = "no" }`)},
			{name: "declared undo that fails", block: asDeclared},
			{name: "each with an undo that fails", pure: true, block: asEachHeld},
		}},
		// While a child run needs a person, its parent waits for it.
		{workflow: "blocked", state: "compensating", last: stop, sinks: []sink{
			{name: "child run with an undo that fails", pure: true, block: child("held")},
			{name: "group with an undo that fails", block: group(refused)},
		}},
		{workflow: "lost", state: "parked", exit: 5, last: `  step "stop" {
    depends_on = [${AFTER}]
    action     = agent.mock.call_once
    input { fail = { message = "lost ${ALL}", unknown = true } }
    compensate {
      action = agent.mock.call
      input { value = self.output.value }
    }
  }
`, sinks: []sink{{name: "unknown outcome", pure: true, block: asValue}}},
		{workflow: "ended", state: "failed", exit: 4, last: stop, sinks: []sink{{name: "failure", pure: true, block: asValue}}},
	}
}

// A signalled value comes with a signal, in two parts. An expression makes one value of them and
// calls it sensitive. The parts alone are no secret: a signal is open to all who may read the run.
func signalled(parts map[string]map[string]string) source {
	return source{name: "signal", pure: true, late: true, declare: func(*strings.Builder, *places, int) {},
		ref: func(n int) string {
			return fmt.Sprintf(`sensitive("${step.word.output.a.c%d}${step.word.output.b.c%d}")`, n, n)
		},
		give: func(_ *places, n int, v string) {
			parts["a"][fmt.Sprintf("c%d", n)], parts["b"][fmt.Sprintf("c%d", n)] = v[:7], v[7:]
		}}
}

var (
	declaresStep = regexp.MustCompile(`(?m)^  (step|group) "([^"]+)"`)
	needsStep    = regexp.MustCompile(`step\.\w+`)
)

// write writes the workflow of a journey, with values from number n on. It returns these values, and
// how many of them are used by a notification.
func (j *journey) write(b *strings.Builder, p *places, from []source, n int) (all []hidden, notices int) {
	var body, values strings.Builder
	fmt.Fprintf(&body, "workflow %q {\n  deadline = \"10m\"\n", j.workflow)
	body.WriteString("  step \"word\" {\n    wait {\n      signal  = \"word\"\n      payload = object({ a = map(string), b = map(string) })\n    }\n  }\n")
	notice := strings.Replace(asNotice, "succeeded", j.state, 1)
	to := j.sinks
	if j.exit != 0 {
		to = append(slices.Clone(to), sink{name: "notification of " + j.state, early: true, block: notice})
	}
	for _, src := range from {
		for _, to := range to {
			if to.pure && !src.pure || to.early && src.late {
				continue
			}
			h := hidden{source: src.name, sink: to.name, value: canaryValue(escapedShape, n)}
			if src.pure {
				h.expr = src.ref(n)
				fmt.Fprintf(&values, " ${%s}", h.expr)
			}
			all = append(all, h)
			src.declare(&body, p, n)
			src.give(p, n, h.value)
			needs := slices.Compact(needsStep.FindAllString(src.ref(n), -1)) // an undo may use only steps that have certainly ended
			body.WriteString(strings.ReplaceAll(to.text(n, src.ref(n)), "${NEEDS}", strings.Join(needs, ", ")))
			if to.early {
				notices++
			}
			n++
		}
	}
	var steps []string
	for _, m := range declaresStep.FindAllStringSubmatch(body.String(), -1) {
		steps = append(steps, m[1]+"."+m[2])
	}
	body.WriteString(strings.NewReplacer("${AFTER}", strings.Join(steps, ", "), "${ALL}", values.String()).Replace(j.last))
	b.WriteString(body.String() + "}\n")
	return all, notices
}

// undone has runs end in other ways than with success: all is undone, an undo fails for good, an
// outcome stays unknown, and a step fails. In each of them sensitive values are used in what
// happens then.
func undone(t *testing.T, b *bench, open func(*testing.T, *scene)) {
	var module strings.Builder
	module.WriteString(backHead)
	files, env, n, announced := map[string]string{}, []string{}, 0, 0
	var all []hidden
	given, values, payloads := map[string]*places{}, map[string][]hidden{}, map[string]string{}
	for _, j := range journeys() {
		p, parts := newPlaces(), map[string]map[string]string{"a": {}, "b": {}}
		from := slices.DeleteFunc(append(sources(), signalled(parts)), func(s source) bool {
			return !slices.Contains([]string{"variable file", "secret of a file", "secret of the environment", "output", "signal"}, s.name)
		})
		some, notices := j.write(&module, p, from, n)
		given[j.workflow], values[j.workflow] = p, some
		all, n, announced, env = append(all, some...), n+len(some), announced+notices, append(env, p.env...)
		for name, text := range p.files {
			files[name] = text
		}
		payload, err := json.Marshal(parts)
		if err != nil {
			t.Fatal(err)
		}
		payloads[j.workflow] = string(payload)
	}
	files["main.hcl"] = module.String()
	s := newScene(t, b, files, env)
	open(t, s)
	s.run(t, "validate", ".", "--json")
	for _, j := range journeys() {
		w := j.workflow
		s.run(t, append([]string{"apply", ".", "--workflow", w, "--run-id", w, "--detach", "--reply-to", "table:canaries"}, given[w].given(t, s)...)...)
	}
	if t.Failed() {
		return // nothing runs
	}
	engine := s.serve(t)
	for _, j := range journeys() {
		s.run(t, "signal", j.workflow, "word", "--data", payloads[j.workflow])
	}
	for _, j := range journeys() {
		if j.exit != 0 {
			s.exits(t, j.exit, "watch", j.workflow)
		}
	}
	held := 0 // child runs and groups that nobody can undo
	for _, h := range values["blocked"] {
		if strings.Contains(h.sink, "an undo that fails") {
			held++
		}
	}
	engine.await(t, map[string]int{`run ended.*\.notify\.`: announced, `needs a person" run=blocked\.`: held})
	engine.stop(t)
	for _, j := range journeys() {
		s.tell(t, &j, values[j.workflow])
	}
	for _, args := range [][]string{
		{"list", "--limit", "1000"}, {"list", "--alerts"}, {"list", "--alerts", "--json"}, {"list", "--notifications", "--json"},
		{"graph", ".", "--workflow", "undone"}, {"db", "verify"}, {"replies", "canaries", "--json"}, {"replies", "canaries", "--take"},
	} {
		s.run(t, args...)
	}
	lists := [][]byte{s.run(t, "list", "--json", "--limit", "1000")}
	for _, w := range []string{"undone.notify", "stuck.notify", "lost.notify", "ended.notify"} {
		lists = append(lists, s.run(t, "list", "--json", "--workflow", w))
	}
	names := family(t, []string{"undone", "undone.g", "blocked.g", "kept", "held", "undone.notify", "stuck.notify", "lost.notify", "ended.notify"}, lists...)
	for _, name := range names {
		s.run(t, "show", name, "--json")
		s.run(t, "show", name, "--events", "--json")
	}
	s.search(t, all)
}

// tell shows a run with every command that tells of it.
func (s *scene) tell(t *testing.T, j *journey, values []hidden) {
	t.Helper()
	for _, args := range [][]string{
		{"show", j.workflow}, {"show", j.workflow, "--events"}, {"show", j.workflow, "--events", "--json"}, {"show", j.workflow, "--definition"},
		{"explain", j.workflow}, {"explain", j.workflow, "--json"}, {"logs", j.workflow}, {"logs", j.workflow, "--json"},
	} {
		s.run(t, args...)
	}
	var run struct{ Status string }
	if err := json.Unmarshal(s.run(t, "show", j.workflow, "--json"), &run); err != nil || run.Status != j.state {
		t.Errorf("%s is %s, want %s (%v)", j.workflow, run.Status, j.state, err)
	}
	s.evaluate(t, j.workflow, values)
}
