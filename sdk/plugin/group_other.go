//go:build unix && !linux

package plugin

import "syscall"

// agentAttr starts the agent as leader of its own process group. There is no
// parent-death signal here: the control stream alone ends an orphan.
func agentAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// awaitExit returns false: there is no waiting without reaping here.
func awaitExit(int) bool { return false }
