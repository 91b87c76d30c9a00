package plugin

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/saga-engine/engine/sdk"
	"github.com/saga-engine/engine/sdk/schema"
)

func TestOpenHandshakeAndSchema(t *testing.T) {
	p := open(t, OpenOptions{})
	want, err := testAgent().Schema()
	if err != nil {
		t.Fatal(err)
	}
	got, _ := json.Marshal(p.Schema())
	wantJSON, _ := json.Marshal(want)
	if string(got) != string(wantJSON) {
		t.Errorf("schema = %s\nwant %s", got, wantJSON)
	}
	if err := p.Ping(t.Context()); err != nil {
		t.Errorf("Ping: %v", err)
	}
	pgid, err := syscall.Getpgid(p.Pid())
	if err != nil || pgid != p.Pid() {
		t.Errorf("process group = %d, %v; want its own, %d", pgid, err, p.Pid())
	}
	if err := p.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if err := p.Err(); !errors.Is(err, ErrExited) || !strings.Contains(err.Error(), "exit status 0") {
		t.Errorf("Err after Close = %v, want an orderly exit", err)
	}
	if _, err := os.Stat(p.child.dir); !os.IsNotExist(err) {
		t.Errorf("socket directory is still there: %v", err)
	}
}

// S26, S29: the key, the fence and everything else reach the agent unchanged.
func TestInvokeCarriesTheWholeRequest(t *testing.T) { both(t, testInvokeCarriesTheWholeRequest) }

func testInvokeCarriesTheWholeRequest(t *testing.T, protocol int) {
	p := open(t, OpenOptions{Protocol: protocol})
	req := request("call", `{}`)
	req.ForwardKey, req.Purpose, req.Attempt, req.Fence = "key-0", sdk.PurposeUndo, 3, 1<<60
	req.Checkpoint = &sdk.Checkpoint{Number: 7, Blob: []byte("blob")}
	var got struct{ Value map[string]any }
	if err := json.Unmarshal(invoke(t, p, req).Output, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"key": "key-1", "forward": "key-0", "run": "run-1", "workflow": "w", "step": "s", "attempt": 3.0,
		"fence": float64(1 << 60), "purpose": float64(sdk.PurposeUndo),
		"checkpoint": "7 blob true", "complete_by": req.CompleteBy.UTC().Format(time.RFC3339),
	}
	if fmt.Sprint(got.Value) != fmt.Sprint(want) {
		t.Errorf("call = %v\nwant   %v", got.Value, want)
	}
}

func TestInvokeKeepsNumbersExact(t *testing.T) { both(t, testInvokeKeepsNumbersExact) }

func testInvokeKeepsNumbersExact(t *testing.T, protocol int) {
	p := open(t, OpenOptions{Protocol: protocol})
	in := `{"value":{"a":12345678901234567890123,"b":[0.1,1e400,true,null,"<&>"]}}`
	if got := string(invoke(t, p, request("echo", in)).Output); got != in {
		t.Errorf("echo = %s, want %s", got, in)
	}
}

func TestConfigure(t *testing.T) {
	t.Run("given", func(t *testing.T) {
		p := open(t, OpenOptions{})
		if err := p.Configure(t.Context(), json.RawMessage(`{"word":"swordfish"}`)); err != nil {
			t.Fatal(err)
		}
		if got, want := string(invoke(t, p, request("word", `{}`)).Output), `{"text":"swordfish"}`; got != want {
			t.Errorf("word = %s, want %s", got, want)
		}
	})
	t.Run("of a process that has ended", func(t *testing.T) {
		p := open(t, OpenOptions{})
		p.Kill()
		<-p.Done()
		var ended *StartError
		if err := p.Configure(t.Context(), nil); !errors.As(err, &ended) || ended.Reason != ReasonExited {
			t.Errorf("Configure = %v, want that it has ended", err)
		}
	})
	t.Run("refused", func(t *testing.T) {
		p := open(t, OpenOptions{})
		err := p.Configure(t.Context(), json.RawMessage(`{"word":"bad"}`))
		if err == nil || !strings.Contains(err.Error(), "the word is bad") {
			t.Errorf("Configure = %v, want the agent's reason", err)
		}
		if r := invoke(t, p, request("word", `{}`)); r.Outcome != sdk.OutcomeFailed || r.Code != sdk.CodeInvalid {
			t.Errorf("call of a badly configured agent = %+v, want invalid", r)
		}
	})
}

