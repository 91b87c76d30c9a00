//go:build !linux

package procgroup

import "syscall"

// OwnBound returns the attributes of Own. Only on Linux does the program also end when this process
// dies.
func OwnBound() *syscall.SysProcAttr { return Own() }
