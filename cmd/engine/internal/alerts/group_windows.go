package alerts

import (
	"os"
	"syscall"
)

// ownGroup returns the attributes that start a program in a process group of its own. Then a
// Ctrl-C for the engine does not reach the program.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// killGroup kills the program p. Its children may continue, because Windows cannot kill a process
// group.
func killGroup(p *os.Process) error { return p.Kill() }
