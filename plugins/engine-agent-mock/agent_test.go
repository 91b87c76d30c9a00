package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/saga-engine/engine/sdk"
	"github.com/saga-engine/engine/sdk/plugin"
	"github.com/saga-engine/engine/sdk/sdktest"
)

func open(t *testing.T, ledger string) *sdk.Agent {
	t.Helper()
	a := newAgent()
	raw, err := json.Marshal(map[string]string{"ledger": ledger})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Configure(t.Context(), raw); err != nil {
		t.Fatal(err)
	}
	return a
}

type target interface {
	Invoke(ctx context.Context, req sdk.Request, onEvent func(sdk.Event)) (sdk.Reply, error)
}

// local calls an agent in this process.
type local struct{ *sdk.Agent }

func (l local) Invoke(ctx context.Context, req sdk.Request, onEvent func(sdk.Event)) (sdk.Reply, error) {
	reply, ok := l.Agent.Invoke(ctx, req, sdk.InvokeOptions{OnEvent: onEvent})
	if !ok {
		return sdk.Reply{}, context.DeadlineExceeded
	}
	return reply, nil
}

func call(t *testing.T, to target, action, input, key string, change ...func(*sdk.Request)) sdk.Reply {
	t.Helper()
	req := sdk.Request{
		Action: action, Purpose: sdk.PurposeDo, Input: []byte(input), IdempotencyKey: key, Step: "s", Attempt: 1,
		CompleteBy: time.Now().Add(time.Minute),
	}
	for _, c := range change {
		c(&req)
	}
	reply, err := to.Invoke(t.Context(), req, nil)
	if err != nil {
		t.Fatalf("%s %s: %v", action, input, err)
	}
	return reply
}

func undoes(key string) func(*sdk.Request) {
	return func(r *sdk.Request) { r.Purpose, r.ForwardKey = sdk.PurposeUndo, key }
}

func lookup(r *sdk.Request) { r.Purpose = sdk.PurposeLookup }

// lines reads a ledger.
func lines(t *testing.T, path string) (entries []entry) {
	t.Helper()
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		var e entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		entries = append(entries, e)
	}
	return entries
}

