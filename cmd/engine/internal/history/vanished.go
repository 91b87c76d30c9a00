package history

import (
	"os"
	"strconv"
	"strings"
)

// Vanished reports whether an engine's process is known to have ended, though its
// lease has not: one of this machine that was left at once, as by a second Ctrl-C.
// It reports false for engines of other machines and for engines with --address.
func Vanished(address string) bool {
	at := strings.LastIndex(address, ":")
	if at < 0 {
		return false
	}
	host, err := os.Hostname()
	pid, bad := strconv.Atoi(address[at+1:])
	return err == nil && bad == nil && pid > 0 && host == address[:at] && !running(pid)
}
