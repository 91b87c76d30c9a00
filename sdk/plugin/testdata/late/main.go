// Command late is an agent that does not use the SDK and answers every call shortly after
// its complete-by, which is not allowed.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"time"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/saga-engine/engine/sdk/plugin"
	pb "github.com/saga-engine/engine/sdk/plugin/internal/proto"
	"github.com/saga-engine/engine/sdk/schema"
)

func offers() schema.Schema {
	return schema.Schema{Name: "late", Version: "1.0.0", Actions: map[string]schema.Action{
		"answer": {Outputs: []schema.Field{{Name: "id", Type: schema.Type{Kind: schema.KindString}}}},
	}}
}

func main() {
	os.Stdout = os.NewFile(1, "stdout") // package plugin has replaced os.Stdout by standard error
	if len(os.Args) > 1 && os.Args[1] == "describe" {
		if json.NewEncoder(os.Stdout).Encode(plugin.Description{Schema: offers(), ProtocolVersions: []int{1, 2}}) != nil {
			os.Exit(1)
		}
		return
	}
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig:  goplugin.HandshakeConfig{MagicCookieKey: "ENGINE_AGENT_PLUGIN", MagicCookieValue: "c1d5f7a0-agent"},
		VersionedPlugins: map[int]goplugin.PluginSet{1: {"agent": &late{}}, 2: {"agent": &late{}}},
		GRPCServer:       goplugin.DefaultGRPCServer,
	})
}

type late struct {
	goplugin.NetRPCUnsupportedPlugin
	pb.UnimplementedAgentServer
}

func (l *late) GRPCServer(_ *goplugin.GRPCBroker, s *grpc.Server) error {
	pb.RegisterAgentServer(s, l)
	return nil
}

func (l *late) GRPCClient(context.Context, *goplugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("not an engine")
}

func (l *late) Describe(context.Context, *pb.DescribeRequest) (*pb.DescribeReply, error) {
	data, err := json.Marshal(offers())
	return &pb.DescribeReply{Schema: data}, err
}

func (l *late) Configure(context.Context, *pb.ConfigureRequest) (*pb.ConfigureReply, error) {
	return &pb.ConfigureReply{}, nil
}

func (l *late) Control(stream pb.Agent_ControlServer) error {
	if err := stream.Send(&pb.ControlEvent{Pid: int64(os.Getpid())}); err != nil {
		return err
	}
	<-stream.Context().Done()
	os.Exit(1)
	return nil
}

func (l *late) Invoke(stream pb.Agent_InvokeServer) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	<-tooLate(first.GetCall())
	return stream.Send(&pb.InvokeEvent{Event: &pb.InvokeEvent_Reply{Reply: answer()}})
}

func (l *late) Session(stream pb.Agent_SessionServer) error {
	if err := stream.Send(&pb.ResultBatch{}); err != nil {
		return err
	}
	var mu sync.Mutex // protects stream.Send
	for {
		batch, err := stream.Recv()
		if err != nil {
			return err
		}
		for _, inv := range batch.GetInvocations() {
			if inv.GetCall() == nil {
				continue
			}
			go func() {
				<-tooLate(inv.GetCall())
				mu.Lock()
				defer mu.Unlock()
				_ = stream.Send(&pb.ResultBatch{Results: []*pb.Result{{Id: inv.GetId(), Event: &pb.Result_Reply{Reply: answer()}}}})
			}()
		}
	}
}

func tooLate(c *pb.Call) <-chan time.Time {
	return time.After(time.Until(time.Unix(0, c.GetCompleteByUnixNano()).Add(200 * time.Millisecond)))
}

func answer() *pb.Reply {
	return &pb.Reply{Outcome: pb.Outcome_OUTCOME_RESULT, Output: []byte(`{"id":"too late"}`)}
}
