// Package names checks the names that the author of an agent gives to actions, fields and
// error codes.
//
// In: a text. Out: whether it is allowed.
package names

import "regexp"

// Error codes that only the SDK and the engine use. Package sdk explains each code.
const (
	Timeout   = "timeout"
	AgentLost = "agent_lost"
	Internal  = "internal"
	BadReply  = "bad_reply"
)

var identifier = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)

// Valid reports whether `name` is snake_case and at most 63 bytes long.
func Valid(name string) bool { return identifier.MatchString(name) }

// Reserved reports whether only the SDK and the engine may use this error code. The author of
// an agent cannot declare such a code.
func Reserved(code string) bool {
	switch code {
	case Timeout, AgentLost, Internal, BadReply:
		return true
	}
	return false
}