// S31: an error reply comes at once, with everything the agent said.
func TestInvokeDefiniteFailure(t *testing.T) { both(t, testInvokeDefiniteFailure) }

func testInvokeDefiniteFailure(t *testing.T, protocol int) {
	p := open(t, OpenOptions{Protocol: protocol})
	want := sdk.Reply{Outcome: sdk.OutcomeFailed, Code: "refused", Message: "no", Permanent: true, RetryAfter: time.Minute, Output: json.RawMessage(`{"left":3}`)}
	if got := invoke(t, p, request("fail", `{}`)); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("fail = %+v, want %+v", got, want)
	}
}

func TestInvokeBadInput(t *testing.T) { both(t, testInvokeBadInput) }

func testInvokeBadInput(t *testing.T, protocol int) {
	p := open(t, OpenOptions{Protocol: protocol})
	odd := request("echo", `{}`)
	odd.Step = "a\xff"
	for name, req := range map[string]sdk.Request{
		"not UTF-8":      odd,
		"unknown action": request("nothing", `{}`),
		"wrong type":     request("big", `{"ms":"ten"}`),
		"missing":        request("big", `{}`),
		"not known":      request("big", `{"ms":1,"mss":2}`),
		"no lookup": func() sdk.Request {
			r := request("echo", `{}`)
			r.Purpose = sdk.PurposeLookup
			return r
		}(),
		"too large": request("echo", `{"value":"`+strings.Repeat("x", DefaultPayloadLimit)+`"}`),
	} {
		t.Run(name, func(t *testing.T) {
			if r := invoke(t, p, req); r.Outcome != sdk.OutcomeFailed || r.Code != sdk.CodeInvalid || !r.Permanent {
				t.Errorf("reply = %+v, want a permanent definite failure, invalid", r)
			}
		})
	}
}

func TestEnvironmentIsNotInherited(t *testing.T) {
	t.Setenv("PLUGIN_TEST_SECRET", "engine's own")
	p := open(t, OpenOptions{Env: []string{"GIVEN=yes"}})
	var got struct{ Value []string }
	if err := json.Unmarshal(invoke(t, p, request("environment", `{}`)).Output, &got); err != nil {
		t.Fatal(err)
	}
	for _, v := range got.Value {
		name, _, _ := strings.Cut(v, "=")
		if name != "GIVEN" && name != envMode && name != cookieName && name != envLimit && !strings.HasPrefix(name, "PLUGIN_") || name == "PLUGIN_TEST_SECRET" {
			t.Errorf("the agent sees %s", name)
		}
	}
	if !slices.Contains(got.Value, "GIVEN=yes") {
		t.Errorf("GIVEN is missing in %v", got.Value)
	}
}

func TestStdinIsEmpty(t *testing.T) {
	p := open(t, OpenOptions{})
	if got, want := string(invoke(t, p, request("stdin", `{}`)).Output), `{"text":""}`; got != want {
		t.Errorf("stdin = %s, want %s", got, want)
	}
}

