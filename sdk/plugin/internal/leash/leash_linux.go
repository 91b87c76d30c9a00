package leash

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
)

// CanRunFile reports whether Command.File can be used on this system.
const CanRunFile = true

// runPath is the path with which a process opens the file that it has as the descriptor
// runFile.
const runPath = "/proc/self/fd/5"

// A Process is a started process with its descendants. The caller must call Wait.
type Process struct {
	pid        int
	keeper     *exec.Cmd
	limits     Limits
	reports    *bufio.Reader // reads the lines that the keeper writes
	reportPipe *os.File      // the pipe from which the field `reports` reads

	mu         sync.Mutex // protects the fields below
	over       *excess    // the limit that the process has exceeded; nil = none
	keeperPipe *os.File   // the host's end of the pipe that the keeper watches; nil once Wait has returned
}

// Start starts a keeper, which starts the process. It returns an error if the system refuses
// to run the process, or if the keeper could not be started.
func Start(c Command) (*Process, error) {
	said, says, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	held, hold, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, said.Close(), says.Close())
	}
	// The keeper inherits the files `says` and `held` as the descriptors saysFile and heldFile.
	path, files := c.Path, []*os.File{says, held}
	if c.File != nil {
		path, files = runPath, append(files, c.File) // the keeper inherits c.File as the descriptor runFile
	}
	keeper := &exec.Cmd{
		// This path means the program that runs now, even if its file was replaced or removed.
		Path: "/proc/self/exe",
		Args: append([]string{keeperName, c.Private, c.Limits.text(), path}, c.Args...),
		Env:  append(append([]string{}, c.Env...), keeperMark+"=1"),
		Dir:  c.Dir, Stdout: c.Stdout, Stderr: c.Stderr,
		ExtraFiles:  files,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	err = keeper.Start()
	_, _ = says.Close(), held.Close() // the keeper has its own copies
	if err != nil {
		_, _ = said.Close(), hold.Close()
		return nil, fmt.Errorf("start the keeper of the process: %w", err)
	}
	p := &Process{keeper: keeper, limits: c.Limits, reports: bufio.NewReader(said), reportPipe: said, keeperPipe: hold}
	if err := p.started(); err != nil {
		p.Kill()
		_ = keeper.Wait() // ignore this error: the error of the method `started` says what went wrong
		p.close()
		return nil, err
	}
	return p, nil
}

// started waits until the keeper has started the process, and sets p.pid. It returns an error
// if the keeper could not start the process.
func (p *Process) started() error {
	word, number := p.word()
	switch word {
	case wordPid:
		p.pid = number
		return nil
	case wordErrno:
		return syscall.Errno(number)
	}
	return errors.New("the keeper of the process ended before it had started it")
}

// word reads a line from the keeper: a word and a number. The result `word` is "" if there are no
// more lines, or if the line has another form.
func (p *Process) word() (word string, number int) {
	line, err := p.reports.ReadString('\n')
	if err != nil {
		return "", 0
	}
	if _, err := fmt.Sscan(line, &word, &number); err != nil {
		return "", 0
	}
	return word, number
}

// Pid returns the process id. Once Wait has returned, another process may have the same id.
func (p *Process) Pid() int { return p.pid }

// Wait waits until the process has ended, and the keeper has ended all descendants that it can end.
// If the keeper itself is killed, Wait does not wait for the descendants. It returns nil for exit
// status 0, and an *ExitError otherwise. Wait must be called only once.
func (p *Process) Wait() error {
	word, number := p.word()
	over := p.limits.passed(word, number)
	if over != nil {
		p.mu.Lock()
		p.over = over
		p.mu.Unlock()
		word, number = p.word()
	}
	gone, _ := p.word()
	p.close()
	if word != wordExit || gone != wordGone {
		return &ExitError{text: "the keeper of the process was lost: " + fmt.Sprint(p.keeper.Wait())}
	}
	go func() { _ = p.keeper.Wait() }() // the keeper has done its work and ends now
	status := syscall.WaitStatus(number)
	switch {
	case over != nil:
		return over.end()
	case status.Signaled():
		return &ExitError{text: strings.TrimSpace("signal: " + status.Signal().String())}
	case status.ExitStatus() != 0:
		return &ExitError{text: fmt.Sprintf("exit status %d", status.ExitStatus())}
	}
	return nil
}

// Killed returns an error that names the limit which the process has exceeded; nil if it has
// exceeded none. If there is an error, the keeper has already killed the process or is killing it
// now. Another goroutine must have called Wait, because only Wait reads the report of the keeper.
func (p *Process) Killed() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over == nil {
		return nil
	}
	return p.over.end()
}

func (p *Process) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = p.reportPipe.Close(), p.keeperPipe.Close()
	p.keeperPipe = nil
}

// Kill kills the process and all its descendants at once. It does not wait for their end.
// It does nothing after Wait has returned.
func (p *Process) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.keeperPipe != nil {
		_, _ = p.keeperPipe.Write([]byte{killNow}) // fails only if the keeper has ended
	}
}
