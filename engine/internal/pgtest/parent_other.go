//go:build !linux

package pgtest

import "syscall"

// withParent returns its parameter without a change. Only Linux can send a signal to a child
// process when the parent process ends.
func withParent(a *syscall.SysProcAttr) *syscall.SysProcAttr { return a }
