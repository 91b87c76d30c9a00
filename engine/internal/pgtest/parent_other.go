//go:build !linux

package pgtest

import "syscall"

// withParent leaves a unchanged: only Linux sends children a signal when a parent ends.
func withParent(a *syscall.SysProcAttr) *syscall.SysProcAttr { return a }
