package plugin

import (
	"errors"
	"fmt"
)

// ErrNotSent says that an agent definitely never saw a call.
var ErrNotSent = errors.New("plugin: call not sent")

// ErrExited says that the agent's process has ended.
var ErrExited = errors.New("plugin: agent process has ended")

// Reason says why an agent could not be started or described.
type Reason string

// The reasons.
const (
	ReasonMissing       Reason = "missing"        // no such file
	ReasonNotExecutable Reason = "not_executable" // not a program, not for this machine, or not permitted
	ReasonChecksum      Reason = "checksum"       // not the file it should be
	ReasonHandshake     Reason = "handshake"      // printed something else than a handshake
	ReasonProtocol      Reason = "protocol"       // no version of the protocol in common
	ReasonExited        Reason = "exited"         // ended before it was ready for calls
	ReasonTimeout       Reason = "timeout"        // took too long
	ReasonDescription   Reason = "description"    // describe printed no description
	ReasonInternal      Reason = "internal"       // something on the host's side
)

// A StartError says why the binary at Path is no use as an agent.
type StartError struct {
	Path   string
	Reason Reason
	Hint   string // what to do about it; may be ""
	Err    error
}

// Error says what is wrong, without the hint.
func (e *StartError) Error() string { return fmt.Sprintf("agent binary %s: %v", e.Path, e.Err) }

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }
