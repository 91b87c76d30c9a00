//go:build unix

package regular

import (
	"syscall"
)

// dontWait keeps an open from waiting for the other end of a pipe.
const dontWait = syscall.O_NONBLOCK
