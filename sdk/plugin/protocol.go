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

// What the two sides of the handshake agree on outside of any version.
const (
	cookieName  = "ENGINE_AGENT_PLUGIN"
	cookieValue = "c1d5f7a0-agent"
	envLimit    = "ENGINE_AGENT_PAYLOAD_LIMIT" // bytes, decimal
	pluginName  = "agent"
)

// DefaultPayloadLimit is the most bytes of an input or an output, unless
// OpenOptions says otherwise.
const DefaultPayloadLimit = 1 << 20

// messageRoom is how many bytes a message may have in addition to its payload.
const messageRoom = 64 << 10

// What may be on its way unread, in bytes: of one stream, of all of a process.
// Left to itself the transport measures how much that should be, with a ping for
// each message that comes alone: two more writes and wake-ups on either side of
// a lone call.
const (
	streamWindow = 4 << 20
	connWindow   = 16 << 20
)

// supported lists the versions of the protocol that this package speaks. The
// engine speaks the current and the previous one.
func supported() []int { return []int{ProtocolUnary, ProtocolBatched} }

// The versions of the protocol. They differ in how calls travel.
const (
	ProtocolUnary   = 1 // each on a stream of its own
	ProtocolBatched = 2 // all on one stream, in batches
)

// handshake is go-plugin's; the cookie keeps people from starting an agent by
// hand, it is not a secret.
func handshake() goplugin.HandshakeConfig {
	return goplugin.HandshakeConfig{MagicCookieKey: cookieName, MagicCookieValue: cookieValue}
}

// agentPlugin carries the protocol through go-plugin: the author's half registers
// the service, the host's half hands out the connection. The service is the same
// in both versions; what was agreed on tells the host what it may use.
type agentPlugin struct {
	goplugin.NetRPCUnsupportedPlugin
	server *server // nil in a host
}

var _ goplugin.GRPCPlugin = (*agentPlugin)(nil)

// GRPCServer registers the service.
func (p *agentPlugin) GRPCServer(_ *goplugin.GRPCBroker, s *grpc.Server) error {
	pb.RegisterAgentServer(s, p.server)
	return nil
}

// GRPCClient returns the connection.
func (p *agentPlugin) GRPCClient(_ context.Context, _ *goplugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return conn, nil
}

// versions maps each version of the protocol up to the newest that is wanted to
// what serves or consumes it; 0 = all that there are.
func versions(s *server, newest int) map[int]goplugin.PluginSet {
	sets := map[int]goplugin.PluginSet{}
	for _, v := range supported() {
		if newest == 0 || v <= newest {
			sets[v] = goplugin.PluginSet{pluginName: &agentPlugin{server: s}}
		}
	}
	return sets
}

// mismatch says which side to update when the versions of an agent and those of
// this engine have nothing in common. It returns nil if they have.
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

// A Description is what an agent says about itself without being started: its
// schema and the versions of the protocol that it speaks.
type Description struct {
	schema.Schema
	ProtocolVersions []int `json:"protocol_versions"`
}
