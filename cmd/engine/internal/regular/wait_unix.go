//go:build unix

package regular

import (
	"syscall"
)

// dontWait is a flag for opening a file: if the file is a pipe, the call does not wait for the
// other end.
const dontWait = syscall.O_NONBLOCK
