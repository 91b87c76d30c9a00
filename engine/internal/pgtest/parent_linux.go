package pgtest

import "syscall"

// withParent sets an attribute in the parameter `a` and returns `a`. With this attribute, the
// server ends at once if this process ends, even if this process is killed.
func withParent(a *syscall.SysProcAttr) *syscall.SysProcAttr {
	a.Pdeathsig = syscall.SIGQUIT
	return a
}
