package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/saga-engine/engine/sdk"
	pb "github.com/saga-engine/engine/sdk/plugin/internal/proto"
	"github.com/saga-engine/engine/sdk/schema"
)

// rogue speaks the protocol itself, without the SDK, and keeps to none of its
// rules; what it does is the action's name.
type rogue struct {
	goplugin.NetRPCUnsupportedPlugin
	pb.UnimplementedAgentServer
}

// rogueActions are what it claims to do.
func rogueActions() map[string]schema.Action {
	out := []schema.Field{{Name: "id", Type: schema.Type{Kind: schema.KindString}}}
	actions := map[string]schema.Action{}
	for _, name := range []string{
		"good", "twice", "wrong_call", "after_the_end", "empty_events", "nothing", "error", "late", "late_garbage", "dies", "quits",
		"random_stdout", "stderr_flood", "long_line", "huge", "stranger", "hangs",
	} {
		actions[name] = schema.Action{Outputs: out}
	}
	return actions
}

func serveRogue() {
	os.Stdout = realStdout
	r := &rogue{}
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig:  handshake(),
		VersionedPlugins: map[int]goplugin.PluginSet{ProtocolUnary: {pluginName: r}, ProtocolBatched: {pluginName: r}},
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(opts, grpc.MaxSendMsgSize(1<<30))...)
		},
	})
}

func (r *rogue) GRPCServer(_ *goplugin.GRPCBroker, s *grpc.Server) error {
	pb.RegisterAgentServer(s, r)
	return nil
}

func (r *rogue) GRPCClient(context.Context, *goplugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("not a host")
}

func (r *rogue) Describe(context.Context, *pb.DescribeRequest) (*pb.DescribeReply, error) {
	data, err := json.Marshal(schema.Schema{Name: "rogue", Version: "1.0.0", Actions: rogueActions()})
	return &pb.DescribeReply{Schema: data}, err
}

func (r *rogue) Control(stream pb.Agent_ControlServer) error {
	if err := stream.Send(&pb.ControlEvent{Pid: int64(os.Getpid())}); err != nil {
		return err
	}
	<-stream.Context().Done()
	os.Exit(1)
	return nil
}

func (r *rogue) Invoke(stream pb.Agent_InvokeServer) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	return r.act(first.GetCall(), stream.Send)
}

// Session does for each call what Invoke does. It uses the generated code, so
// that the engine's own is seen to agree with it.
func (r *rogue) Session(stream pb.Agent_SessionServer) error {
	if err := stream.Send(&pb.ResultBatch{}); err != nil {
		return err
	}
	var mu sync.Mutex // protects stream.Send
	send := func(results ...*pb.Result) error {
		mu.Lock()
		defer mu.Unlock()
		return stream.Send(&pb.ResultBatch{Results: results})
	}
	broken := make(chan error, 1)
	go func() {
		for {
			batch, err := stream.Recv()
			if err != nil {
				broken <- err
				return
			}
			for _, inv := range batch.GetInvocations() {
				if inv.GetCall() == nil {
					continue
				}
				go func() {
					if inv.GetCall().GetAction() == "stranger" { // says things of calls that there are not
						for _, id := range []uint64{0, inv.GetId() + 1, 1 << 63} {
							_ = send(&pb.Result{Id: id, Event: &pb.Result_Reply{Reply: replyToWire(sdk.Reply{Outcome: sdk.OutcomeFailed, Code: "denied"})}})
						}
					}
					err := r.act(inv.GetCall(), func(ev *pb.InvokeEvent) error {
						result := &pb.Result{Id: inv.GetId()}
						switch ev := ev.GetEvent().(type) {
						case *pb.InvokeEvent_Heartbeat:
							result.Event = &pb.Result_Heartbeat{Heartbeat: ev.Heartbeat}
						case *pb.InvokeEvent_Checkpoint:
							result.Event = &pb.Result_Checkpoint{Checkpoint: ev.Checkpoint}
						case *pb.InvokeEvent_Reply:
							result.Event = &pb.Result_Reply{Reply: ev.Reply}
						}
						return send(result)
					})
					if err != nil {
						broken <- err
					}
				}()
			}
		}
	}()
	return <-broken
}

