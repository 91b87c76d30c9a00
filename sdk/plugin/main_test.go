package plugin

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/saga-engine/engine/sdk"
)

// envMode makes the test binary play another part: an agent, or an engine that
// starts one.
const envMode = "PLUGIN_TEST_MODE"

func TestMain(m *testing.M) {
	mode := os.Getenv(envMode)
	switch {
	case len(os.Args) > 1 && os.Args[1] == "describe":
		fmt.Println("printed before describe")
		Serve(testAgent())
	case mode == "":
		os.Exit(m.Run())
	case mode == "engine":
		actEngine()
	case mode == "starting": // an engine whose agent never gets ready
		_, err := Open(context.Background(), OpenOptions{Path: os.Getenv("AGENT"), Env: []string{"PATH=" + os.Getenv("PATH")}, StartTimeout: 10 * time.Minute})
		fmt.Println(err)
	case mode == "hang":
		select {}
	case mode == "exit":
		fmt.Fprintln(os.Stderr, "no licence found")
		os.Exit(3)
	case mode == "future":
		serveFuture()
	case mode == "rogue":
		serveRogue()
	case mode == "old":
		serveOld()
	case mode == "careless":
		os.Setenv(envLimit, "100000000") // as if the SDK did not check
		Serve(testAgent())
	case mode == "chatty":
		fmt.Println("printed before Serve")
		go func() {
			for range lineBurst / 2 { // more would be dropped, and so would the lines that the test waits for
				fmt.Println("printed during the handshake")
			}
		}()
		Serve(testAgent())
	default:
		Serve(testAgent())
	}
}

// serveFuture speaks a version of the protocol that does not exist yet.
func serveFuture() {
	os.Stdout = realStdout
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig:  handshake(),
		VersionedPlugins: map[int]goplugin.PluginSet{7: {pluginName: &agentPlugin{server: &server{}}}},
		GRPCServer:       func(opts []grpc.ServerOption) *grpc.Server { return grpc.NewServer(opts...) },
	})
}

// serveOld is an agent that was built before there were batches: its service has
// no Session.
func serveOld() {
	os.Stdout = realStdout
	a := testAgent()
	schema, err := a.Schema()
	if err != nil {
		panic(err)
	}
	logger := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	s := newServer(a, schema, newLife(""), logger, DefaultPayloadLimit)
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig:  handshake(),
		VersionedPlugins: map[int]goplugin.PluginSet{ProtocolUnary: {pluginName: &agentPlugin{server: s}}},
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(opts, grpc.ChainStreamInterceptor(
				func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
					if strings.HasSuffix(info.FullMethod, "/Session") {
						return errors.New("this agent knows no Session")
					}
					return next(srv, stream)
				}))...)
		},
	})
}

// actEngine opens an agent that starts a child, prints both process ids, and
// waits to be killed.
func actEngine() {
	p, err := Open(context.Background(), OpenOptions{Path: os.Args[0], Env: []string{envMode + "=agent"}})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	req := request("spawn", `{}`)
	reply, err := p.Invoke(context.Background(), req, nil)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	escaped, err := p.Invoke(context.Background(), request("escape", `{}`), nil)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Printf("%d %s %s\n", p.Pid(), reply.Output, escaped.Output)
	go func() { _, _ = p.Invoke(context.Background(), request("stubborn", `{"ms":60000}`), nil) }()
	select {}
}

type msIn struct {
	Ms int `agent:"ms"`
}

type anyIn struct {
	Value any `agent:"value,optional"`
}

type anyOut struct {
	Value any `agent:"value"`
}

type textOut struct {
	Text string `agent:"text"`
}

type pidOut struct {
	Pid int `agent:"pid"`
}

