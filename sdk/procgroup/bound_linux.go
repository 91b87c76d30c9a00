package procgroup

import "syscall"

// OwnBound returns the attributes of Own. In addition, the kernel kills the program when the thread
// that started it ends, and so when this process dies.
func OwnBound() *syscall.SysProcAttr {
	a := Own()
	a.Pdeathsig = syscall.SIGKILL
	return a
}
