//go:build !linux

package leash

import (
	"errors"
	"os/exec"
	"sync"
)

// CanRunFile reports whether an open file can be run.
const CanRunFile = false

// A Process is a started process with its group. Wait must be called.
type Process struct {
	cmd *exec.Cmd

	mu     sync.Mutex // protects following field
	reaped bool       // the process id may belong to another process
}

// Start starts the process. The error is the system's refusal to run it.
func Start(c Command) (*Process, error) {
	p := &Process{cmd: &exec.Cmd{
		Path: c.Path, Args: c.Args, Env: c.Env, Dir: c.Dir, Stdout: c.Stdout, Stderr: c.Stderr, SysProcAttr: groupAttr(),
	}}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	return p, nil
}

// Pid returns the process id. It may belong to another process once Wait has
// returned.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Wait returns when the process has ended, and ends its group: nil after exit
// status 0, an *ExitError after any other end. It is called once.
func (p *Process) Wait() error {
	err := p.cmd.Wait()
	p.mu.Lock()
	p.reaped = true
	p.mu.Unlock()
	_ = killGroup(p.Pid())
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return &ExitError{text: exit.Error()}
	}
	return err
}

// Killed returns nil: there are no limits to pass here.
func (p *Process) Killed() error { return nil }

// Kill kills the process and its group at once. It does not wait for their end,
// and does nothing after the end of the process.
func (p *Process) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		_ = killGroup(p.Pid())
	}
}
