//go:build !linux

package leash

import (
	"errors"
	"os/exec"
	"sync"

	"github.com/saga-engine/engine/sdk/procgroup"
)

// CanRunFile reports whether Command.File can be used on this system.
const CanRunFile = false

// A Process is a started process with its process group. The caller must call Wait.
type Process struct {
	cmd *exec.Cmd

	mu     sync.Mutex // protects the field below
	reaped bool       // the process has ended, and another process may have the same id
}

// Start starts a process. It returns an error if the system refuses to run the process.
func Start(c Command) (*Process, error) {
	p := &Process{cmd: &exec.Cmd{
		Path: c.Path, Args: c.Args, Env: c.Env, Dir: c.Dir, Stdout: c.Stdout, Stderr: c.Stderr, SysProcAttr: procgroup.Own(),
	}}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	return p, nil
}

// Pid returns the process id. Once Wait has returned, another process may have the same id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Wait waits until the process has ended, and then kills its process group. It returns nil
// for exit status 0, and an *ExitError otherwise. Wait must be called only once.
func (p *Process) Wait() error {
	err := p.cmd.Wait()
	p.mu.Lock()
	p.reaped = true
	p.mu.Unlock()
	_ = procgroup.Kill(p.cmd.Process)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return &ExitError{text: exit.Error()}
	}
	return err
}

// Killed returns nil, because on this system there are no limits.
func (p *Process) Killed() error { return nil }

// Kill kills the process and its group at once. It does not wait for their end. It does
// nothing after the process has ended.
func (p *Process) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		_ = procgroup.Kill(p.cmd.Process)
	}
}
