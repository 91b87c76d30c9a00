package chaos

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// A Process is a process that a test has started.
type Process struct {
	Name string // name of the process in messages

	cmd   *exec.Cmd
	stdin io.WriteCloser // standard input, which stays open
	out   *output        // standard output and standard error
	done  chan struct{}  // closed when the process has ended
	err   error          // how the process ended; may be read after done is closed
}

// output keeps the text that a process printed.
type output struct {
	mu sync.Mutex // protects the field below
	b  bytes.Buffer
}

// maxOutput is the size, in bytes, that the kept text of a process may reach. Later text is
// dropped.
const maxOutput = 16 << 20

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.b.Len() < maxOutput {
		o.b.Write(p)
	}
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// start starts the program in the file with the given path. The standard input of the program stays
// open until the program ends. The program gets the environment variables of the test, and those in
// env. The parameter `name` is the name of the new process in messages.
func start(name, path string, env []string, args ...string) (*Process, error) {
	p := &Process{Name: name, cmd: exec.Command(path, args...), out: &output{}, done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// After an engine was killed, its agents may keep the engine's pipes open for a moment.
	p.cmd.WaitDelay = 2 * time.Second
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// Pid returns the process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Output returns the text that the process has printed up to now.
func (p *Process) Output() string { return p.out.String() }

// Done returns a channel that is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Ended reports whether the process has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Signal sends a signal to the process. It returns os.ErrProcessDone if the process has ended.
func (p *Process) Signal(sig syscall.Signal) error {
	if p.Ended() {
		return os.ErrProcessDone
	}
	return p.cmd.Process.Signal(sig)
}

// Kill ends the process with SIGKILL, and waits until the process has ended.
func (p *Process) Kill() {
	// SIGKILL also ends a process that is frozen.
	_ = p.Signal(syscall.SIGKILL)
	<-p.done
}

// Terminate sends SIGTERM, and then does the work of Wait.
func (p *Process) Terminate(limit time.Duration) (int, error) {
	if err := p.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return 0, err
	}
	return p.Wait(limit)
}

// Wait waits until the process has ended, and returns the exit code. The code is -1 if a signal
// ended the process. Wait returns an error if the process still runs after the duration in the
// parameter `limit`.
func (p *Process) Wait(limit time.Duration) (int, error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		return 0, fmt.Errorf("%s did not end in %s", p.Name, limit)
	}
	var exit *exec.ExitError
	switch {
	case p.err == nil, errors.Is(p.err, exec.ErrWaitDelay):
		return p.cmd.ProcessState.ExitCode(), nil
	case errors.As(p.err, &exit):
		return exit.ExitCode(), nil
	}
	return 0, p.err
}