// act does what the call is named after.
func (r *rogue) act(call *pb.Call, send func(*pb.InvokeEvent) error) error {
	answer := func(text string) error {
		return send(replyToEvent(sdk.Reply{Outcome: sdk.OutcomeResult, Output: json.RawMessage(text)}))
	}
	good := `{"id":"x"}`
	switch call.GetAction() {
	case "twice":
		for range 5 {
			if err := answer(good); err != nil {
				return nil // the engine has what it wanted
			}
		}
		return send(replyToEvent(sdk.Reply{Outcome: sdk.OutcomeFailed, Code: "denied"}))
	case "wrong_call": // what another call would answer
		return answer(`{"count":7}`)
	case "after_the_end":
		err := answer(good)
		for range 100 {
			if err != nil {
				return nil
			}
			err = send(eventToWire(sdk.Checkpoint{Number: 99, Blob: []byte("late")}))
		}
		return nil
	case "empty_events":
		for range 100 {
			if err := send(&pb.InvokeEvent{}); err != nil {
				return err
			}
		}
		return answer(good)
	case "nothing":
		return nil
	case "hangs":
		select {}
	case "error":
		return status.Error(codes.PermissionDenied, "go away\x1b[31m")
	case "late", "late_garbage":
		for time.Now().Before(time.Unix(0, call.GetCompleteByUnixNano()).Add(300 * time.Millisecond)) {
			<-time.After(10 * time.Millisecond)
			if err := send(eventToWire(sdk.Heartbeat{Note: "still at it"})); err != nil {
				return err
			}
		}
		if call.GetAction() == "late_garbage" {
			return answer(`{"count":7}`)
		}
		return answer(good)
	case "dies": // while its reply is on its way
		if err := answer(`{"id":"` + strings.Repeat("x", 900<<10) + `"}`); err != nil {
			return err
		}
		os.Exit(3)
	case "quits":
		os.Exit(0)
	case "random_stdout":
		data := make([]byte, 1<<20)
		rnd := rand.NewChaCha8([32]byte{1})
		for range 4 {
			_, _ = rnd.Read(data)
			_, _ = realStdout.Write(data)
		}
	case "stderr_flood":
		line := append(bytes.Repeat([]byte("flood "), 50), '\n')
		for range 64 << 20 / len(line) {
			_, _ = os.Stderr.Write(line)
		}
	case "long_line":
		part := bytes.Repeat([]byte("x"), 1<<20)
		for range 100 {
			_, _ = os.Stderr.Write(part)
		}
		_, _ = os.Stderr.Write([]byte("\n"))
	case "huge":
		return answer(`{"id":"` + strings.Repeat("x", 200<<20) + `"}`)
	}
	return answer(good)
}

func openRogue(t *testing.T, protocol int, book *logBook) *Process {
	t.Helper()
	// A reply of 200 MiB takes several times as much in an agent that is built with the race
	// detector. These tests are not about the agent's memory.
	o := OpenOptions{Path: os.Args[0], Env: []string{envMode + "=rogue"}, Protocol: protocol, MaxMemory: 32 << 30}
	if book != nil {
		o.Logger = book.logger()
	}
	p, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// T11, S35: whatever an agent says, a call has one outcome; only a valid reply
// to this very call is a result, and the process is good for the next call
// where it still lives.
func TestRogueReplies(t *testing.T) { both(t, testRogueReplies) }

func testRogueReplies(t *testing.T, protocol int) {
	for name, want := range map[string]struct {
		outcome sdk.Outcome
		code    string
	}{
		"good":          {sdk.OutcomeResult, ""},
		"twice":         {sdk.OutcomeResult, ""},
		"after_the_end": {sdk.OutcomeResult, ""},
		"empty_events":  {sdk.OutcomeResult, ""},
		"wrong_call":    {sdk.OutcomeUnknown, sdk.CodeBadReply},
		"huge":          {sdk.OutcomeUnknown, sdk.CodeBadReply},
		"error":         {sdk.OutcomeUnknown, sdk.CodeAgentLost},
		"stranger":      {sdk.OutcomeResult, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := openRogue(t, protocol, nil)
			for n := range times(3, 140) { // a thousand of all kinds
				events := 0
				reply, err := p.Invoke(t.Context(), request(name, `{}`), func(sdk.Event) { events++ })
				if err != nil || reply.Outcome != want.outcome || reply.Code != want.code {
					t.Errorf("reply = %.200v, %v, want %v %s", reply, err, want.outcome, want.code)
				}
				if events > 0 {
					t.Errorf("%d events, want none", events)
				}
				if name == "huge" && n == times(0, 10) {
					break // each is 200 MiB
				}
			}
			if r := invoke(t, p, request("good", `{}`)); r.Outcome != sdk.OutcomeResult {
				t.Errorf("next call = %+v", r)
			}
		})
	}
}