// AutoMTLS: somebody else on this machine, who could reach the socket, is turned
// away without the one certificate that was made for this start.
func TestConnectionIsAuthenticated(t *testing.T) {
	p := open(t, OpenOptions{})
	info, err := os.Stat(p.child.dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Fatalf("socket directory: %v, %v; want mode 0700", info.Mode(), err)
	}
	sockets, err := filepath.Glob(filepath.Join(p.child.dir, "plugin*"))
	if err != nil || len(sockets) != 1 {
		t.Fatalf("sockets = %v, %v", sockets, err)
	}
	raw, err := net.Dial("unix", sockets[0])
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	conn := tls.Client(raw, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	err = conn.Handshake()
	if err == nil { // TLS 1.3 tells the client on the first read
		_, err = conn.Read(make([]byte, 1))
	}
	if err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("stranger got %v, want to be asked for a certificate", err)
	}
	plain, err := net.Dial("unix", sockets[0])
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	_ = plain.SetDeadline(time.Now().Add(5 * time.Second))
	_, _ = io.WriteString(plain, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	answer, _ := io.ReadAll(plain)
	if strings.Contains(string(answer), "\x00\x00\x00\x04") && answer[0] == 0 {
		t.Errorf("a connection without TLS got HTTP/2 settings: %q", answer)
	}
	if err := p.Ping(t.Context()); err != nil {
		t.Errorf("Ping after the stranger: %v", err)
	}
}

func TestStrayPrintsBecomeLogLines(t *testing.T) { both(t, testStrayPrintsBecomeLogLines) }

func testStrayPrintsBecomeLogLines(t *testing.T, protocol int) {
	book := newLogBook()
	p, err := Open(t.Context(), OpenOptions{Protocol: protocol, Path: os.Args[0], Env: []string{envMode + "=chatty"}, Logger: book.logger()})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { _ = p.Close() })
	book.await(t, "printed before Serve")
	invoke(t, p, request("print", `{}`))
	book.await(t, `msg="printed to stdout" stream=`)
	book.await(t, `msg="printed to stderr" stream=stderr`)
	book.await(t, "level=WARN msg=logged")
	for _, tag := range []string{"run=run-1", "step=s", "attempt=1", "answer=42"} {
		book.await(t, tag)
	}
}

// An agent that says why it gives up and exits is heard to its last line.
func TestLastWordsOfAProcessAreLogged(t *testing.T) { both(t, testLastWordsOfAProcessAreLogged) }

func testLastWordsOfAProcessAreLogged(t *testing.T, protocol int) {
	book := newLogBook()
	p, err := Open(t.Context(), OpenOptions{Protocol: protocol, Path: os.Args[0], Env: []string{envMode + "=agent"}, Logger: book.logger()})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { _ = p.Close() })
	if r := invoke(t, p, request("lastwords", `{"ms":100}`)); r.Code != sdk.CodeAgentLost {
		t.Fatalf("call = %+v, want agent_lost", r)
	}
	<-p.Done()
	for n := range 100 {
		book.await(t, fmt.Sprintf(`"last word %d to stdout"`, n))
		book.await(t, fmt.Sprintf(`"last word %d to stderr"`, n))
	}
}

func TestHeartbeatsAndCheckpoints(t *testing.T) { both(t, testHeartbeatsAndCheckpoints) }

func testHeartbeatsAndCheckpoints(t *testing.T, protocol int) {
	p := open(t, OpenOptions{Protocol: protocol})
	var events []sdk.Event
	record := func(ev sdk.Event) { events = append(events, ev) }
	if _, err := p.Invoke(t.Context(), request("slow", `{"ms":60}`), record); err != nil {
		t.Fatal(err)
	}
	if len(events) == 0 || events[0] != (sdk.Heartbeat{Progress: 0.25, Note: "working"}) {
		t.Errorf("heartbeats = %v", events)
	}
	events = nil
	if _, err := p.Invoke(t.Context(), request("checkpoints", `{}`), record); err != nil {
		t.Fatal(err)
	}
	want := []sdk.Event{sdk.Checkpoint{Number: 0, Blob: []byte("a")}, sdk.Checkpoint{Number: 1, Blob: []byte("b")}, sdk.Checkpoint{Number: 2, Blob: []byte("c")}}
	if fmt.Sprint(events) != fmt.Sprint(want) {
		t.Errorf("checkpoints = %v, want %v", events, want)
	}
}

func TestReplyTooLarge(t *testing.T) { both(t, testReplyTooLarge) }

