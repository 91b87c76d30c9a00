package procgroup

import "syscall"

// OwnBound returns the attributes of Own. In addition, the kernel kills the program when the thread
// that started the program ends. So the program also ends when this process dies.
func OwnBound() *syscall.SysProcAttr {
	a := Own()
	a.Pdeathsig = syscall.SIGKILL
	return a
}
