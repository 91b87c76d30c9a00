//go:build !linux

package pgtest

import "syscall"

// withParent changes nothing: only Linux signals children when their parent ends.
func withParent(a *syscall.SysProcAttr) *syscall.SysProcAttr { return a }
