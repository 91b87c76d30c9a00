package plugin

import (
	"syscall"
	"unsafe"
)

// agentAttr starts the agent as leader of its own process group, and has the
// kernel tell it when the thread that started it ends: whoever uses this keeps
// that thread for as long as the process lives. SIGTERM and not SIGKILL, so that
// the SDK can end what the agent started elsewhere.
func agentAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}

// awaitExit returns true when the child pid has ended, and leaves it to be reaped:
// as long as it is not, its process group's number belongs to nobody else.
func awaitExit(pid int) bool {
	const (
		idPid   = 1       // P_PID
		exited  = 4       // WEXITED
		noReap  = 1 << 24 // WNOWAIT
		infoLen = 128     // sizeof(siginfo_t)
	)
	var info [infoLen]byte
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, idPid, uintptr(pid),
			uintptr(unsafe.Pointer(&info)), exited|noReap, 0, 0)
		if errno != syscall.EINTR {
			return errno == 0
		}
	}
}
