//go:build unix

package hostile

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// measure runs the program of the command line and writes the resources that it used.
func measure() int {
	report := os.Getenv(envMeasure)
	if err := os.Unsetenv(envMeasure); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	if cmd.ProcessState == nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	u := usage{Exit: cmd.ProcessState.ExitCode(), CPU: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
		u.Signal = status.Signal().String()
	}
	unit := int64(1 << 10)
	if runtime.GOOS == "darwin" {
		unit = 1
	}
	u.Memory = int64(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) * unit
	text, err := json.Marshal(u)
	if err == nil {
		err = os.WriteFile(report, text, 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func makeFIFO(path string) error { return syscall.Mkfifo(path, 0o600) }
