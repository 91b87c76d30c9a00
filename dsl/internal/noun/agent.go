package noun

import "github.com/saga-engine/engine/sdk/schema"

// An AgentBinary describes the binary that is chosen for an agent.
type AgentBinary struct {
	Schema   schema.Schema
	Version  string // semantic version
	Checksum string // hex sha256 of the binary; "" = not locked
}