// story is the ledger in short: kind of each line, with ! where something
// changed.
func story(t *testing.T, path string) string {
	t.Helper()
	var words []string
	for _, e := range lines(t, path) {
		word := e.Kind + ":" + e.Key
		if e.Applied {
			word += "!"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func TestScripts(t *testing.T) {
	const result, failed, unknown = sdk.OutcomeResult, sdk.OutcomeFailed, sdk.OutcomeUnknown
	for name, tc := range map[string]struct {
		action string
		input  string
		want   []string // of the calls with one key: output, or outcome code message
		story  string
	}{
		"call":         {"call", `{"value":[1.50]}`, []string{`{"value":[1.50]}`, `{"value":[1.50]}`}, "arrived:k applied:k! arrived:k repeated:k"},
		"call_once":    {"call_once", `{"value":1}`, []string{`{"value":1}`, `{"value":1}`}, "arrived:k applied:k! arrived:k applied:k!"},
		"fail":         {"call", `{"fail":{"code":"no_luck","message":"today","permanent":true}}`, []string{"failed no_luck today permanent"}, "arrived:k"},
		"fail twice":   {"do", `{"value":1,"fail":{"times":2}}`, []string{"failed unavailable as the script says", "failed unavailable as the script says", `{"value":1}`}, "arrived:k arrived:k arrived:k applied:k!"},
		"unknown once": {"do", `{"value":1,"fail":{"unknown":true,"code":"lost","times":1}}`, []string{"unknown lost as the script says", `{"value":1}`}, "arrived:k applied:k! arrived:k repeated:k"},
		"effect after": {"call", `{"effect":"after","latency":"1ms","value":2}`, []string{`{"value":2}`}, "arrived:k applied:k!"},
		"echo":         {"echo", `{"value":{"a":null}}`, []string{`{"value":{"a":null}}`}, ""},
		"big":          {"big", `{"bytes":3}`, []string{`{"value":"xxx"}`}, ""},
		"too big":      {"big", `{"bytes":-1}`, []string{"failed invalid bytes: must be between 0 and 2^30 permanent"}, ""},
		"plain undo":   {"undo", `{}`, []string{"failed invalid there is no forward key: undo is for compensation only permanent"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ledger")
			a := local{open(t, path)}
			for n, want := range tc.want {
				reply := call(t, a, tc.action, tc.input, "k")
				got := string(reply.Output)
				switch reply.Outcome {
				case failed:
					got = "failed " + reply.Code + " " + reply.Message
				case unknown:
					got = "unknown " + reply.Code + " " + reply.Message
				case result:
				default:
					t.Errorf("outcome=%d", reply.Outcome)
				}
				if reply.Permanent {
					got += " permanent"
				}
				if got != want {
					t.Errorf("call %d: %s, want %s", n+1, got, want)
				}
			}
			if got := story(t, path); got != tc.story {
				t.Errorf("ledger: %s\nwant:   %s", got, tc.story)
			}
		})
	}
}

// TestUndo: an undo takes back what was done, is content where nothing was, and
// keeps a late do from happening.
func TestUndo(t *testing.T) {
	for name, path := range map[string]string{"memory": "", "file": filepath.Join(t.TempDir(), "ledger")} {
		t.Run(name, func(t *testing.T) {
			a := local{open(t, path)}
			call(t, a, "do", `{"value":1}`, "k")
			if reply := call(t, a, "do", `{}`, "k", lookup); string(reply.Output) != `{"value":1}` {
				t.Errorf("lookup: %+v", reply)
			}
			for range 2 {
				if reply := call(t, a, "undo", `{}`, "k:undo", undoes("k")); reply.Outcome != sdk.OutcomeResult {
					t.Errorf("undo: %+v", reply)
				}
			}
			if reply := call(t, a, "undo", `{}`, "late:undo", undoes("late")); reply.Outcome != sdk.OutcomeResult {
				t.Errorf("empty undo: %+v", reply)
			}
			if reply := call(t, a, "do", `{}`, "late"); reply.Outcome != sdk.OutcomeFailed || reply.Code != "undone" || !reply.Permanent {
				t.Errorf("late do: %+v, want a refusal", reply)
			}
			if reply := call(t, a, "do", `{}`, "late", lookup); reply.Outcome != sdk.OutcomeNotDone {
				t.Errorf("lookup of it: %+v", reply)
			}
			if reply := call(t, a, "undo", `{"undo":{"fail":{"code":"stuck"}}}`, "x:undo", undoes("x")); reply.Code != "stuck" {
				t.Errorf("scripted undo: %+v", reply)
			}
			if path == "" {
				return
			}
			want := "arrived:k applied:k! arrived:k:undo applied:k:undo! arrived:k:undo repeated:k:undo " +
				"arrived:late:undo applied:late:undo arrived:late refused:late arrived:x:undo"
			if got := story(t, path); got != want {
				t.Errorf("ledger: %s\nwant:   %s", got, want)
			}
			if e := lines(t, path)[3]; e.Purpose != "undo" || e.Forward != "k" || e.Step != "s" || e.Attempt != 1 || e.At.IsZero() {
				t.Errorf("entry=%+v", e)
			}
		})
	}
}

// held starts a call in the background. It returns when the call waits, which its first
// heartbeat shows. A call that does not wait is an error.
func held(t *testing.T, ctx context.Context, a *sdk.Agent, req sdk.Request) <-chan sdk.Reply {
	t.Helper()
	req.CompleteBy = time.Now().Add(time.Minute)
	beats, replies := make(chan sdk.Event, 1), make(chan sdk.Reply, 1)
	go func() {
		reply, _ := a.Invoke(ctx, req, sdk.InvokeOptions{OnEvent: func(e sdk.Event) {
			select {
			case beats <- e:
			default:
			}
		}})
		replies <- reply
	}()
	select {
	case <-beats:
	case reply := <-replies:
		t.Fatalf("%s: %+v, want no answer yet", req.Input, reply)
	}
	return replies
}

// TestHold: a call with a hold waits for the file. The effect is before or after the wait,
// as for a latency, and a failure waits too.
func TestHold(t *testing.T) {
	for name, tc := range map[string]struct {
		action, input string
		waiting       string // the ledger while the call waits
		outcome       sdk.Outcome
		ended         string // the ledger after the answer
	}{
		"before":        {"call", `{"value":1,"hold":"gate"}`, "arrived:k applied:k!", sdk.OutcomeResult, "arrived:k applied:k!"},
		"after":         {"call", `{"value":1,"hold":"gate","effect":"after"}`, "arrived:k", sdk.OutcomeResult, "arrived:k applied:k!"},
		"after latency": {"call", `{"hold":"gate","latency":"1ms","effect":"after"}`, "arrived:k", sdk.OutcomeResult, "arrived:k applied:k!"},
		"failure":       {"do", `{"hold":"gate","fail":{}}`, "arrived:k", sdk.OutcomeFailed, "arrived:k"},
		"undo":          {"undo", `{"undo":{"hold":"gate"}}`, "arrived:k applied:k", sdk.OutcomeResult, "arrived:k applied:k"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ledger")
			req := sdk.Request{Action: tc.action, Purpose: sdk.PurposeDo, Input: []byte(tc.input), IdempotencyKey: "k"}
			if tc.action == "undo" {
				undoes("forward")(&req)
			}
			replies := held(t, t.Context(), open(t, path), req)
			if got := story(t, path); got != tc.waiting {
				t.Errorf("ledger while the call waits: %s, want %s", got, tc.waiting)
			}
			if err := os.Mkdir(filepath.Join(filepath.Dir(path), "gate"), 0o700); err != nil {
				t.Fatal(err)
			}
			if reply := <-replies; reply.Outcome != tc.outcome {
				t.Errorf("%+v, want outcome %d", reply, tc.outcome)
			}
			if got := story(t, path); got != tc.ended {
				t.Errorf("ledger: %s, want %s", got, tc.ended)
			}
		})
	}
}

// TestHoldEnds: a held call ends with its context, with an unknown outcome.
func TestHoldEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	replies := held(t, ctx, open(t, path), sdk.Request{
		Action: "call", Purpose: sdk.PurposeDo, Input: []byte(`{"hold":"gate","effect":"after"}`), IdempotencyKey: "k",
	})
	cancel()
	if reply := <-replies; reply.Outcome != sdk.OutcomeUnknown || reply.Code != sdk.CodeAborted {
		t.Errorf("%+v, want an unknown outcome with code aborted", reply)
	}
	if got := story(t, path); got != "arrived:k" {
		t.Errorf("ledger: %s, want no effect", got)
	}
}

// TestHoldInvalid: a hold needs a ledger and a plain name. Otherwise the call fails for good
// and has no effect.
func TestHoldInvalid(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	for name, tc := range map[string]struct{ ledger, hold, want string }{
		"no ledger": {"", "gate", "hold: the agent is configured without a ledger, so there is no directory to look in"},
		"path":      {path, "sub/gate", "hold: must be the name of a file, without a directory"},
		"absolute":  {path, "/gate", "hold: must be the name of a file, without a directory"},
		"parent":    {path, "..", "hold: must be the name of a file, without a directory"},
		"itself":    {path, ".", "hold: must be the name of a file, without a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			reply := call(t, local{open(t, tc.ledger)}, "call", fmt.Sprintf(`{"hold":%q}`, tc.hold), "k")
			if reply.Outcome != sdk.OutcomeFailed || reply.Code != sdk.CodeInvalid || !reply.Permanent || reply.Message != tc.want {
				t.Errorf("%+v, want a permanent failure: %s", reply, tc.want)
			}
			if got := story(t, path); got != "" {
				t.Errorf("ledger: %s, want no call", got)
			}
		})
	}
}