func testReplyTooLarge(t *testing.T, protocol int) {
	p := open(t, OpenOptions{Protocol: protocol, PayloadLimit: 10_000})
	if r := invoke(t, p, request("big", `{"ms":9000}`)); r.Outcome != sdk.OutcomeResult {
		t.Errorf("reply below the limit = %+v", r)
	}
	for _, n := range []int{10_001, 5 << 20} {
		if r := invoke(t, p, request("big", fmt.Sprintf(`{"ms":%d}`, n))); r.Outcome != sdk.OutcomeUnknown || r.Code != sdk.CodeBadReply {
			t.Errorf("reply of %d bytes = %+v, want unknown bad_reply", n, r)
		}
	}
}

// The host's own limit holds for an agent that does not keep to it.
func TestReplyTooLargeFromACarelessAgent(t *testing.T) { both(t, testReplyTooLargeFromACarelessAgent) }

func testReplyTooLargeFromACarelessAgent(t *testing.T, protocol int) {
	p, err := Open(t.Context(), OpenOptions{Protocol: protocol, Path: os.Args[0], Env: []string{envMode + "=careless"}, PayloadLimit: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	for _, n := range []int{10_001, 5 << 20} {
		if r := invoke(t, p, request("big", fmt.Sprintf(`{"ms":%d}`, n))); r.Outcome != sdk.OutcomeUnknown || r.Code != sdk.CodeBadReply {
			t.Errorf("reply of %d bytes = %+v, want unknown bad_reply", n, r)
		}
	}
	if r := invoke(t, p, request("big", `{"ms":1}`)); r.Outcome != sdk.OutcomeResult {
		t.Errorf("call afterwards = %+v", r)
	}
}

// S35: only a valid reply is one.
func TestOnlyValidRepliesCount(t *testing.T) {
	p := &Process{options: OpenOptions{PayloadLimit: 1000}, schema: schema.Schema{Actions: map[string]schema.Action{
		"a": {Outputs: []schema.Field{{Name: "id", Type: schema.Type{Kind: schema.KindString}}}},
	}}}
	good := sdk.Reply{Outcome: sdk.OutcomeResult, Output: json.RawMessage(`{"id":"x"}`)}
	for name, test := range map[string]struct {
		reply sdk.Reply
		want  sdk.Outcome
	}{
		"result":              {good, sdk.OutcomeResult},
		"failure":             {sdk.Reply{Outcome: sdk.OutcomeFailed, Code: "x"}, sdk.OutcomeFailed},
		"unknown":             {sdk.Reply{Outcome: sdk.OutcomeUnknown, Code: "x"}, sdk.OutcomeUnknown},
		"no outcome":          {sdk.Reply{}, sdk.OutcomeInvalid},
		"wrong type":          {sdk.Reply{Outcome: sdk.OutcomeResult, Output: json.RawMessage(`{"id":1}`)}, sdk.OutcomeInvalid},
		"field missing":       {sdk.Reply{Outcome: sdk.OutcomeResult, Output: json.RawMessage(`{}`)}, sdk.OutcomeInvalid},
		"field not known":     {sdk.Reply{Outcome: sdk.OutcomeResult, Output: json.RawMessage(`{"id":"x","b":1}`)}, sdk.OutcomeInvalid},
		"not JSON":            {sdk.Reply{Outcome: sdk.OutcomeResult, Output: json.RawMessage(`{"id"`)}, sdk.OutcomeInvalid},
		"no output":           {sdk.Reply{Outcome: sdk.OutcomeResult}, sdk.OutcomeInvalid},
		"odd code":            {sdk.Reply{Outcome: sdk.OutcomeFailed, Code: "No Money"}, sdk.OutcomeInvalid},
		"failure, no code":    {sdk.Reply{Outcome: sdk.OutcomeFailed}, sdk.OutcomeInvalid},
		"not done, no lookup": {sdk.Reply{Outcome: sdk.OutcomeNotDone}, sdk.OutcomeInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			c := &call{process: p, req: request("a", `{}`)}
			got := c.accept(test.reply)
			if test.want == sdk.OutcomeInvalid {
				if got.Outcome != sdk.OutcomeUnknown || got.Code != sdk.CodeBadReply {
					t.Errorf("accept = %+v, want unknown bad_reply", got)
				}
			} else if fmt.Sprint(got) != fmt.Sprint(test.reply) {
				t.Errorf("accept = %+v, want %+v", got, test.reply)
			}
		})
	}
	c := &call{process: p, req: request("a", `{}`)}
	large := json.RawMessage(`"` + strings.Repeat("x", sdk.MaxData) + `"`)
	for _, r := range []sdk.Reply{
		{Outcome: sdk.OutcomeFailed, Code: "x", Output: large},
		{Outcome: sdk.OutcomeUnknown, Code: "x", Output: json.RawMessage(`{"left":3}`)},
	} {
		if got := c.accept(r); got.Outcome != r.Outcome || got.Code != "x" || got.Output != nil {
			t.Errorf("accept of %.60v = %.60v, want the same without data", r, got)
		}
	}
	c.req.Purpose = sdk.PurposeLookup
	if got := c.accept(sdk.Reply{Outcome: sdk.OutcomeNotDone}); got.Outcome != sdk.OutcomeNotDone {
		t.Errorf("accept of a lookup = %+v, want not done", got)
	}
}

func TestPanicIsUnknownInternal(t *testing.T) { both(t, testPanicIsUnknownInternal) }

func testPanicIsUnknownInternal(t *testing.T, protocol int) {
	book := newLogBook()
	logger := slog.New(slog.NewTextHandler(book, &slog.HandlerOptions{Level: slog.LevelDebug})) // stacks are for debugging
	p := open(t, OpenOptions{Protocol: protocol, Logger: logger})
	r := invoke(t, p, request("panic", `{}`))
	if r.Outcome != sdk.OutcomeUnknown || r.Code != sdk.CodeInternal || !strings.Contains(r.Message, "out of cheese") {
		t.Errorf("reply = %+v, want unknown internal", r)
	}
	book.await(t, "main_test.go") // the stack
	if r := invoke(t, p, request("echo", `{}`)); r.Outcome != sdk.OutcomeResult {
		t.Errorf("call after a panic = %+v", r)
	}
}

// S30: a dead agent gives no reply, and nobody waits for one.
func TestCrashMidCallIsAgentLost(t *testing.T) { both(t, testCrashMidCallIsAgentLost) }

func testCrashMidCallIsAgentLost(t *testing.T, protocol int) {
	p := open(t, OpenOptions{Protocol: protocol})
	r := invoke(t, p, request("crash", `{}`))
	if r.Outcome != sdk.OutcomeUnknown || r.Code != sdk.CodeAgentLost {
		t.Errorf("reply = %+v, want unknown agent_lost", r)
	}
	<-p.Done()
	if err := p.Err(); !errors.Is(err, ErrExited) || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("Err = %v, want exit status 3", err)
	}
	_, err := p.Invoke(t.Context(), request("echo", `{}`), nil)
	if !errors.Is(err, ErrNotSent) || !errors.Is(err, ErrExited) {
		t.Errorf("Invoke after the end = %v, want ErrNotSent and ErrExited", err)
	}
	if err := p.Ping(t.Context()); !errors.Is(err, ErrExited) {
		t.Errorf("Ping after the end = %v, want ErrExited", err)
	}
}

