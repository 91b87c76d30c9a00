//go:build unix

package hostile

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
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
	dir   string
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
		base64.StdEncoding.EncodeToString([]byte(h.value)), hex.EncodeToString([]byte(h.value)), h.value[:12],
	}
}

// nest writes the module and returns what is hidden in it: every source with every sink,
// in two shapes.
func (p *places) nest() (module string, all []hidden) {
	var b strings.Builder
	b.WriteString(head)
	n := 0
	for _, src := range sources() {
		for _, to := range sinks() {
			for _, shape := range []string{"%s-canary%s", "%s \"ä\\ %s"} {
				if to.pure && !src.pure || to.early && src.late {
					continue
				}
				h := hidden{source: src.name, sink: to.name, value: fmt.Sprintf(shape, fmt.Sprintf("hush%08x", 0x9e3779b1*uint32(n+1)), "tail")}
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

// T22: of 300 sensitive values, each with a way in and a use of its own, none can be read
// in what the engine prints, in its log, or in its state (I13).
func TestCanaries(t *testing.T) {
	b := newBench(t)
	p := &places{dir: t.TempDir(), file: map[string]any{}, files: map[string]string{}}
	module, all := p.nest()
	if len(all) < 280 {
		t.Fatalf("%d canaries", len(all))
	}
	vars, err := json.Marshal(p.file)
	if err != nil {
		t.Fatal(err)
	}
	p.files["main.hcl"] = module
	p.files["next/main.hcl"] = strings.ReplaceAll(module, `"10m"`, `"11m"`) // for engine migrate
	outside := t.TempDir()                                                  // what a person knows is not in the module's directory
	for name, text := range p.files {
		file := filepath.Join(p.dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	values := filepath.Join(outside, "values.json")
	if err := os.WriteFile(values, vars, 0o600); err != nil {
		t.Fatal(err)
	}
	key := func(b byte) string { return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, 32)) }
	env := append([]string{
		"HOME=" + outside, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + t.TempDir(), "ENGINE_PLUGIN_DIR=" + b.dir, "NO_COLOR=1", "ENGINE_LOG=debug",
		"ENGINE_ENCRYPTION_KEY=" + key(7),
	}, p.env...)
	surfaces, stdin := map[string][]byte{}, ""
	run := func(args ...string) []byte {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), filepath.Join(b.dir, "engine"), args...)
		cmd.Dir, cmd.Env, cmd.Stdin = p.dir, env, strings.NewReader(stdin)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		err := cmd.Run()
		out := append(slices.Clone(stdout.Bytes()), stderr.Bytes()...)
		if err != nil {
			t.Errorf("engine %.40q: %v\n…%s", args[:min(len(args), 3)], err, out[max(0, len(out)-3000):])
		}
		surfaces["engine "+args[0]+fmt.Sprint(len(surfaces))] = out
		return stdout.Bytes()
	}
	given := append([]string{"--var-file", values}, p.args...)
	given = append([]string{"--workflow", "w"}, given...)
	run(append([]string{"plan", "."}, given...)...)
	run(append([]string{"plan", ".", "--json"}, given...)...)
	run(append([]string{"apply", ".", "--run-id", "canaries", "--reply-to", "table:canaries"}, given...)...)
	run(append([]string{"apply", ".", "--run-id", "served", "--detach", "--reply-to", "table:canaries"}, given...)...)
	for _, args := range [][]string{
		{"migrate", "served", "--to", "next", "--dry-run"}, {"migrate", "served", "--to", "next", "--json"}, {"migrate", "--all", "--workflow", "w", "--to", "next"},
		{"migrate", "served", "--to", "next", "--yes"},
		{"restart", "canaries", "--from", "s0", "--again", "--dry-run"}, {"restart", "canaries", "--from", "s0", "--again", "--json"},
		{"restart", "canaries", "--from", "s0", "--again", "--run-id", "again", "--yes"},
	} {
		run(args...)
	}
	surfaces["the log of engine serve"], surfaces["metrics"] = served(t, filepath.Join(b.dir, "engine"), p.dir, env, 2*notices(all), "served", "again")
	for _, args := range [][]string{
		{"show", "served"}, {"logs", "served"}, {"explain", "served", "--json"}, {"show", "again"}, {"show", "again", "--events"}, {"explain", "again"},
		{"show", "canaries"}, {"show", "canaries", "--json"}, {"show", "canaries", "--events"}, {"show", "canaries", "--events", "--json"},
		{"show", "canaries", "--definition"}, {"logs", "canaries"}, {"logs", "canaries", "--json"}, {"watch", "canaries"}, {"explain", "canaries"},
		{"list", "--limit", "1000"}, {"list", "--json"}, {"list", "--alerts"}, {"list", "--alerts", "--json"}, {"list", "--notifications", "--json"},
		{"graph", ".", "--workflow", "w"}, {"validate", ".", "--json"}, {"doctor"}, {"db", "verify"},
		{"replies", "canaries"}, {"replies", "canaries", "--json"}, {"replies", "canaries", "--take"},
	} {
		run(args...)
	}
	for _, name := range family(t, run("list", "--workflow", "child", "--json"), run("list", "--workflow", "w.notify", "--json"), run("list", "--json", "--limit", "1000")) {
		run("show", name)
		run("show", name, "--events", "--json")
		run("explain", name)
	}
	for _, h := range all {
		if h.expr != "" {
			stdin += h.expr + "\njsonencode(" + h.expr + ")\n"
		}
	}
	run("console", ".", "--run", "canaries")
	run("console", ".", "--run", "canaries", "--json")
	env = append(slices.Clone(env), "ENGINE_ENCRYPTION_KEY="+key(8)+","+key(7))
	run("key", "rotate", "--preview")
	run("key", "rotate")
	env = append(slices.Clone(env), "ENGINE_ENCRYPTION_KEY="+key(8))
	run("key", "list")
	run("show", "canaries", "--json")
	run("db", "verify")
	err = filepath.WalkDir(p.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || slices.Contains([]string{"main.hcl"}, d.Name()) || strings.HasPrefix(d.Name(), "secret-") {
			return err
		}
		data, err := os.ReadFile(path)
		surfaces[filepath.Base(path)] = data
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	masked := 0
	for name, text := range surfaces {
		if strings.HasPrefix(name, "engine show") && bytes.Contains(text, []byte("(sensitive)")) {
			masked++
		}
	}
	if masked < 6 { // of both runs, and of a run of each kind
		t.Errorf("%d commands show something masked: the test looks at the wrong things", masked)
	}
	for _, h := range all {
		for name, data := range surfaces {
			for _, form := range h.forms() {
				if i := bytes.Index(data, []byte(form)); i >= 0 {
					t.Errorf("%s as %s shows in %s: …%.120q", h.source, h.sink, name, data[max(0, i-60):min(len(data), i+60)])
					break
				}
			}
		}
	}
	t.Logf("%d canaries, %d surfaces", len(all), len(surfaces))
}

// family returns the name of one run of each workflow in the lists of runs.
func family(t *testing.T, lists ...[]byte) (names []string) {
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
	for _, kind := range []string{"w", "w.g", "w.notify", "child"} {
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

// served has an engine work on what was submitted, until these runs have succeeded, and this number of
// notifications. It returns what the engine logs and what it serves.
func served(t *testing.T, program, dir string, env []string, notices int, runs ...string) (log, metrics []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "serve", ".", "--http", "127.0.0.1:0")
	cmd.Dir, cmd.Env = dir, env
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // the engine ends its agents
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	address := regexp.MustCompile(`msg=listening http=(\S+)`)
	var url string
	var out bytes.Buffer
	for lines := bufio.NewScanner(io.TeeReader(stderr, &out)); lines.Scan(); {
		if m := address.FindStringSubmatch(lines.Text()); m != nil {
			url = "http://" + m[1] + "/metrics"
		}
		runs = slices.DeleteFunc(runs, func(run string) bool {
			return strings.Contains(lines.Text(), "run="+run+" ") && strings.Contains(lines.Text(), "succeeded")
		})
		if strings.Contains(lines.Text(), "run ended") && strings.Contains(lines.Text(), ".notify.succeeded.") {
			notices--
		}
		if url == "" || metrics != nil || len(runs) > 0 || notices > 0 {
			continue
		}
		reply, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		if metrics, err = io.ReadAll(reply.Body); err != nil {
			t.Fatal(err)
		}
		_ = reply.Body.Close()
		cancel()
	}
	if err := cmd.Wait(); metrics == nil || !bytes.Contains(metrics, []byte("engine_runs")) {
		t.Fatalf("the engine served %q and ended with %v:\n…%s", metrics, err, out.Bytes()[max(0, out.Len()-3000):])
	}
	return out.Bytes(), metrics
}
