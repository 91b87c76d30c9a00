package noun

import "github.com/saga-engine/engine/sdk/schema"

// An AgentBinary describes the binary that was chosen for an agent.
type AgentBinary struct {
	Schema   schema.Schema
	Version  string // semantic version
	Checksum string // hex SHA-256 of the binary; "" = any binary
}
