package pgtest

import "syscall"

// withParent returns a, changed so that the server ends at once if this process ends, even by a
// kill.
func withParent(a *syscall.SysProcAttr) *syscall.SysProcAttr {
	a.Pdeathsig = syscall.SIGQUIT
	return a
}
