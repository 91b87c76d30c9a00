package pgtest

import "syscall"

// withParent makes the server end at once if this process is killed.
func withParent(a *syscall.SysProcAttr) *syscall.SysProcAttr {
	a.Pdeathsig = syscall.SIGQUIT
	return a
}
