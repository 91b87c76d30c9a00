// Package names knows which names an agent's author may give: to actions, to fields
// and to error codes.
//
// In comes a text, out goes yes or no. It touches nothing else.
package names

import "regexp"

// The codes that only the SDK and the engine use. Package sdk says what each means.
const (
	Timeout   = "timeout"
	AgentLost = "agent_lost"
	Internal  = "internal"
	BadReply  = "bad_reply"
)

var identifier = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)

// Valid reports whether name is snake_case and at most 63 bytes long.
func Valid(name string) bool { return identifier.MatchString(name) }

// Reserved reports whether an agent's author cannot declare the error code, because
// the SDK and the engine use it.
func Reserved(code string) bool {
	switch code {
	case Timeout, AgentLost, Internal, BadReply:
		return true
	}
	return false
}
