package pgtest

import (
	"bufio"
	"runtime"
	"strings"
)

// watch starts the server, reads the server's log, and waits until the server has ended. It sends
// the error of the start, or nil, to the channel in the parameter `started`. When the server
// accepts connections, watch closes the channel in the parameter `ready`. The goroutine of watch
// stays on one thread. The reason is that Linux stops the server (see withParent) as soon as the
// thread that started the server ends.
func (c *Cluster) watch(log *bufio.Scanner, started chan<- error, ready chan<- struct{}) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(c.done)
	err := c.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	for log.Scan() {
		c.log.add(log.Text())
		if ready != nil && strings.Contains(log.Text(), "database system is ready to accept ") {
			close(ready)
			ready = nil
		}
	}
	// The exit status does not matter: the server has ended, and its log is kept.
	if err := c.cmd.Wait(); err != nil {
		c.log.add(err.Error())
	}
}
