package process

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Only an address that Name made on this machine says which process the engine had. A number after
// the host may be a port, and another machine may have the same name. If the system gives no mark of
// the machine, no address says that a process has ended.
func TestEnded(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	ended := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	name := func(pid int) string {
		return strings.Replace(Name(), fmt.Sprint(":", os.Getpid()), fmt.Sprint(":", pid), 1)
	}
	pid := ended.Process.Pid
	for address, want := range map[string]bool{
		Name():                                   false,
		name(pid):                                mark() != "",
		fmt.Sprintf("%s:%d", host, pid):          false, // with --address $(hostname):PORT
		fmt.Sprintf("%s:%d#", host, pid):         false,
		fmt.Sprintf("%s:%d#01234567", host, pid): false, // another machine or container of this name
		"serve-1":                                false,
		"serve-1#" + mark():                      false,
		host + ":0#" + mark():                    false,
		"":                                       false,
	} {
		if got := Ended(address); got != want {
			t.Errorf("Ended(%q) = %v, want %v", address, got, want)
		}
	}
}
