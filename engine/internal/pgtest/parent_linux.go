package pgtest

import "syscall"

// withParent lets the server end at once when we are killed.
func withParent(a *syscall.SysProcAttr) *syscall.SysProcAttr {
	a.Pdeathsig = syscall.SIGQUIT
	return a
}
