//go:build unix

package hostile

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
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
		{name: "output", pure: true, declare: func(b *strings.Builder, p *places, n int) {
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
	action string // of its step; "" = it is an output of the workflow
	input  string // %s is the sensitive expression
	more   string // of the step
}

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
		{name: "output of the run", pure: true, input: `%s`},
	}
}

// A hidden canary is one value in one place.
type hidden struct {
	source, sink string
	value        string
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
	b.WriteString("agent \"mock\" {}\nagent \"exec\" {}\nworkflow \"w\" {\n  deadline = \"10m\"\n")
	n := 0
	for _, src := range sources() {
		for _, to := range sinks() {
			for _, shape := range []string{"%s-canary%s", "%s \"ä\\ %s"} {
				if to.pure && !src.pure {
					continue
				}
				h := hidden{source: src.name, sink: to.name, value: fmt.Sprintf(shape, fmt.Sprintf("hush%08x", 0x9e3779b1*uint32(n+1)), "tail")}
				all = append(all, h)
				src.declare(&b, p, n)
				src.give(p, n, h.value)
				if expr := fmt.Sprintf(to.input, src.ref(n)); to.action == "" {
					fmt.Fprintf(&b, "  output \"o%d\" {\n    sensitive = true\n    value     = %s\n  }\n", n, expr)
				} else {
					fmt.Fprintf(&b, "  step \"s%d\" {\n    action       = agent.%s\n    compensation = \"none\"\n%s    input {\n%s\n    }\n  }\n", n, to.action, to.more, expr)
				}
				n++
			}
		}
	}
	b.WriteString("}\n")
	return b.String(), all
}

// T22: of 200 sensitive values, each with a way in and a use of its own, none can be read
// in what the engine prints, in its log, or in its state (I13).
func TestCanaries(t *testing.T) {
	b := newBench(t)
	p := &places{dir: t.TempDir(), file: map[string]any{}, files: map[string]string{}}
	module, all := p.nest()
	if len(all) < 180 {
		t.Fatalf("%d canaries", len(all))
	}
	vars, err := json.Marshal(p.file)
	if err != nil {
		t.Fatal(err)
	}
	p.files["main.hcl"] = module
	outside := t.TempDir() // what a person knows is not in the module's directory
	for name, text := range p.files {
		if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	values := filepath.Join(outside, "values.json")
	if err := os.WriteFile(values, vars, 0o600); err != nil {
		t.Fatal(err)
	}
	env := append([]string{
		"HOME=" + outside, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + t.TempDir(), "ENGINE_PLUGIN_DIR=" + b.dir, "NO_COLOR=1", "ENGINE_LOG=debug",
		"ENGINE_ENCRYPTION_KEY=" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32)),
	}, p.env...)
	surfaces := map[string][]byte{}
	run := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), filepath.Join(b.dir, "engine"), args...)
		cmd.Dir, cmd.Env = p.dir, env
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Run(); err != nil {
			t.Errorf("engine %.20q: %v\n…%s", args[:1], err, out.String()[max(0, out.Len()-3000):])
		}
		surfaces["engine "+args[0]+fmt.Sprint(len(surfaces))] = out.Bytes()
	}
	given := append([]string{"--var-file", values}, p.args...)
	run(append([]string{"plan", "."}, given...)...)
	run(append([]string{"plan", ".", "--json"}, given...)...)
	run(append([]string{"apply", ".", "--run-id", "canaries"}, given...)...)
	run(append([]string{"apply", ".", "--run-id", "served", "--detach"}, given...)...)
	surfaces["the log of engine serve"], surfaces["metrics"] = served(t, filepath.Join(b.dir, "engine"), p.dir, env)
	for _, args := range [][]string{
		{"show", "served"}, {"logs", "served"}, {"explain", "served", "--json"},
		{"show", "canaries"}, {"show", "canaries", "--json"}, {"show", "canaries", "--events"}, {"show", "canaries", "--events", "--json"},
		{"show", "canaries", "--definition"}, {"logs", "canaries"}, {"logs", "canaries", "--json"}, {"watch", "canaries"}, {"explain", "canaries"},
		{"list"}, {"list", "--json"}, {"list", "--alerts"}, {"list", "--alerts", "--json"}, {"graph", "."}, {"validate", ".", "--json"}, {"doctor"}, {"db", "verify"},
	} {
		run(args...)
	}
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
	if masked < 2 { // of both runs
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

// served has an engine work on what was submitted, until it has succeeded. It returns
// what the engine logs and what it serves.
func served(t *testing.T, program, dir string, env []string) (log, metrics []byte) {
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
		if url == "" || metrics != nil || !strings.Contains(lines.Text(), "succeeded") {
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
