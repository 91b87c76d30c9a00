package history

import (
	"os"
	"strconv"
	"strings"
)

// Vanished reports whether the process of an engine ran on this machine and has ended. The store
// cannot know that yet while the engine's lease still lasts, for example after a second Ctrl-C. The
// parameter `address` is the engine's address. Vanished returns false if the engine is on another
// machine, or if its address was set with --address.
func Vanished(address string) bool {
	at := strings.LastIndex(address, ":")
	if at < 0 {
		return false
	}
	host, err := os.Hostname()
	pid, bad := strconv.Atoi(address[at+1:])
	return err == nil && bad == nil && pid > 0 && host == address[:at] && !running(pid)
}
