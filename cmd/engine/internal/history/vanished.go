package history

import (
	"os"
	"strconv"
	"strings"
)

// Vanished reports whether the process of an engine on this machine has ended before its
// lease. A second Ctrl-C can cause this. It reports false for engines of other machines and
// for engines whose address was set with --address.
func Vanished(address string) bool {
	at := strings.LastIndex(address, ":")
	if at < 0 {
		return false
	}
	host, err := os.Hostname()
	pid, bad := strconv.Atoi(address[at+1:])
	return err == nil && bad == nil && pid > 0 && host == address[:at] && !running(pid)
}
