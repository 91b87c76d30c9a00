package plugin

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-plugin/runner"

	"github.com/saga-engine/engine/sdk/plugin/internal/leash"
)

// child runs an agent process for go-plugin. It replaces go-plugin's own runner, which has four
// faults. First, it gives the process the standard input of the host. Second, it gives the process
// no private directory for sockets. Third, if a child of the process keeps a pipe open, it waits
// for ever. Fourth, it kills only the process and not the process group.
type child struct {
	options *OpenOptions
	lines   *lines
	dir     string // private directory for this process; go-plugin removes it
	command leash.Command
	copied  string // path of the checked copy; "" = there is no copy
	out     *firstLine
	outPipe *os.File
	errPipe *os.File
	exited  chan struct{}

	mu      sync.Mutex     // protects the fields below
	process *leash.Process // nil before the start
	killed  bool           // the method `kill` was called
	exit    error          // how the process ended; valid once the channel `exited` is closed
}

var _ runner.Runner = (*child)(nil)

func newChild(o *OpenOptions, l *lines) *child {
	return &child{options: o, lines: l, exited: make(chan struct{})}
}

// kill kills the process and all its descendants. It does nothing if they have ended.
func (c *child) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.killed = true
	if c.process != nil {
		c.process.Kill()
	}
}

// endPatience is how long hasEnded waits for the end of a process.
const endPatience = 200 * time.Millisecond

// hasEnded reports whether the process has ended without a call of the method `kill`. It returns
// false if no process was started, or if the process does not end within endPatience.
func (c *child) hasEnded() bool {
	c.mu.Lock()
	none := c.killed || c.process == nil
	c.mu.Unlock()
	if none {
		return false
	}
	timer := time.NewTimer(endPatience)
	defer timer.Stop()
	select {
	case <-c.exited:
		return true
	case <-timer.C:
		return false
	}
}

// err returns an error that says how the process ended; nil if the process has not ended.
func (c *child) err() error {
	select {
	case <-c.exited:
	default:
		return nil
	}
	return c.end()
}

// killedFor returns an error that names the limit which the process has exceeded; nil if it
// has exceeded none. When killedFor returns an error, the process and its descendants may still
// be running for a short time.
func (c *child) killedFor() error {
	c.mu.Lock()
	process := c.process
	c.mu.Unlock()
	if process == nil {
		return nil
	}
	if err := process.Killed(); err != nil {
		return fmt.Errorf("%w: %w", ErrExited, err)
	}
	return nil
}

// end returns an error that says how the process ended. The process must have ended.
func (c *child) end() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.exit == nil {
		return fmt.Errorf("%w: exit status 0", ErrExited)
	}
	return fmt.Errorf("%w: %w", ErrExited, c.exit)
}

// Diagnose returns "" to go-plugin, because the method startError makes the error text.
func (c *child) Diagnose(context.Context) string { return "" }

// Stdout returns the standard output of the process. go-plugin reads the handshake from it.
func (c *child) Stdout() io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{c.out, c.outPipe}
}

// Stderr returns an empty reader to go-plugin. go-plugin must not read the real standard error of
// the process, because a JSON line whose @message is not a string would end the host. Instead of
// go-plugin, the method `stay` reads the standard error.
func (c *child) Stderr() io.ReadCloser { return io.NopCloser(strings.NewReader("")) }

// Name returns the binary's path.
func (c *child) Name() string { return c.options.Path }

// ID returns the process id, or "" before the start.
func (c *child) ID() string {
	if pid := c.pidNumber(); pid != 0 {
		return strconv.Itoa(pid)
	}
	return ""
}

// pidNumber returns the process id, or 0 before the start.
func (c *child) pidNumber() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process == nil {
		return 0
	}
	return c.process.Pid()
}

// firstLine returns the first line that the process printed; "" if it has printed none.
func (c *child) firstLine() string {
	if c.out == nil {
		return ""
	}
	return c.out.text()
}

// Wait waits until the process has ended and its standard error has been read. It returns nil for
// exit status 0.
func (c *child) Wait(context.Context) error {
	<-c.exited
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.exit
}

// Kill kills the process with all its descendants.
func (c *child) Kill(context.Context) error {
	c.kill()
	return nil
}

// PluginToHost returns the address of the agent unchanged. If the address is not a socket in
// the private directory, PluginToHost returns an error. Windows has no such check.
func (c *child) PluginToHost(network, addr string) (string, string, error) {
	if goruntime.GOOS == "windows" {
		return network, addr, nil
	}
	if network != "unix" || filepath.Dir(addr) != c.dir {
		return "", "", fmt.Errorf("the agent listens at %s %s, not in its directory %s", network, addr, c.dir)
	}
	return network, addr, nil
}

// HostToPlugin returns the address of the host unchanged.
func (c *child) HostToPlugin(network, addr string) (string, string, error) {
	return network, addr, nil
}
