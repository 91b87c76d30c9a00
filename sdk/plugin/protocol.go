package plugin

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	pb "github.com/saga-engine/engine/sdk/plugin/internal/proto"
	"github.com/saga-engine/engine/sdk/schema"
)

// Values of the handshake that are the same in all versions of the protocol.
const (
	cookieName  = "ENGINE_AGENT_PLUGIN"
	cookieValue = "c1d5f7a0-agent"
	envLimit    = "ENGINE_AGENT_PAYLOAD_LIMIT" // variable with the payload limit in bytes, decimal
	pluginName  = "agent"
)

// messageOverhead is how many bytes a message may have in addition to its payload.
const messageOverhead = 64 << 10

// Limits for the number of bytes that one side has sent and the other side has not read yet. One
// limit is for each stream, and the other is for all streams of a process together. Without these
// limits, gRPC would compute its own limits, and for that purpose it would send a ping for each
// message. Each ping costs two more writes and two more wake-ups on each side.
const (
	streamWindow = 4 << 20
	connWindow   = 16 << 20
)

// supported returns the versions of the protocol that this package supports: the current and
// the previous version.
func supported() []int { return []int{ProtocolUnary, ProtocolBatched} }

// The versions of the protocol. They differ in how calls are sent.
const (
	ProtocolUnary   = 1 // each call has its own stream
	ProtocolBatched = 2 // all calls use one stream, in batches
)

// handshake returns the handshake settings for go-plugin. The cookie is not a secret. It only
// helps an agent to notice that a person and not the engine has started it.
func handshake() goplugin.HandshakeConfig {
	return goplugin.HandshakeConfig{MagicCookieKey: cookieName, MagicCookieValue: cookieValue}
}

// agentPlugin connects the protocol to go-plugin. In an agent it registers the gRPC service;
// in a host it returns the connection. The service has the same methods in both versions of
// the protocol. The version decides which of these methods the host may use.
type agentPlugin struct {
	goplugin.NetRPCUnsupportedPlugin
	server *server // nil in a host
}

var _ goplugin.GRPCPlugin = (*agentPlugin)(nil)

// GRPCServer registers the gRPC service of an agent.
func (p *agentPlugin) GRPCServer(_ *goplugin.GRPCBroker, s *grpc.Server) error {
	pb.RegisterAgentServer(s, p.server)
	return nil
}

// GRPCClient implements go-plugin's interface GRPCPlugin. It returns the gRPC connection itself,
// which the host uses without a wrapper.
func (p *agentPlugin) GRPCClient(_ context.Context, _ *goplugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return conn, nil
}

// versions returns go-plugin's plugin set for each version of the protocol up to the parameter
// `newest`. If `newest` is 0, it returns the sets of all versions.
func versions(s *server, newest int) map[int]goplugin.PluginSet {
	sets := map[int]goplugin.PluginSet{}
	for _, v := range supported() {
		if newest == 0 || v <= newest {
			sets[v] = goplugin.PluginSet{pluginName: &agentPlugin{server: s}}
		}
	}
	return sets
}

// mismatch returns an error if an agent and this engine have no common version of the
// protocol. Then the result `hint` says which side to update. If they have a common version,
// the result `hint` is "" and the error is nil.
func mismatch(agent []int) (hint string, err error) {
	ours := supported()
	for _, v := range agent {
		if slices.Contains(ours, v) {
			return "", nil
		}
	}
	hint = "update the agent: rebuild it with the SDK of this engine"
	if len(agent) > 0 && slices.Min(agent) > slices.Max(ours) {
		hint = "update the engine: the agent was built with a newer SDK"
	}
	return hint, fmt.Errorf("the agent speaks protocol %s, this engine speaks %s", numbers(agent), numbers(ours))
}

func numbers(versions []int) string {
	if len(versions) == 0 {
		return "none"
	}
	words := make([]string, 0, len(versions))
	for _, v := range slices.Sorted(slices.Values(versions)) {
		words = append(words, fmt.Sprint(v))
	}
	return strings.Join(words, " and ")
}

func sortedVersions(m map[int]goplugin.PluginSet) []int {
	return slices.Sorted(maps.Keys(m))
}

// A Description is what an agent's describe command prints: its schema and the versions of
// the protocol that it supports.
type Description struct {
	schema.Schema
	ProtocolVersions []int `json:"protocol_versions"`
}