func build(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "engine-agent-mock")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return path
}

func start(t *testing.T, path, ledger string) *plugin.Process {
	t.Helper()
	p, err := plugin.Open(t.Context(), plugin.OpenOptions{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := p.Configure(t.Context(), fmt.Appendf(nil, `{"ledger":%q}`, ledger)); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestSharedLedger: processes that share a ledger have one effect for a key
// between them, and remember what one that crashed has done.
func TestSharedLedger(t *testing.T) {
	binary, path := build(t), filepath.Join(t.TempDir(), "ledger")
	one, two := start(t, binary, path), start(t, binary, path)
	var wg sync.WaitGroup
	for n := range 40 {
		wg.Go(func() {
			to := []*plugin.Process{one, two}[n%2]
			if reply := call(t, to, "call", `{"value":7}`, fmt.Sprintf("k%d", n/8)); string(reply.Output) != `{"value":7}` {
				t.Errorf("reply=%+v", reply)
			}
		})
	}
	wg.Wait()
	applied := map[string]int{}
	for _, e := range lines(t, path) {
		if e.Applied {
			applied[e.Key]++
		}
	}
	if fmt.Sprint(applied) != "map[k0:1 k1:1 k2:1 k3:1 k4:1]" {
		t.Errorf("applied %v, want each key once", applied)
	}

	for key, want := range map[string]string{"before": "arrived applied! arrived repeated", "after": "arrived arrived applied!"} {
		input := fmt.Sprintf(`{"value":1,"crash":true,"times":1,"effect":%q}`, key)
		victim := start(t, binary, path)
		if reply := call(t, victim, "call", input, key); reply.Code != sdk.CodeAgentLost {
			t.Errorf("%s: %+v, want agent_lost", key, reply)
		}
		if reply := call(t, two, "call", input, key); string(reply.Output) != `{"value":1}` {
			t.Errorf("%s: %+v, want the value", key, reply)
		}
		var words []string
		for _, e := range lines(t, path) {
			if e.Key == key {
				words = append(words, e.Kind+map[bool]string{true: "!"}[e.Applied])
			}
		}
		if got := strings.Join(words, " "); got != want {
			t.Errorf("%s: %s, want %s", key, got, want)
		}
	}
}

// TestS28Hang: a hanging call says nothing, past complete-by neither.
func TestS28Hang(t *testing.T) {
	p := start(t, build(t), "")
	_, err := p.Invoke(t.Context(), sdk.Request{
		Action: "call", Purpose: sdk.PurposeDo, Input: []byte(`{"hang":true}`), IdempotencyKey: "k",
		CompleteBy: time.Now().Add(200 * time.Millisecond),
	}, nil)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error=%v, want DeadlineExceeded", err)
	}
	call(t, p, "junk", `{"lines":3}`, "j")
	if reply := call(t, p, "echo", `{"value":1}`, "e"); string(reply.Output) != `{"value":1}` {
		t.Errorf("after the junk: %+v", reply)
	}
}

func TestRefuse(t *testing.T) {
	if err := newAgent().Configure(t.Context(), []byte(`{"refuse":"not like this"}`)); err == nil || !strings.Contains(err.Error(), "not like this") {
		t.Errorf("error=%v, want the refusal", err)
	}
}

// TestRules checks the promises of the agent in this process and through a real
// one (S26, S32).
func TestRules(t *testing.T) {
	effects := func(path string) func() int {
		return func() int {
			n := 0
			for _, e := range lines(t, path) {
				switch {
				case e.Applied && e.Purpose == "undo":
					n--
				case e.Applied:
					n++
				}
			}
			return n
		}
	}
	cases := func(path string) []sdktest.Case {
		count := effects(path)
		return []sdktest.Case{
			{Name: "call", Action: "call", Input: `{"value":1}`, Effects: count},
			{Name: "do", Action: "do", Input: `{"value":1}`, Effects: count},
			{Name: "do_once", Action: "do_once", Input: `{"value":1}`, Effects: count},
			{Name: "slow", Action: "call", Input: `{"latency":"20s","effect":"after"}`, Slow: true},
			{Name: "held", Action: "call", Input: `{"hold":"never","effect":"after"}`, Slow: true},
			{Name: "fail", Action: "call_once", Input: `{"fail":{"code":"whatever"}}`, Code: "whatever", Effects: count},
			{Name: "echo", Action: "echo", Input: `{"value":1}`},
			{Name: "big", Action: "big", Input: `{"bytes":100}`},
		}
	}
	t.Run("in process", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "ledger")
		sdktest.Run(t, open(t, path), cases(path)...)
	})
	t.Run("real process", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "ledger")
		sdktest.RunTarget(t, start(t, build(t), path), cases(path)...)
	})
}
