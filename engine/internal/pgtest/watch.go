package pgtest

import (
	"bufio"
	"runtime"
	"strings"
)

// watch starts the server, reads its log and waits for its end. Its goroutine stays on one
// thread. On Linux the server receives a signal when the thread that started it ends, not
// only when the process ends.
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