// S28: when complete-by passes there is no reply, whatever the agent does.
func TestDeadlineEndsTheCallWithoutReply(t *testing.T) { both(t, testDeadlineEndsTheCallWithoutReply) }

func testDeadlineEndsTheCallWithoutReply(t *testing.T, protocol int) {
	p := open(t, OpenOptions{Protocol: protocol})
	for _, action := range []string{"slow", "stubborn"} {
		t.Run(action, func(t *testing.T) {
			req := request(action, `{"ms":60000}`)
			req.CompleteBy = time.Now().Add(150 * time.Millisecond)
			start := time.Now()
			reply, err := p.Invoke(t.Context(), req, nil)
			if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrNotSent) {
				t.Errorf("Invoke = %+v, %v; want DeadlineExceeded", reply, err)
			}
			if reply.Outcome != sdk.OutcomeInvalid {
				t.Errorf("reply = %+v, want none", reply)
			}
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("Invoke took %s", took)
			}
		})
	}
	t.Run("passed before", func(t *testing.T) {
		req := request("echo", `{}`)
		req.CompleteBy = time.Now().Add(-time.Millisecond)
		if _, err := p.Invoke(t.Context(), req, nil); !errors.Is(err, ErrNotSent) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Invoke = %v, want ErrNotSent and DeadlineExceeded", err)
		}
	})
}

