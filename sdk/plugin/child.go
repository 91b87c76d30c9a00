package plugin

import (
	"context"
	"crypto/sha256"
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
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
)

// drainTime is how long the output of an ended process is still read; longer
// only where a process outside of its group holds the pipe open.
const drainTime = 500 * time.Millisecond

// child runs an agent for go-plugin. go-plugin's own runner gives the child
// the host's standard input and no private socket directory, waits for ever if a
// grandchild keeps a pipe open, and kills the process without its group.
type child struct {
	options *OpenOptions
	lines   *lines
	dir     string // private to this process, removed by go-plugin
	cmd     *exec.Cmd
	out     *firstLine
	outPipe *os.File
	errPipe *os.File
	exited  chan struct{}

	mu     sync.Mutex // protects following fields
	pid    int        // 0 before the start
	killed bool
	reaped bool
	exit   error // once exited is closed
}

var _ runner.Runner = (*child)(nil)

func newChild(o *OpenOptions, l *lines) *child {
	return &child{options: o, lines: l, exited: make(chan struct{})}
}

// prepare is go-plugin's RunnerFunc: spec carries the environment that the
// handshake needs, dir is the private directory for sockets.
func (c *child) prepare(_ hclog.Logger, spec *exec.Cmd, dir string) (runner.Runner, error) {
	c.dir = dir
	path := c.options.Path
	if len(c.options.Checksum) > 0 {
		var err error
		if path, err = c.checkedCopy(); err != nil {
			return nil, err
		}
	}
	// go-plugin has to look up nothing, so the path is used as it is.
	c.cmd = &exec.Cmd{Path: path, Args: []string{c.options.Path}, Dir: c.options.Dir, SysProcAttr: agentAttr()}
	// Ours come last, so that no variable of the block can replace them.
	c.cmd.Env = append(append([]string{}, c.options.Env...), spec.Env...)
	c.cmd.Env = append(c.cmd.Env, envLimit+"="+strconv.Itoa(c.options.PayloadLimit))
	return c, nil
}

// checkedCopy copies the binary to the private directory, checks the copy and
// returns its path: nobody else can change it any more.
func (c *child) checkedCopy() (string, error) {
	in, err := os.Open(c.options.Path)
	if err != nil {
		return "", err
	}
	defer in.Close()
	path := filepath.Join(c.dir, filepath.Base(c.options.Path))
	// A process forked meanwhile would hold the copy open for writing, and a file
	// open for writing cannot be run.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o500)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); err != nil {
		return "", fmt.Errorf("copy to %s: %w", c.dir, err)
	}
	secure := goplugin.SecureConfig{Checksum: c.options.Checksum, Hash: sha256.New()}
	ok, err := secure.Check(path)
	if err != nil {
		return "", err
	}
	if !ok {
		return "", goplugin.ErrChecksumsDoNotMatch
	}
	return path, nil
}

// Start starts the process, and a goroutine that stays with it to its end.
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
	c.cmd.Stdout, c.cmd.Stderr = outW, errW // Stdin stays nil: empty
	started := make(chan error, 1)
	go c.own(started)
	err = <-started
	_ = outW.Close()
	_ = errW.Close()
	if err != nil {
		_ = outR.Close()
		_ = errR.Close()
		return &launchError{err}
	}
	return nil
}

// launchError is the system's refusal to run a binary.
type launchError struct{ err error }

func (e *launchError) Error() string { return e.err.Error() }
func (e *launchError) Unwrap() error { return e.err }

// own starts the process and waits for its end. It keeps its thread, because the
// kernel's parent-death signal is sent when the starting thread ends.
func (c *child) own(started chan<- error) {
	goruntime.LockOSThread() // never unlocked
	if err := c.launch(); err != nil {
		started <- err
		return
	}
	if c.cmd.Path != c.options.Path && goruntime.GOOS == "linux" {
		// The copy has served; a killed host should not leave it behind.
		_ = os.Remove(c.cmd.Path)
	}
	logged := make(chan struct{})
	go func() {
		defer close(logged)
		c.lines.read(c.errPipe, "stderr")
	}()
	started <- nil

	err := c.reap()
	_ = c.errPipe.SetReadDeadline(time.Now().Add(drainTime))
	_ = c.outPipe.SetReadDeadline(time.Now().Add(drainTime))
	<-logged
	_ = c.errPipe.Close()
	c.mu.Lock()
	c.exit = err
	c.mu.Unlock()
	close(c.exited)
}

func (c *child) launch() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.killed {
		return errors.New("given up before the start")
	}
	if err := c.cmd.Start(); err != nil {
		return err
	}
	c.pid = c.cmd.Process.Pid
	return nil
}

// reap waits for the end of the process, kills what it left behind in its group,
// and collects the exit status; from then on the pid may be anybody's.
func (c *child) reap() error {
	if awaitExit(c.pid) {
		_ = killGroup(c.pid)
		c.forget()
		return c.cmd.Wait()
	}
	err := c.cmd.Wait()
	c.forget()
	_ = killGroup(c.pid)
	return err
}

func (c *child) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reaped = true
}

// kill ends the process and its group at once; it does nothing after the end.
func (c *child) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.killed = true
	if c.pid != 0 && !c.reaped {
		_ = killGroup(c.pid)
	}
}

// endPatience is how long the end of a process may take to be noticed.
const endPatience = 200 * time.Millisecond

// hasEnded reports whether a process was started and has ended without having been
// killed here.
func (c *child) hasEnded() bool {
	c.mu.Lock()
	none := c.killed || c.pid == 0
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

// err says how the process ended; nil while it runs.
func (c *child) err() error {
	select {
	case <-c.exited:
	default:
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.exit == nil {
		return fmt.Errorf("%w: exit status 0", ErrExited)
	}
	return fmt.Errorf("%w: %w", ErrExited, c.exit)
}

// Diagnose has nothing to add: open makes the error.
func (c *child) Diagnose(context.Context) string { return "" }

// Stdout is what the handshake is read from.
func (c *child) Stdout() io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{c.out, c.outPipe}
}

// Stderr is empty for go-plugin, which would end the host over a JSON line whose
// @message is not a string. The process reads it itself.
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
	return c.pid
}

// firstLine returns the first line the process printed.
func (c *child) firstLine() string {
	if c.out == nil {
		return ""
	}
	return c.out.text()
}

// Wait returns when the process has ended and its output has been read.
func (c *child) Wait(context.Context) error {
	<-c.exited
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.exit
}

// Kill kills the process group.
func (c *child) Kill(context.Context) error {
	c.kill()
	return nil
}

// PluginToHost accepts only a socket in the private directory.
func (c *child) PluginToHost(network, addr string) (string, string, error) {
	if goruntime.GOOS == "windows" {
		return network, addr, nil
	}
	if network != "unix" || filepath.Dir(addr) != c.dir {
		return "", "", fmt.Errorf("the agent listens at %s %s, not in its directory %s", network, addr, c.dir)
	}
	return network, addr, nil
}

// HostToPlugin changes nothing.
func (c *child) HostToPlugin(network, addr string) (string, string, error) {
	return network, addr, nil
}
