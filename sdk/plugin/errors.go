package plugin

import (
	"errors"
	"fmt"
)

// ErrNotSent says that an agent has certainly not received a call.
var ErrNotSent = errors.New("plugin: call not sent")

// ErrExited says that the agent's process has ended.
var ErrExited = errors.New("plugin: agent process has ended")

// Reason says why an agent could not be started or described.
type Reason string

// Reasons why an agent could not be started or described.
const (
	ReasonMissing       Reason = "missing"        // the file does not exist, or cannot be examined
	ReasonNotExecutable Reason = "not_executable" // not a program for this machine, not readable, or not executable
	ReasonChecksum      Reason = "checksum"       // the file has another checksum
	ReasonHandshake     Reason = "handshake"      // no handshake, or no connection after the handshake
	ReasonProtocol      Reason = "protocol"       // engine and agent have no common version of the protocol
	ReasonExited        Reason = "exited"         // the process ended before it was ready for calls
	ReasonTimeout       Reason = "timeout"        // the start or describe took too long
	ReasonDescription   Reason = "description"    // no description, or one that does not fit the agent
	ReasonInternal      Reason = "internal"       // an error on the host's side
)

// A StartError says why the binary at Path cannot be used as an agent.
type StartError struct {
	Path   string
	Reason Reason
	Hint   string // what a person can do; may be ""
	Err    error
}

// Error returns a text with the path and the cause, without the hint.
func (e *StartError) Error() string { return fmt.Sprintf("agent binary %s: %v", e.Path, e.Err) }

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }
