package plugin

import (
	"context"
	"errors"
	"os"
	"os/exec"
	goruntime "runtime"
	"strconv"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin/runner"

	"github.com/saga-engine/engine/sdk/plugin/internal/leash"
)

// drainTime is how long the host still reads the output after the process has ended. Usually the
// output ends sooner. But if a descendant could not be killed and keeps the pipe open, the output
// does not end.
const drainTime = 500 * time.Millisecond

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

// forgetCopy removes the checked copy of the binary. Open calls forgetCopy only after the
// handshake. The reason: if the binary is a script, the interpreter of the script opens the copy
// only some time after the start.
func (c *child) forgetCopy() {
	if c.copied != "" && goruntime.GOOS != "windows" { // Windows cannot remove a running program
		_ = os.Remove(c.copied) // if this fails, go-plugin removes the copy with the directory
	}
}
