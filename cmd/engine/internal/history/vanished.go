package history

import (
	"os"
	"strconv"
	"strings"
)

// Vanished reports whether the address of an engine names a process of this machine that has
// ended. The lease of such an engine may still last, for example after a second Ctrl-C. Vanished
// returns false for engines of other machines and for engines whose address was set with
// --address.
func Vanished(address string) bool {
	at := strings.LastIndex(address, ":")
	if at < 0 {
		return false
	}
	host, err := os.Hostname()
	pid, bad := strconv.Atoi(address[at+1:])
	return err == nil && bad == nil && pid > 0 && host == address[:at] && !running(pid)
}