func TestCancelReachesTheAgent(t *testing.T) { both(t, testCancelReachesTheAgent) }

func testCancelReachesTheAgent(t *testing.T, protocol int) {
	p := open(t, OpenOptions{Protocol: protocol, CancelGrace: 10 * time.Second})
	ctx, cancel := context.WithCancel(t.Context())
	working := func(sdk.Event) { cancel() }
	start := time.Now()
	reply, err := p.Invoke(ctx, request("slow", `{"ms":30000}`), working)
	if err != nil || reply.Outcome != sdk.OutcomeUnknown || reply.Code != sdk.CodeAborted {
		t.Errorf("Invoke = %+v, %v; want the agent's own word that it stopped", reply, err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("the agent took %s to stop", took)
	}
	if _, err := p.Invoke(ctx, request("echo", `{}`), nil); !errors.Is(err, ErrNotSent) || !errors.Is(err, context.Canceled) {
		t.Errorf("Invoke with an ended context = %v, want ErrNotSent and Canceled", err)
	}
}

func TestCancelOfAnAgentThatDoesNotListen(t *testing.T) {
	both(t, testCancelOfAnAgentThatDoesNotListen)
}

func testCancelOfAnAgentThatDoesNotListen(t *testing.T, protocol int) {
	p := open(t, OpenOptions{Protocol: protocol, CancelGrace: 100 * time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	start := time.Now()
	_, err := p.Invoke(ctx, request("stubborn", `{"ms":30000}`), func(sdk.Event) { cancel() })
	if !errors.Is(err, context.Canceled) || errors.Is(err, ErrNotSent) {
		t.Errorf("Invoke = %v, want Canceled", err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("Invoke took %s after the cancel", took)
	}
}

func TestKillEndsTheProcessGroup(t *testing.T) { both(t, testKillEndsTheProcessGroup) }

func testKillEndsTheProcessGroup(t *testing.T, protocol int) {
	p := open(t, OpenOptions{Protocol: protocol})
	var spawned struct{ Pid int }
	if err := json.Unmarshal(invoke(t, p, request("spawn", `{}`)).Output, &spawned); err != nil {
		t.Fatal(err)
	}
	lost := make(chan sdk.Reply, 1)
	working := make(chan struct{}, 1000)
	go func() {
		reply, err := p.Invoke(context.WithoutCancel(t.Context()), request("slow", `{"ms":30000}`), func(sdk.Event) { working <- struct{}{} })
		if err != nil {
			reply.Message = err.Error()
		}
		lost <- reply
	}()
	<-working
	p.Kill()
	<-p.Done()
	if r := <-lost; r.Outcome != sdk.OutcomeUnknown || r.Code != sdk.CodeAgentLost {
		t.Errorf("call that was out = %+v, want unknown agent_lost", r)
	}
	awaitGone(t, "the agent's child", spawned.Pid, 2*time.Second)
}

// A child that ignores SIGTERM and has left the group, with a session of its own,
// ends with the agent, however that ends.
func TestEscapedChildEndsWithItsAgent(t *testing.T) {
	for name, end := range map[string]func(p *Process){
		"closed":  func(p *Process) { _ = p.Close() },
		"killed":  func(p *Process) { p.Kill() },
		"crashed": func(p *Process) { _, _ = p.Invoke(context.Background(), request("crash", `{}`), nil) },
	} {
		t.Run(name, func(t *testing.T) {
			p := open(t, OpenOptions{})
			var child struct{ Pid int }
			if err := json.Unmarshal(invoke(t, p, request("escape", `{}`)).Output, &child); err != nil {
				t.Fatal(err)
			}
			if !alive(child.Pid) {
				t.Fatalf("the child %d does not run", child.Pid)
			}
			end(p)
			<-p.Done()
			if alive(child.Pid) {
				_ = syscall.Kill(child.Pid, syscall.SIGKILL)
				t.Errorf("the child (pid %d) outlived its agent", child.Pid)
			}
		})
	}
}

// The interpreter of a script opens the script some time after the start.
func TestScriptIsAnAgent(t *testing.T) {
	dir := t.TempDir()
	interpreter, path := filepath.Join(dir, "interpreter"), filepath.Join(dir, "engine-agent-script")
	for name, text := range map[string]string{
		interpreter: "#!/bin/sh\nsleep 0.3\nexec /bin/sh \"$@\"\n",
		path:        "#!" + interpreter + "\nexec '" + os.Args[0] + "' \"$@\"\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	temp := t.TempDir()
	p := open(t, OpenOptions{Path: path, Checksum: sum[:], TempDir: temp, Env: []string{"PATH=" + os.Getenv("PATH")}})
	if r := invoke(t, p, request("echo", `{}`)); r.Outcome != sdk.OutcomeResult {
		t.Errorf("echo = %+v", r)
	}
	if copies, err := filepath.Glob(filepath.Join(temp, "*", "engine-agent-*")); err != nil || len(copies) > 0 {
		t.Errorf("after the handshake the copy is left behind: %v, %v", copies, err)
	}
	d, err := Describe(t.Context(), DescribeOptions{Path: path, Checksum: sum[:], TempDir: temp})
	if err != nil || d.Name != "test" {
		t.Errorf("describe: %+v, %v", d, err)
	}
}

// A binary is described from a private copy that has the checksum, as it is
// started: no other file is run.
func TestDescribeChecksum(t *testing.T) {
	temp, ran := t.TempDir(), filepath.Join(t.TempDir(), "ran")
	path := script(t, "echo > '"+ran+"'")
	sum := sha256.Sum256([]byte("another file"))
	_, err := Describe(t.Context(), DescribeOptions{Path: path, Checksum: sum[:], TempDir: temp})
	wantStartError(t, err, ReasonChecksum, "has changed", "engine init")
	if _, err := os.Stat(ran); err == nil {
		t.Error("the file was run")
	}
	if left, _ := os.ReadDir(temp); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	// Where no copy can be made the open file is checked and run.
	nowhere := filepath.Join(temp, "nowhere")
	_, err = Describe(t.Context(), DescribeOptions{Path: path, Checksum: sum[:], TempDir: nowhere})
	wantStartError(t, err, ReasonChecksum, "has changed", "engine init")
	if _, err := os.Stat(ran); err == nil {
		t.Error("the file was run")
	}
	for _, path := range []string{os.Args[0], script(t, "exec '"+os.Args[0]+"' \"$@\"")} {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		right := sha256.Sum256(data)
		if d, err := Describe(t.Context(), DescribeOptions{Path: path, Checksum: right[:], TempDir: nowhere}); err != nil || d.Name != "test" {
			t.Errorf("describe of %s without a copy: %+v, %v", path, d, err)
		}
	}
}

func TestCloseOfAFrozenAgent(t *testing.T) {
	p := open(t, OpenOptions{CloseGrace: 200 * time.Millisecond})
	if err := syscall.Kill(p.Pid(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	awaitStopped(t, p.Pid()) // a signal takes its time to arrive
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := p.Ping(ctx); err == nil {
		t.Error("Ping of a frozen agent succeeded")
	}
	closed := make(chan error, 1)
	go func() { closed <- p.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Errorf("Close: %v", err)
		}
	case <-time.After(20 * time.Second):
		p.Kill()
		t.Error("Close does not end")
	}
}

// T13: each of the two ways in which an agent learns of its engine's end is
// enough, also while an action is at work that does not listen.
func TestAgentEndsWhen(t *testing.T) { both(t, testAgentEndsWhen) }

func testAgentEndsWhen(t *testing.T, protocol int) {
	for name, lose := range map[string]func(p *Process) error{
		"the control stream breaks":     func(p *Process) error { p.release(); return nil },
		"the parent-death signal comes": func(p *Process) error { return syscall.Kill(p.Pid(), syscall.SIGTERM) },
	} {
		t.Run(name, func(t *testing.T) {
			p := open(t, OpenOptions{Protocol: protocol})
			working := make(chan struct{}, 10_000)
			done := make(chan sdk.Reply, 1)
			go func() {
				reply, _ := p.Invoke(context.WithoutCancel(t.Context()), request("stubborn", `{"ms":30000}`), func(sdk.Event) { working <- struct{}{} })
				done <- reply
			}()
			<-working
			start := time.Now()
			if err := lose(p); err != nil {
				t.Fatal(err)
			}
			select {
			case <-p.Done():
			case <-time.After(20 * time.Second):
				t.Fatal("the agent does not end")
			}
			if took := time.Since(start); took > 2*time.Second {
				t.Errorf("the agent ended after %s, want at most 2s", took)
			}
			if r := <-done; r.Code != sdk.CodeAgentLost {
				t.Errorf("call that was out = %+v, want agent_lost", r)
			}
		})
	}
}

// T13: an engine that is killed leaves neither agent nor agent's child behind,
// and no directory of theirs.
func TestAgentEndsWithItsEngine(t *testing.T) {
	engine := exec.Command(os.Args[0])
	temp := t.TempDir()
	engine.Env = append(os.Environ(), envMode+"=engine", "TMPDIR="+temp)
	out, err := engine.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Process.Kill() }) // should the test end early
	line := firstLineOf(t, out)
	var agent int
	var child, escaped struct{ Pid int }
	words := strings.Fields(line)
	if len(words) != 3 {
		t.Fatalf("engine said %q", line)
	}
	_, err = fmt.Sscan(words[0], &agent)
	if err = errors.Join(err, json.Unmarshal([]byte(words[1]), &child), json.Unmarshal([]byte(words[2]), &escaped)); err != nil {
		t.Fatalf("engine said %q: %v", line, err)
	}
	if !alive(agent) || !alive(child.Pid) || !alive(escaped.Pid) {
		t.Fatalf("agent %d or its children %d and %d do not run", agent, child.Pid, escaped.Pid)
	}
	if err := engine.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = engine.Wait()
	awaitGone(t, "the agent", agent, 2*time.Second)
	awaitGone(t, "the agent's child", child.Pid, 500*time.Millisecond)
	awaitGone(t, "the agent's child in a session of its own", escaped.Pid, 2*time.Second)
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// Many starts at once: none finds its own checked copy busy.
func TestOpenManyAtOnce(t *testing.T) {
	path, _, sum := inventoryWithSum(t)
	errs := make(chan error, 12)
	for range cap(errs) {
		go func() {
			p, err := Open(t.Context(), OpenOptions{Path: path, Checksum: sum})
			if err == nil {
				err = p.Close()
			}
			errs <- err
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

func inventoryWithSum(t *testing.T) (path string, data, sum []byte) {
	t.Helper()
	path = buildInventory(t)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256(data)
	return path, data, digest[:]
}

func TestChecksum(t *testing.T) {
	path, data, sum := inventoryWithSum(t)
	p, err := Open(t.Context(), OpenOptions{Path: path, Checksum: sum})
	if err != nil {
		t.Fatalf("Open with the right checksum: %v", err)
	}
	r, err := p.Invoke(t.Context(), request("reserve", `{"sku":"lamp"}`), nil)
	if err != nil || string(r.Output) != `{"reservation_id":"res-key-1"}` {
		t.Errorf("reserve = %s %+v, %v", r.Output, r, err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(path, append(data, '!'), 0o755); err != nil {
		t.Fatal(err)
	}
	temp := t.TempDir()
	_, err = Open(t.Context(), OpenOptions{Path: path, Checksum: sum, TempDir: temp})
	wantStartError(t, err, ReasonChecksum, "has changed", "engine init")
	if left, _ := os.ReadDir(temp); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
