//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/saga-engine/engine/sdk"
	"github.com/saga-engine/engine/sdk/plugin"
	"github.com/saga-engine/engine/sdk/sdktest"
)

type in = map[string]any

func request(t *testing.T, action string, input in) sdk.Request {
	t.Helper()
	raw, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	return sdk.Request{
		Action: action, Purpose: sdk.PurposeDo, Input: raw, IdempotencyKey: "key-1", Run: "r-1", Workflow: "w", Step: `s["a"]`, Attempt: 3,
		CompleteBy: time.Now().Add(time.Minute),
	}
}

func invoke(t *testing.T, action string, input in, change ...func(*sdk.Request)) sdk.Reply {
	t.Helper()
	req := request(t, action, input)
	for _, c := range change {
		c(&req)
	}
	reply, ok := newAgent().Invoke(t.Context(), req, sdk.InvokeOptions{})
	if !ok {
		t.Fatal("no reply in time")
	}
	return reply
}

func sh(script string, more ...in) in {
	input := in{"argv": []string{"sh", "-c", script}}
	for _, m := range more {
		for k, v := range m {
			input[k] = v
		}
	}
	return input
}

func TestRun(t *testing.T) {
	dir := t.TempDir()
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "tool"), []byte("#!/bin/sh\necho tool \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	fish := filepath.Join(dir, "fish")
	if err := os.Mkdir(fish, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(fish, "broken"), []byte("no program"), 0o755); err != nil {
		t.Fatal(err)
	}
	const result, failed, unknown = sdk.OutcomeResult, sdk.OutcomeFailed, sdk.OutcomeUnknown
	for name, tc := range map[string]struct {
		input in
		want  sdk.Outcome
		text  string // output, or code: message
	}{
		"output":                    {in{"argv": []string{"echo", "$HOME;", "*"}}, result, `{"exit_code":0,"json":null,"stderr":"","stdout":"$HOME; *\n","truncated":false}`},
		"both outputs":              {sh("echo out; echo err >&2"), result, `{"exit_code":0,"json":null,"stderr":"err\n","stdout":"out\n","truncated":false}`},
		"json":                      {sh(`echo '{"n":12345678901234567890.10}'`), result, `{"exit_code":0,"json":{"n":12345678901234567890.10},"stderr":"","stdout":"{\"n\":12345678901234567890.10}\n","truncated":false}`},
		"json not wanted":           {sh(`echo 1`, in{"parse": "none"}), result, `{"exit_code":0,"json":null,"stderr":"","stdout":"1\n","truncated":false}`},
		"json needed":               {sh(`echo no`, in{"parse": "json"}), unknown, `bad_reply: standard output of sh is not JSON`},
		"stdin":                     {in{"argv": []string{"cat"}, "stdin": "a\x00b"}, result, `{"exit_code":0,"json":null,"stderr":"","stdout":"a\u0000b","truncated":false}`},
		"empty stdin":               {in{"argv": []string{"cat"}}, result, `{"exit_code":0,"json":null,"stderr":"","stdout":"","truncated":false}`},
		"stdin not read":            {in{"argv": []string{"true"}, "stdin": strings.Repeat("x", 1<<20)}, result, `{"exit_code":0,`},
		"cwd":                       {in{"argv": []string{"pwd"}, "cwd": dir}, result, `{"exit_code":0,"json":null,"stderr":"","stdout":"` + real + `\n",`},
		"path in cwd":               {in{"argv": []string{"./tool", "a b"}, "cwd": dir}, result, `{"exit_code":0,"json":null,"stderr":"","stdout":"tool a b\n",`},
		"own PATH":                  {in{"argv": []string{"tool"}, "env": in{"PATH": dir}}, result, `{"exit_code":0,"json":null,"stderr":"","stdout":"tool\n",`},
		"not in PATH":               {in{"argv": []string{"tool"}, "cwd": dir}, failed, `invalid: argv: program "tool" is not in`},
		"relative PATH":             {in{"argv": []string{"tool"}, "cwd": dir, "env": in{"PATH": "."}}, failed, `invalid: argv: program "tool" is not in`},
		"no such file":              {in{"argv": []string{"/no/such"}}, failed, `invalid: fork/exec /no/such: no such file`},
		"not executable":            {in{"argv": []string{"/etc/passwd"}}, failed, `invalid: fork/exec /etc/passwd: permission denied`},
		"no such cwd":               {in{"argv": []string{"/bin/true"}, "cwd": "/no/such"}, failed, `invalid: `},
		"no argv":                   {in{"argv": []string{}}, failed, `invalid: argv: names no program`},
		"zero byte":                 {in{"argv": []string{"echo", "a\x00b"}}, failed, `invalid: argv and cwd`},
		"bad variable":              {in{"argv": []string{"true"}, "env": in{"A=fish": "c"}}, failed, `invalid: env: a name is empty or contains "=" or a zero byte, or a value contains a zero byte`},
		"not in own PATH":           {in{"argv": []string{"tool"}, "env": in{"PATH": "/fish:/chips"}}, failed, `invalid: argv: program "tool" is not in the directories of PATH in env`},
		"not startable in own PATH": {in{"argv": []string{"broken"}, "env": in{"PATH": fish}}, failed, `invalid: broken: exec format error`},
		"too much output":           {in{"argv": []string{"true"}, "max_output": 1<<20 + 1}, failed, `invalid: max_output`},
		"bad errors":                {in{"argv": []string{"true"}, "errors": in{"256": "x"}}, failed, `invalid: input: errors: "256"`},
		"bad code":                  {in{"argv": []string{"true"}, "errors": in{"1": "agent_lost"}}, failed, `invalid: input: errors: "agent_lost"`},
		"exit code":                 {sh("echo a >&2; echo b >&2; exit 3"), unknown, `exit_nonzero: sh ended with exit code 3: b`},
		"mapped":                    {sh("echo sold out >&2; exit 3", in{"errors": in{"3": "out_of_stock"}}), failed, `out_of_stock: sh ended with exit code 3: sold out`},
		"accepted":                  {sh("exit 3", in{"ok_codes": []int{0, 3}}), result, `{"exit_code":3,`},
		"0 is not accepted":         {sh("exit 0", in{"ok_codes": []int{3}}), unknown, `exit_nonzero: `},
		"signal":                    {sh("kill -TERM $$"), unknown, `killed: sh ended by a signal: signal: terminated`},
		"truncated":                 {sh("printf %s 1234 5678; printf %s 8765 4321 >&2", in{"max_output": 5}), result, `{"exit_code":0,"json":12345,"stderr":"87654","stdout":"12345","truncated":true}`},
		"cut character":             {sh("printf 'aé'", in{"max_output": 2}), result, `{"exit_code":0,"json":null,"stderr":"","stdout":"a","truncated":true}`},
		"escape in message":         {sh(`printf '\033[31mred' >&2; exit 1`), unknown, "exit_nonzero: sh ended with exit code 1: \x1b[31mred"},
		"secret cut by max_output":  {in{"argv": []string{"sh", "-c", "printf 'token %s refused' \"$T\""}, "env": in{"T": "sw0rd-fish"}, "max_output": 12}, result, `{"exit_code":0,"json":null,"stderr":"","stdout":"token ","truncated":true}`},
		"secret cut in the message": {in{"argv": []string{"sh", "-c", "printf '%s%0295d' \"$T\" 7 >&2; exit 1"}, "env": in{"T": "sw0rd-fish"}}, unknown, "exit_nonzero: sh ended with exit code 1: 0000"},
		"secret of several lines":   {in{"argv": []string{"sh", "-c", "printf 'bad key %s' \"$T\" >&2; exit 1"}, "env": in{"T": "begin\nsw0rd-fish\nend of key"}}, unknown, "exit_nonzero: sh ended with exit code 1"},
	} {
		t.Run(name, func(t *testing.T) {
			reply := invoke(t, "run", tc.input)
			got := string(reply.Output)
			if reply.Outcome != sdk.OutcomeResult {
				got = reply.Code + ": " + reply.Message
			}
			if reply.Outcome != tc.want || !strings.HasPrefix(got, tc.text) || strings.Contains(got, "fish") || strings.Contains(got, "of key") {
				t.Errorf("outcome %d: %s\nwant %d: %s", reply.Outcome, got, tc.want, tc.text)
			}
		})
	}
}

