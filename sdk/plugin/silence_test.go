package plugin

import (
	"context"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/saga-engine/engine/sdk"
	pb "github.com/saga-engine/engine/sdk/plugin/internal/proto"
)

// countingConn counts what the agent's side sends.
type countingConn struct {
	net.Conn
	received *atomic.Int64
}

func (c countingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.received.Add(int64(n))
	return n, err
}

// serveInProcess serves an agent to a client that counts the bytes it receives.
func serveInProcess(t *testing.T, a *sdk.Agent) (pb.AgentClient, *atomic.Int64) {
	t.Helper()
	schema, err := a.Schema()
	if err != nil {
		t.Fatal(err)
	}
	received := new(atomic.Int64)
	return dial(t, newServer(a, schema, newLife(""), slog.New(slog.DiscardHandler), DefaultPayloadLimit), received), received
}

// dial serves the service in this process and connects to it.
func dial(t *testing.T, agent pb.AgentServer, received *atomic.Int64) pb.AgentClient {
	t.Helper()
	listener := bufconn.Listen(1 << 16)
	s := grpc.NewServer(grpc.ForceServerCodecV2(newCodec()))
	pb.RegisterAgentServer(s, agent)
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	conn, err := grpc.NewClient("passthrough:agent",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			c, err := listener.DialContext(ctx)
			return countingConn{c, received}, err
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return pb.NewAgentClient(conn)
}

// S28: after complete-by not one byte leaves the agent: no heartbeat, no result,
// no error, not even the end of the stream; here towards an engine that is too
// frozen to close the call.
func TestNoBytesAfterTheDeadline(t *testing.T) {
	t.Run("unary", func(t *testing.T) { testNoBytesAfterTheDeadline(t, askAlone) })
	t.Run("batched", func(t *testing.T) { testNoBytesAfterTheDeadline(t, askInSession) })
}

// askAlone makes a call and passes on what is said about it.
func askAlone(t *testing.T, client pb.AgentClient, req sdk.Request, answers chan<- *pb.InvokeEvent) {
	stream, err := client.Invoke(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&pb.InvokeRequest{Request: &pb.InvokeRequest_Call{Call: callToWire(req)}}); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(answers)
		for {
			ev, err := stream.Recv()
			if err != nil {
				return
			}
			answers <- ev
		}
	}()
}

// askInSession does the same in a session. It is an engine of another make, as
// far as the code that writes its messages goes.
func askInSession(t *testing.T, client pb.AgentClient, req sdk.Request, answers chan<- *pb.InvokeEvent) {
	stream, err := client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if hello, err := stream.Recv(); err != nil || hello.GetWindow() != agentWindow || len(hello.GetResults()) != 0 {
		t.Fatalf("first batch = %v, %v, want the window and nothing else", hello, err)
	}
	if err := stream.Send(&pb.InvocationBatch{Invocations: []*pb.Invocation{{Id: 7, Request: &pb.Invocation_Call{Call: callToWire(req)}}}}); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(answers)
		for {
			batch, err := stream.Recv()
			if err != nil {
				return
			}
			for _, r := range batch.GetResults() {
				if r.GetId() != 7 {
					t.Errorf("a result of call %d", r.GetId())
				}
				answers <- asEvent(r)
			}
		}
	}()
}

func testNoBytesAfterTheDeadline(t *testing.T, ask func(*testing.T, pb.AgentClient, sdk.Request, chan<- *pb.InvokeEvent)) {
	for name, work := range map[string]func(ctx context.Context) error{
		"ends with its context": func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		},
		"answers late": func(context.Context) error {
			<-time.After(500 * time.Millisecond)
			return nil
		},
		"fails late": func(context.Context) error {
			<-time.After(500 * time.Millisecond)
			return &sdk.Failure{Code: sdk.CodeDenied}
		},
		"panics late": func(context.Context) error {
			<-time.After(500 * time.Millisecond)
			panic("late")
		},
	} {
		t.Run(name, func(t *testing.T) {
			returned := make(chan struct{})
			a := sdk.New("silent", "1.0.0")
			sdk.Action(a, "work", func(ctx context.Context, c *sdk.Call, _ sdk.None) (sdk.None, error) {
				defer close(returned)
				stop := make(chan struct{})
				stopped := make(chan struct{})
				go func() {
					defer close(stopped)
					for {
						c.Heartbeat(0, "at it")
						select {
						case <-stop:
							return
						case <-time.After(5 * time.Millisecond):
						}
					}
				}()
				defer func() { <-stopped }()
				defer close(stop)
				return sdk.None{}, work(ctx)
			}, sdk.Heartbeats())
			client, received := serveInProcess(t, a)

			req := request("work", `{}`)
			req.CompleteBy = time.Now().Add(250 * time.Millisecond)
			answers := make(chan *pb.InvokeEvent, 1000)
			ask(t, client, req, answers)
			if ev := <-answers; ev.GetHeartbeat() == nil {
				t.Fatalf("first event = %v, want a heartbeat", ev)
			}
			// What was sent before the deadline is on its way for a moment.
			<-time.After(time.Until(req.CompleteBy) + 50*time.Millisecond)
			before := received.Load()
			<-returned
			<-time.After(200 * time.Millisecond)
			if after := received.Load(); after != before {
				t.Errorf("%d bytes after the deadline, want 0", after-before)
			}
			for len(answers) > 0 {
				if ev := <-answers; ev.GetReply() != nil {
					t.Errorf("reply %v, want none", ev.GetReply())
				}
			}
		})
	}
}

// asEvent is what a result says, in the words of a call that goes alone.
func asEvent(r *pb.Result) *pb.InvokeEvent {
	switch ev := r.GetEvent().(type) {
	case *pb.Result_Heartbeat:
		return &pb.InvokeEvent{Event: &pb.InvokeEvent_Heartbeat{Heartbeat: ev.Heartbeat}}
	case *pb.Result_Checkpoint:
		return &pb.InvokeEvent{Event: &pb.InvokeEvent_Checkpoint{Checkpoint: ev.Checkpoint}}
	case *pb.Result_Reply:
		return &pb.InvokeEvent{Event: &pb.InvokeEvent_Reply{Reply: ev.Reply}}
	}
	return &pb.InvokeEvent{}
}

// The numbers of the enums are the same on both sides.
func TestWireEnums(t *testing.T) {
	for got, want := range map[int]int{
		int(pb.Purpose_PURPOSE_DO):             int(sdk.PurposeDo),
		int(pb.Purpose_PURPOSE_UNDO):           int(sdk.PurposeUndo),
		int(pb.Purpose_PURPOSE_LOOKUP):         int(sdk.PurposeLookup),
		100 + int(pb.Outcome_OUTCOME_RESULT):   100 + int(sdk.OutcomeResult),
		100 + int(pb.Outcome_OUTCOME_FAILED):   100 + int(sdk.OutcomeFailed),
		100 + int(pb.Outcome_OUTCOME_UNKNOWN):  100 + int(sdk.OutcomeUnknown),
		100 + int(pb.Outcome_OUTCOME_NOT_DONE): 100 + int(sdk.OutcomeNotDone),
	} {
		if got != want {
			t.Errorf("wire number %d, want %d", got, want)
		}
	}
}
