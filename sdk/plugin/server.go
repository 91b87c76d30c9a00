package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/saga-engine/engine/sdk"
	pb "github.com/saga-engine/engine/sdk/plugin/internal/proto"
	"github.com/saga-engine/engine/sdk/schema"
)

// server is the gRPC service of an agent: the agent's side of the protocol.
type server struct {
	pb.UnimplementedAgentServer
	agent  *sdk.Agent
	schema schema.Schema
	life   *life
	logger *slog.Logger
	limit  int // largest size of an output, in bytes

	controlled func() // called when an engine has opened the control stream, before the first call
}

var _ pb.AgentServer = (*server)(nil)

func newServer(a *sdk.Agent, schema schema.Schema, l *life, logger *slog.Logger, limit int) *server {
	return &server{agent: a, schema: schema, life: l, logger: logger, limit: limit, controlled: func() {}}
}

// Describe returns the agent's schema as JSON.
func (s *server) Describe(context.Context, *pb.DescribeRequest) (*pb.DescribeReply, error) {
	data, err := json.Marshal(s.schema)
	if err != nil {
		return nil, status.Errorf(codes.Internal, "schema: %v", err)
	}
	return &pb.DescribeReply{Schema: data}, nil
}

// Configure passes the configuration to the agent. If the agent refuses the configuration, the
// reply contains the error of the agent.
func (s *server) Configure(ctx context.Context, req *pb.ConfigureRequest) (*pb.ConfigureReply, error) {
	if err := s.agent.Configure(ctx, req.GetConfig()); err != nil {
		return &pb.ConfigureReply{Error: err.Error()}, nil
	}
	return &pb.ConfigureReply{}, nil
}

// Control runs until the control stream ends. The end of the stream means that the engine is
// gone, so Control then ends the process. If a second engine opens a control stream, it gets
// an error.
func (s *server) Control(stream pb.Agent_ControlServer) error {
	if !s.life.connected.CompareAndSwap(false, true) {
		return status.Error(codes.AlreadyExists, "another engine is in control")
	}
	s.controlled()
	err := stream.Send(&pb.ControlEvent{Pid: int64(os.Getpid())})
	for err == nil {
		_, err = stream.Recv()
	}
	go s.life.lost("the control stream ended")
	return nil
}

// Invoke runs one call on its own stream.
func (s *server) Invoke(stream pb.Agent_InvokeServer) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	if first.GetCall() == nil {
		return status.Error(codes.InvalidArgument, "the first message is not a call")
	}
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	go func() {
		// This goroutine ends with the stream. After the request of the call, only a cancel or
		// the end of the stream can arrive. Both mean that the action should stop.
		_, _ = stream.Recv()
		cancel()
	}()

	out := &sender{stream: stream}
	reply, ok := s.agent.Invoke(ctx, callFromWire(first.GetCall()), sdk.InvokeOptions{
		Logger: s.logger,
		// Ignore the error: it means that the stream has ended, and then ctx ends, too.
		OnEvent: func(ev sdk.Event) { _ = out.send(eventToWire(ev)) },
		Ended:   s.life.begin(cancel),
	})
	if !ok {
		// The agent must not send anything now (S28). If this method returned now, gRPC would send
		// the end of the stream. So wait until the engine has closed the stream.
		<-stream.Context().Done()
		return nil
	}
	return out.send(replyToEvent(s.fit(reply)))
}

// fit returns the reply if it is not too large. If the data of a definite failure are too large, it
// leaves the data out and says so at the beginning of the message: the failure itself stays
// definite. It replaces a result that is too large by an unknown outcome with sdk.CodeBadReply,
// because the error of gRPC would not name the cause.
func (s *server) fit(reply sdk.Reply) sdk.Reply {
	if len(reply.Output) <= s.limit {
		return reply
	}
	if reply.Outcome == sdk.OutcomeFailed {
		note := fmt.Sprintf("(without its data of %d bytes, because the limit is %d)", len(reply.Output), s.limit)
		reply.Output, reply.Message = nil, strings.TrimSpace(note+" "+reply.Message)
		return reply
	}
	return sdk.Reply{
		Outcome: sdk.OutcomeUnknown,
		Code:    sdk.CodeBadReply,
		Message: fmt.Sprintf("the output has %d bytes, the limit is %d", len(reply.Output), s.limit),
	}
}

// sender sends the events and the reply of an action, one at a time.
type sender struct {
	mu     sync.Mutex // protects stream.Send
	stream pb.Agent_InvokeServer
}

func (s *sender) send(ev *pb.InvokeEvent) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stream.Send(ev)
}
