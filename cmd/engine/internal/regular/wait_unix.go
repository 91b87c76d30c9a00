//go:build unix

package regular

import (
	"syscall"
)

// dontWait is the flag with which an open does not wait for the other end of a pipe.
const dontWait = syscall.O_NONBLOCK