// T11: a call that ends without a reply has none: on a stream of its own that shows at
// once, in a session at complete-by.
func TestRogueSaysNothing(t *testing.T) {
	if r := invoke(t, openRogue(t, ProtocolUnary, nil), request("nothing", `{}`)); r.Outcome != sdk.OutcomeUnknown || r.Code != sdk.CodeBadReply {
		t.Errorf("reply = %+v, want unknown bad_reply", r)
	}
	req := request("nothing", `{}`)
	req.CompleteBy = time.Now().Add(100 * time.Millisecond)
	if r, err := openRogue(t, ProtocolBatched, nil).Invoke(t.Context(), req, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("reply = %+v, %v, want DeadlineExceeded", r, err)
	}
}

// T11: what breaks a session hurts the calls that are out: their outcome is unknown.
// Afterwards calls go one by one, and only those that break a rule are hurt.
func TestRogueBreaksItsSession(t *testing.T) {
	for action, code := range map[string]string{"error": sdk.CodeAgentLost, "huge": sdk.CodeBadReply} {
		t.Run(action, func(t *testing.T) {
			book := newLogBook()
			p := openRogue(t, ProtocolBatched, book)
			ends := make(chan sdk.Reply, 10)
			out := func(action string) {
				p.Start(t.Context(), request(action, `{}`), CallOptions{}, func(r sdk.Reply, err error) {
					if err != nil {
						t.Error(err)
					}
					ends <- r
				})
			}
			for range 5 {
				out("hangs")
			}
			out(action)
			for range 6 {
				if r := <-ends; r.Outcome != sdk.OutcomeUnknown || r.Code != code {
					t.Errorf("reply = %.200v, want unknown %s", r, code)
				}
			}
			book.await(t, "each call has its own stream")
			out(action)
			out("good")
			for range 2 {
				if r := <-ends; r.Outcome == sdk.OutcomeUnknown && r.Code != code || r.Outcome != sdk.OutcomeUnknown && r.Outcome != sdk.OutcomeResult {
					t.Errorf("reply = %.200v", r)
				}
			}
			if p.Err() != nil {
				t.Error("the process has ended")
			}
		})
	}
}

// T11, S28: what comes after complete-by is no reply, whatever it is. It can be
// heard as evidence, once and checked; nothing else of that time is passed on.
func TestRogueLateReply(t *testing.T) { both(t, testRogueLateReply) }

func testRogueLateReply(t *testing.T, protocol int) {
	p := openRogue(t, protocol, nil)
	for name, code := range map[string]string{"late": "", "late_garbage": sdk.CodeBadReply} {
		t.Run(name, func(t *testing.T) {
			late := make(chan sdk.Reply, 10)
			expired := make(chan time.Time, 10)
			req := request(name, `{}`)
			req.CompleteBy = time.Now().Add(time.Second)
			reply, err := p.Call(t.Context(), req, CallOptions{
				OnEvent: func(sdk.Event) {
					if !time.Now().Before(req.CompleteBy.Add(150 * time.Millisecond)) { // one that came in time is passed on a little later
						t.Error("an event after complete-by")
					}
				},
				OnExpired: func() time.Duration { expired <- time.Now(); return time.Minute },
				OnLate:    func(r sdk.Reply) { late <- r },
			})
			if !errors.Is(err, context.DeadlineExceeded) || reply.Outcome != sdk.OutcomeInvalid {
				t.Errorf("reply = %+v, %v, want DeadlineExceeded and none", reply, err)
			}
			if len(late) != 1 || len(expired) != 1 {
				t.Fatalf("%d late replies, expired %d times, want one and one", len(late), len(expired))
			}
			if at := <-expired; at.Before(req.CompleteBy) {
				t.Errorf("expired %s before complete-by", req.CompleteBy.Sub(at))
			}
			if r := <-late; r.Code != code {
				t.Errorf("late reply = %+v, want code %q", r, code)
			}
		})
	}
	t.Run("nobody listens", func(t *testing.T) {
		req := request("hangs", `{}`)
		req.CompleteBy = time.Now().Add(100 * time.Millisecond)
		if _, err := p.Invoke(t.Context(), req, nil); !errors.Is(err, context.DeadlineExceeded) { // or it never ends
			t.Errorf("Invoke = %v, want DeadlineExceeded", err)
		}
	})
	t.Run("not for ever", func(t *testing.T) {
		req := request("hangs", `{}`)
		req.CompleteBy = time.Now().Add(100 * time.Millisecond)
		_, err := p.Call(t.Context(), req, CallOptions{
			OnExpired: func() time.Duration { return 50 * time.Millisecond },
			OnLate:    func(r sdk.Reply) { t.Errorf("late reply %+v", r) },
		})
		if took := time.Since(req.CompleteBy); !errors.Is(err, context.DeadlineExceeded) || took < 50*time.Millisecond {
			t.Errorf("Call = %v, %s after complete-by", err, took)
		}
	})
	if r := invoke(t, p, request("good", `{}`)); r.Outcome != sdk.OutcomeResult {
		t.Errorf("next call = %+v", r)
	}
}

// T10: an agent that dies while its reply is on its way has answered or not;
// there is nothing in between. One that ends in good order has not answered.
func TestRogueDies(t *testing.T) { both(t, testRogueDies) }

func testRogueDies(t *testing.T, protocol int) {
	for range times(10, 1000) {
		p := openRogue(t, protocol, nil)
		r := invoke(t, p, request("dies", `{}`))
		whole := r.Outcome == sdk.OutcomeResult && len(r.Output) == len(`{"id":""}`)+900<<10
		if !whole && (r.Outcome != sdk.OutcomeUnknown || r.Code != sdk.CodeAgentLost) {
			t.Fatalf("reply = %.200v, want all of it or unknown agent_lost", r)
		}
		<-p.Done()
		_ = p.Close()
	}
	p := openRogue(t, protocol, nil)
	if r := invoke(t, p, request("quits", `{}`)); r.Outcome != sdk.OutcomeUnknown || r.Code != sdk.CodeAgentLost {
		t.Errorf("reply = %+v, want unknown agent_lost", r)
	}
	<-p.Done()
	if err := p.Err(); err == nil || !strings.Contains(err.Error(), "exit status 0") {
		t.Errorf("Err = %v, want exit status 0", err)
	}
}

// T11: garbage on the outputs, however much of it, neither breaks a call nor
// fills the engine's memory or log.
func TestRogueOutput(t *testing.T) { both(t, testRogueOutput) }

func testRogueOutput(t *testing.T, protocol int) {
	for _, name := range []string{"random_stdout", "stderr_flood", "long_line"} {
		t.Run(name, func(t *testing.T) {
			book := newLogBook()
			p := openRogue(t, protocol, book)
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			if r := invoke(t, p, request(name, `{}`)); r.Outcome != sdk.OutcomeResult {
				t.Errorf("reply = %+v", r)
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 16<<20 {
				t.Errorf("the heap has grown by %d bytes", grown)
			}
			if n := len(book.String()); n > 4<<20 {
				t.Errorf("%d bytes were logged", n)
			}
			if r := invoke(t, p, request("good", `{}`)); r.Outcome != sdk.OutcomeResult {
				t.Errorf("next call = %+v", r)
			}
		})
	}
}
