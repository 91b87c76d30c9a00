//go:build !linux

package pgtest

import "syscall"

// withParent leaves a unchanged: only Linux tells children of a parent's death.
func withParent(a *syscall.SysProcAttr) *syscall.SysProcAttr { return a }