// TestEnvironment: the program sees what it is given and what the call is about
// (S26, S29), and nothing of the agent's own.
func TestEnvironment(t *testing.T) {
	t.Setenv("CANARY", "1")
	input := in{"argv": []string{"env"}, "env": in{"A": "1", "ENGINE_RUN": "forged", "ENGINE_DSN": "x"}}
	reply := invoke(t, "run", input, func(r *sdk.Request) { r.ForwardKey = "key-0" })
	var out struct{ Stdout string }
	if err := json.Unmarshal(reply.Output, &out); err != nil {
		t.Fatalf("%+v: %v", reply, err)
	}
	got := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(out.Stdout), "\n") {
		k, v, _ := strings.Cut(line, "=")
		got[k] = v
	}
	by, err := time.Parse(time.RFC3339Nano, got["ENGINE_COMPLETE_BY"])
	if err != nil || time.Until(by) > time.Minute || time.Until(by) < 30*time.Second {
		t.Errorf("complete-by %q: %v", got["ENGINE_COMPLETE_BY"], err)
	}
	delete(got, "ENGINE_COMPLETE_BY")
	want := map[string]string{
		"A": "1", "ENGINE_IDEMPOTENCY_KEY": "key-1", "ENGINE_FORWARD_KEY": "key-0", "ENGINE_RUN": "r-1",
		"ENGINE_WORKFLOW": "w", "ENGINE_STEP": `s["a"]`, "ENGINE_ATTEMPT": "3",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// alive reports whether a process exists and is not only waiting to be reaped.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return syscall.Kill(pid, 0) == nil && !os.IsNotExist(err)
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z")
}

