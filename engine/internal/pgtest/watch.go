package pgtest

import (
	"bufio"
	"runtime"
	"strings"
)

// watch starts the server, reads its log, and reaps it. The goroutine keeps
// one thread from start to end: where the server is told of its parent's death
// it is the death of that thread that counts.
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
	// Whatever the exit status, what matters is that it has ended; its log is kept.
	if err := c.cmd.Wait(); err != nil {
		c.log.add(err.Error())
	}
}
