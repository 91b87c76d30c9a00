package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin/runner"

	"github.com/saga-engine/engine/sdk/plugin/internal/leash"
)

// drainTime is how long the host still reads the output after the process has ended. Usually
// the output ends sooner. It does not end if a descendant that could not be killed keeps the
// pipe open.
const drainTime = 500 * time.Millisecond

// child runs an agent process for go-plugin. It replaces go-plugin's own runner, which has
// four faults. That runner gives the process the host's standard input, and no private
// directory for sockets. It waits for ever if a child of the process keeps a pipe open. It
// kills only the process and not the process group.
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

// prepare sets the command that starts the agent process, and returns c as the runner of this
// command. It implements go-plugin's RunnerFunc. The parameter `spec` contains the environment for
// the handshake, and the parameter `dir` is the private directory for sockets.
func (c *child) prepare(_ hclog.Logger, spec *exec.Cmd, dir string) (runner.Runner, error) {
	c.dir = dir
	path := c.options.Path
	if len(c.options.Checksum) > 0 {
		var err error
		if path, err = checkedCopy(c.dir, path, c.options.Checksum); err != nil {
			return nil, err
		}
		c.copied = path
	}
	c.command = leash.Command{Path: path, Args: []string{c.options.Path}, Dir: c.options.Dir, Private: dir, Limits: c.options.limits()}
	// The variables for the handshake come last, so that variables from the agent block cannot
	// replace them.
	c.command.Env = append(append([]string{}, c.options.Env...), spec.Env...)
	c.command.Env = append(c.command.Env, envLimit+"="+strconv.Itoa(c.options.PayloadLimit))
	return c, nil
}

// Start starts the process, and a goroutine that runs until the process has ended.
func (c *child) Start(context.Context) error {
	if err := CloseOnExec(); err != nil {
		return err
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		return err
	}
	errR, errW, err := os.Pipe()
	if err != nil {
		return errors.Join(err, outR.Close(), outW.Close())
	}
	c.out, c.outPipe, c.errPipe = &firstLine{Reader: outR}, outR, errR
	c.command.Stdout, c.command.Stderr = outW, errW
	err = c.launch()
	_ = outW.Close()
	_ = errW.Close()
	if err != nil {
		_ = outR.Close()
		_ = errR.Close()
		return &launchError{err}
	}
	go c.stay()
	return nil
}

// launchError is the error if the operating system refused to run a binary.
type launchError struct{ err error }

func (e *launchError) Error() string { return e.err.Error() }
func (e *launchError) Unwrap() error { return e.err }

func (c *child) launch() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.killed {
		return errors.New("given up before the start")
	}
	process, err := leash.Start(c.command)
	if err != nil {
		return err
	}
	c.process = process
	return nil
}

// stay logs the output of the process and waits for its end.
func (c *child) stay() {
	logged := make(chan struct{})
	go func() {
		defer close(logged)
		c.lines.read(c.errPipe, "stderr")
	}()
	err := c.process.Wait()
	_ = c.errPipe.SetReadDeadline(time.Now().Add(drainTime))
	_ = c.outPipe.SetReadDeadline(time.Now().Add(drainTime))
	<-logged
	_ = c.errPipe.Close()
	c.mu.Lock()
	c.exit = err
	c.mu.Unlock()
	close(c.exited)
}

// forgetCopy removes the checked copy of the binary. Open calls it only after the handshake:
// if the binary is a script, its interpreter opens the copy some time after the start.
func (c *child) forgetCopy() {
	if c.copied != "" && goruntime.GOOS != "windows" { // Windows cannot remove a running program
		_ = os.Remove(c.copied) // if this fails, go-plugin removes the copy with the directory
	}
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

// Stderr returns an empty reader to go-plugin. If go-plugin read the real output, a JSON line
// whose @message is not a string would end the host. The method `stay` reads the standard
// error of the process instead.
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

// Wait waits until the process has ended and its output has been read. It returns nil for
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