// waitFor waits until ok, at most 10 seconds.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for limit := time.Now().Add(10 * time.Second); !ok(); <-tick.C {
		if time.Now().After(limit) {
			t.Fatalf("waited for %s", what)
		}
	}
}

func pidsIn(t *testing.T, path string, n int) []int {
	t.Helper()
	var pids []int
	waitFor(t, "pids", func() bool {
		data, err := os.ReadFile(path)
		if err != nil {
			return false
		}
		pids = nil
		for _, f := range strings.Fields(string(data)) {
			pid, err := strconv.Atoi(f)
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
		return len(pids) == n
	})
	return pids
}

// family starts two processes in the group and waits.
func family(path string) string {
	return fmt.Sprintf("trap '' TERM; sleep 60 & echo $$ $! > '%s'; wait", path)
}

// TestS28Deadline: at complete-by the program and what it started are killed,
// and nothing is said; told to stop, they are killed and the outcome is unknown.
func TestS28Deadline(t *testing.T) {
	for name, stop := range map[string]bool{"complete-by": false, "stop": true} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "pids")
			req := request(t, "run", sh(family(path)))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if !stop {
				req.CompleteBy = time.Now().Add(500 * time.Millisecond)
			}
			ended := make(chan struct{})
			type answer struct {
				reply sdk.Reply
				ok    bool
			}
			answers := make(chan answer, 1)
			go func() {
				reply, ok := newAgent().Invoke(ctx, req, sdk.InvokeOptions{Ended: func() { close(ended) }})
				answers <- answer{reply, ok}
			}()
			pids := pidsIn(t, path, 2)
			if stop {
				cancel()
			}
			a := <-answers
			switch {
			case !stop && a.ok:
				t.Errorf("reply=%+v after complete-by", a.reply)
			case stop && (!a.ok || a.reply.Outcome != sdk.OutcomeUnknown || a.reply.Code != sdk.CodeAborted):
				t.Errorf("reply=%+v %v, want unknown aborted", a.reply, a.ok)
			}
			<-ended
			for _, pid := range pids {
				waitFor(t, "the end of the processes", func() bool { return !alive(pid) })
			}
		})
	}
}

// TestLeftOver: what a program leaves running does not delay the answer, and
// does not outlive it.
func TestLeftOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pids")
	start := time.Now()
	reply := invoke(t, "run", sh(fmt.Sprintf("sleep 60 & echo $! > '%s'; echo done", path)))
	if reply.Outcome != sdk.OutcomeResult || !strings.Contains(string(reply.Output), `"done\n"`) || time.Since(start) > 10*time.Second {
		t.Errorf("reply=%+v %s after %s", reply, reply.Output, time.Since(start))
	}
	for _, pid := range pidsIn(t, path, 1) {
		waitFor(t, "the end of the process", func() bool { return !alive(pid) })
	}
}

func start(t *testing.T) *plugin.Process {
	t.Helper()
	path := filepath.Join(t.TempDir(), "engine-agent-exec")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	p, err := plugin.Open(t.Context(), plugin.OpenOptions{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := p.Configure(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestAgentKilled: the program does not outlive the agent's process.
func TestAgentKilled(t *testing.T) {
	p := start(t)
	path := filepath.Join(t.TempDir(), "pids")
	replies := make(chan sdk.Reply, 1)
	go func() {
		reply, err := p.Invoke(t.Context(), request(t, "run", in{"argv": []string{"sh", "-c", fmt.Sprintf("echo $$ > '%s'; exec sleep 60", path)}}), nil)
		if err != nil {
			t.Error(err)
		}
		replies <- reply
	}()
	pids := pidsIn(t, path, 1)
	p.Kill()
	if reply := <-replies; reply.Outcome != sdk.OutcomeUnknown || reply.Code != sdk.CodeAgentLost {
		t.Errorf("reply=%+v, want unknown agent_lost", reply)
	}
	for _, pid := range pids {
		waitFor(t, "the end of the program", func() bool { return !alive(pid) })
	}
}

// TestRules checks the promises of the agent in this process and through a real
// one.
func TestRules(t *testing.T) {
	cases := []sdktest.Case{
		{Name: "query", Action: "query", Input: `{"argv":["echo","1"]}`},
		{Name: "run", Action: "run", Input: `{"argv":["true"]}`},
		{Name: "slow", Action: "query", Input: `{"argv":["sleep","20"]}`, Slow: true},
		{Name: "no program", Action: "run", Input: `{"argv":["no-such-program"]}`, Code: sdk.CodeInvalid},
		{Name: "declared", Action: "run", Input: `{"argv":["false"],"errors":{"1":"out_of_stock"}}`, Code: "out_of_stock"},
	}
	t.Run("in process", func(t *testing.T) { sdktest.Run(t, newAgent(), cases...) })
	t.Run("real process", func(t *testing.T) { sdktest.RunTarget(t, start(t), cases...) })
}