// testAgent is an agent with all the habits, good and bad.
func testAgent() *sdk.Agent {
	a := sdk.New("test", "1.2.3").Doc("Does what tests need.")
	type config struct {
		Word string `agent:"word,optional" default:"none"`
	}
	word := ""
	sdk.Configure(a, func(_ context.Context, c config) error {
		if c.Word == "bad" {
			return errors.New("the word is bad")
		}
		word = c.Word
		return nil
	})
	sdk.Action(a, "word", func(context.Context, *sdk.Call, sdk.None) (textOut, error) { return textOut{word}, nil })
	sdk.Action(a, "echo", func(_ context.Context, _ *sdk.Call, in anyIn) (anyOut, error) { return anyOut(in), nil })
	sdk.Action(a, "call", func(_ context.Context, c *sdk.Call, _ sdk.None) (anyOut, error) {
		n, blob, ok := c.LastCheckpoint()
		return anyOut{map[string]any{
			"key": c.IdempotencyKey, "forward": c.ForwardKey, "run": c.Run, "workflow": c.Workflow, "step": c.Step,
			"attempt": c.Attempt, "fence": c.Fence, "purpose": c.Purpose,
			"checkpoint": fmt.Sprintf("%d %s %t", n, blob, ok), "complete_by": c.CompleteBy.UTC().Format(time.RFC3339),
		}}, nil
	})
	sdk.Action(a, "environment", func(context.Context, *sdk.Call, sdk.None) (anyOut, error) { return anyOut{os.Environ()}, nil })
	sdk.Action(a, "stdin", func(context.Context, *sdk.Call, sdk.None) (textOut, error) {
		data, err := io.ReadAll(os.Stdin)
		return textOut{string(data)}, err
	})
	sdk.Action(a, "print", func(_ context.Context, c *sdk.Call, _ sdk.None) (sdk.None, error) {
		fmt.Println("printed to stdout")
		fmt.Fprintln(os.Stderr, "printed to stderr")
		c.Logger.Warn("logged", "answer", 42)
		return sdk.None{}, nil
	})
	sdk.Action(a, "big", func(_ context.Context, _ *sdk.Call, in msIn) (textOut, error) {
		return textOut{strings.Repeat("x", in.Ms)}, nil
	})
	sdk.Action(a, "panic", func(context.Context, *sdk.Call, sdk.None) (sdk.None, error) { panic("out of cheese") })
	sdk.Action(a, "crash", func(context.Context, *sdk.Call, sdk.None) (sdk.None, error) {
		fmt.Fprintln(os.Stderr, "going down")
		os.Exit(3)
		return sdk.None{}, nil
	})
	sdk.Action(a, "lastwords", func(_ context.Context, _ *sdk.Call, in msIn) (sdk.None, error) {
		for n := range in.Ms {
			fmt.Printf("last word %d to stdout\n", n)
			fmt.Fprintf(os.Stderr, "last word %d to stderr\n", n)
		}
		os.Exit(3)
		return sdk.None{}, nil
	})
	sdk.Action(a, "fail", func(context.Context, *sdk.Call, sdk.None) (sdk.None, error) {
		return sdk.None{}, &sdk.Failure{Code: "refused", Message: "no", Permanent: true, RetryAfter: time.Minute, Data: map[string]int{"left": 3}}
	}, sdk.Errors("refused"))
	sdk.Action(a, "slow", slow, sdk.Progress(), sdk.Cancellable())
	sdk.Action(a, "stubborn", func(_ context.Context, c *sdk.Call, in msIn) (sdk.None, error) {
		for end := time.Now().Add(time.Duration(in.Ms) * time.Millisecond); time.Now().Before(end); {
			<-time.After(10 * time.Millisecond)
			c.Heartbeat(0.5, "still here")
		}
		return sdk.None{}, nil
	}, sdk.Heartbeats())
	sdk.Action(a, "checkpoints", func(_ context.Context, c *sdk.Call, _ sdk.None) (sdk.None, error) {
		for n := range int64(3) {
			if err := c.Checkpoint(n, []byte{byte('a' + n)}); err != nil {
				return sdk.None{}, err
			}
		}
		return sdk.None{}, nil
	}, sdk.Checkpoints())
	sdk.Action(a, "spawn", func(context.Context, *sdk.Call, sdk.None) (pidOut, error) {
		cmd := exec.Command("/bin/sleep", "600")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		err := cmd.Start()
		if err != nil {
			return pidOut{}, err
		}
		go func() { _ = cmd.Wait() }()
		return pidOut{cmd.Process.Pid}, nil
	})
	// A child that ignores SIGTERM in a session of its own.
	sdk.Action(a, "escape", func(context.Context, *sdk.Call, sdk.None) (pidOut, error) {
		cmd := exec.Command("/bin/sh", "-c", "trap '' TERM; echo ready; exec sleep 600")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			return pidOut{}, err
		}
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			return pidOut{}, err
		}
		go func() { _ = cmd.Wait() }()
		return pidOut{cmd.Process.Pid}, nil
	})
	addHogs(a)
	return a
}

func slow(ctx context.Context, c *sdk.Call, in msIn) (textOut, error) {
	end := time.After(time.Duration(in.Ms) * time.Millisecond)
	for {
		select {
		case <-end:
			return textOut{"done"}, nil
		case <-ctx.Done():
			return textOut{}, ctx.Err()
		case <-time.After(10 * time.Millisecond):
			c.Heartbeat(0.25, "working")
		}
	}
}

// request is a call with all the time in the world.
func request(action, input string) sdk.Request {
	return sdk.Request{
		Action: action, Purpose: sdk.PurposeDo, Input: json.RawMessage(input), IdempotencyKey: "key-1",
		CompleteBy: time.Now().Add(time.Minute), Run: "run-1", Workflow: "w", Step: "s", Attempt: 1, Fence: 1,
	}
}

// times picks the number of rounds: few, or those of the fault programme, as in
// `make chaos`, or a part of them.
func times(short, long int) int {
	switch os.Getenv("CHAOS") {
	case "full":
		return long
	case "part":
		return max(short, long/7)
	}
	return short
}

// both runs a test over each of the ways in which calls travel.
func both(t *testing.T, test func(t *testing.T, protocol int)) {
	for _, way := range []struct {
		name     string
		protocol int
	}{{"unary", ProtocolUnary}, {"batched", ProtocolBatched}} {
		t.Run(way.name, func(t *testing.T) { test(t, way.protocol) })
	}
}

// open starts the test binary as an agent.
func open(t *testing.T, o OpenOptions) *Process {
	t.Helper()
	if o.Path == "" {
		o.Path = os.Args[0]
	}
	o.Env = append(o.Env, envMode+"=agent")
	p, err := Open(t.Context(), o)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func invoke(t *testing.T, p *Process, req sdk.Request) sdk.Reply {
	t.Helper()
	reply, err := p.Invoke(t.Context(), req, nil)
	if err != nil {
		t.Fatalf("Invoke(%s): %v", req.Action, err)
	}
	return reply
}

// logBook collects log records as text lines.
type logBook struct {
	mu   sync.Mutex
	text strings.Builder
	more chan struct{}
}

func newLogBook() *logBook { return &logBook{more: make(chan struct{}, 1)} }

func (b *logBook) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case b.more <- struct{}{}:
	default:
	}
	return b.text.Write(p)
}

func (b *logBook) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func (b *logBook) logger() *slog.Logger { return slog.New(slog.NewTextHandler(b, nil)) }

// await waits until the log contains text.
func (b *logBook) await(t *testing.T, text string) {
	t.Helper()
	timeout := time.After(10 * time.Second)
	for !strings.Contains(b.String(), text) {
		select {
		case <-b.more:
		case <-timeout:
			t.Fatalf("log has no %q:\n%s", text, b)
		}
	}
}

// script writes an executable shell script.
func script(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "engine-agent-script")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// alive reports whether a process exists and is not a zombie.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.Contains(string(stat), ") Z ")
}

// awaitGone waits until a process has ended.
func awaitGone(t *testing.T, what string, pid int, limit time.Duration) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for start := time.Now(); alive(pid); <-tick.C {
		if time.Since(start) > limit {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Fatalf("%s (pid %d) still runs after %s", what, pid, limit)
		}
	}
}

// awaitStopped waits until a process stands still.
func awaitStopped(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; <-time.After(10 * time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(stat), ") T ") {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("process %d does not stop: %s", pid, stat)
		}
	}
}

// buildInventory compiles the documentation's agent.
func buildInventory(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "engine-agent-inventory")
	out, err := exec.Command("go", "build", "-o", path, "./testdata/inventory").CombinedOutput()
	if err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

// firstLineOf reads one line of a process's output.
func firstLineOf(t *testing.T, r io.Reader) string {
	t.Helper()
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatalf("read: %v (got %q)", err, line)
	}
	return strings.TrimSpace(line)
}
