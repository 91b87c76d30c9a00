package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	goplugin "github.com/hashicorp/go-plugin"

	"github.com/saga-engine/engine/sdk/plugin/internal/leash"
)

// Limits for one execution of `engine-agent-NAME describe`: its longest time, and the largest
// size of its output in bytes.
const (
	describeTimeout = 10 * time.Second
	describeLimit   = 4 << 20
)

// DescribeOptions says which binary Describe runs. Path is required.
type DescribeOptions struct {
	Path     string // path of the binary; absolute, or relative to the working directory
	Checksum []byte // SHA-256 that the binary must have; nil = not checked
	TempDir  string // directory in which to create the private directory; "" = os.TempDir
}

// Describe runs the binary with the argument `describe` for at most ten seconds. The environment
// contains only the variable cookieName. Describe returns the description that the binary prints.
// It makes a private copy, checks the checksum of the copy and runs the copy. If it can make no
// copy, it may run the file itself: see checkedCommand. It does not check the protocol versions:
// see Description.Compatible. The error is a *StartError if the binary is the cause.
func Describe(ctx context.Context, o DescribeOptions) (d Description, err error) {
	path, err := executable(o.Path)
	if err != nil {
		return Description{}, err
	}
	command, done, err := checkedCommand(path, o)
	if err != nil {
		return Description{}, err
	}
	defer func() { err = errors.Join(err, done()) }()
	ctx, cancel := context.WithTimeout(ctx, describeTimeout)
	defer cancel()
	out := &limitedBuffer{limit: describeLimit, full: cancel}
	errs := &limitedBuffer{limit: 64 << 10}
	command.Args = []string{path, "describe"}
	command.Limits = leash.Limits{Memory: DefaultMemory, Threads: DefaultThreads, Files: DefaultFiles}
	command.Env = []string{cookieName + "=describe"} // guardStdout reads this variable
	err = runDescribe(ctx, command, out, errs)
	if err == nil && !out.overflow {
		return parseDescription(path, out.buf.Bytes())
	}
	if out.overflow {
		return Description{}, &StartError{Path: path, Reason: ReasonDescription, Err: fmt.Errorf("describe printed more than %d bytes", describeLimit)}
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return Description{}, &StartError{Path: path, Reason: ReasonTimeout, Hint: notAnAgent, Err: fmt.Errorf("describe took longer than %s", describeTimeout)}
	}
	if ctx.Err() != nil {
		return Description{}, fmt.Errorf("plugin: describe %s: %w", path, ctx.Err())
	}
	var exit *leash.ExitError
	if !errors.As(err, &exit) {
		return Description{}, execError(path, err)
	}
	if text := bytes.TrimSpace(errs.buf.Bytes()); len(text) > 0 {
		err = fmt.Errorf("describe: %w; it said: %s", err, quote(string(text)))
	} else {
		err = fmt.Errorf("describe: %w", err)
	}
	return Description{}, &StartError{Path: path, Reason: ReasonExited, Hint: notAnAgent, Err: err}
}

// checkedCommand checks the file at path and returns a command that runs a private copy of the
// file. If no copy can be made and leash.CanRunFile is true, the command runs the file itself. This
// file stays open from the check to the start. So if another file gets the same path after the
// check, the command still runs the checked file. But a user who may write to the checked file can
// still change its content. The caller must call the function `done` at the end.
func checkedCommand(path string, o DescribeOptions) (c leash.Command, done func() error, err error) {
	dir, err := os.MkdirTemp(o.TempDir, "engine-describe-")
	if err == nil {
		c.Private = dir
		if c.Path, err = checkedCopy(dir, path, o.Checksum); err == nil {
			return c, func() error { return os.RemoveAll(dir) }, nil
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}
	if leash.CanRunFile && !errors.Is(err, goplugin.ErrChecksumsDoNotMatch) {
		// No copy could be made, for example because Describe cannot write a file on this system.
		var file *os.File
		if file, err = openChecked(path, o.Checksum); err == nil {
			return leash.Command{File: file}, file.Close, nil
		}
	}
	switch {
	case errors.Is(err, goplugin.ErrChecksumsDoNotMatch):
		err = changedError(path)
	case errors.Is(err, fs.ErrPermission):
		err = &StartError{Path: path, Reason: ReasonNotExecutable, Hint: "make the file readable for the engine", Err: err}
	default:
		err = &StartError{Path: path, Reason: ReasonInternal, Err: err}
	}
	return leash.Command{}, nil, err
}

// runDescribe runs a process until it ends, or kills the process when ctx ends. It writes the
// standard output to out and the standard error to errs. It returns an error if the process
// could not be started or did not end with exit status 0.
func runDescribe(ctx context.Context, c leash.Command, out, errs io.Writer) error {
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
	c.Stdout, c.Stderr = outW, errW
	process, err := leash.Start(c)
	err = errors.Join(err, outW.Close(), errW.Close())
	if err != nil {
		if process != nil {
			process.Kill()
			_ = process.Wait()
		}
		return errors.Join(err, outR.Close(), errR.Close())
	}
	var read sync.WaitGroup
	// Each goroutine ends when its pipe ends. A child of the process may keep the pipe open after
	// the end of the process. So after the end of the process the pipe gets a read deadline, which
	// also ends the goroutine.
	read.Go(func() { _, _ = io.Copy(out, outR) })
	read.Go(func() { _, _ = io.Copy(errs, errR) })
	stop := context.AfterFunc(ctx, process.Kill)
	err = process.Wait()
	stop()
	late := time.Now().Add(drainTime)
	_, _ = outR.SetReadDeadline(late), errR.SetReadDeadline(late)
	read.Wait()
	_, _ = outR.Close(), errR.Close()
	return err
}

func parseDescription(path string, data []byte) (Description, error) {
	var d Description
	err := json.Unmarshal(data, &d)
	switch {
	case err != nil:
		err = fmt.Errorf("describe printed %s, which is no description: %w", quote(string(data)), err)
	case d.Name == "" || d.Version == "":
		err = errors.New("the description names no agent and version")
	case len(d.Actions) == 0:
		err = errors.New("the description has no actions")
	}
	if err != nil {
		return Description{}, &StartError{Path: path, Reason: ReasonDescription, Hint: notAnAgent, Err: err}
	}
	return d, nil
}

// Compatible returns nil if this engine and the agent at path have a common version of the
// protocol. Otherwise it returns a *StartError that names the versions of both sides and says
// which side to update.
func (d Description) Compatible(path string) error {
	hint, err := mismatch(d.ProtocolVersions)
	if err == nil {
		return nil
	}
	return &StartError{Path: path, Reason: ReasonProtocol, Hint: hint, Err: err}
}

// limitedBuffer keeps the written bytes up to a limit, and drops further bytes.
type limitedBuffer struct {
	buf      bytes.Buffer
	limit    int
	full     func() // called once when the limit is exceeded; nil = not called
	overflow bool   // the limit was exceeded
}

// Write keeps p up to the limit and never fails. So the reader of the pipe does not stop, and
// the writing process does not die because of a broken pipe.
func (b *limitedBuffer) Write(p []byte) (int, error) {
	left := b.limit - b.buf.Len()
	b.buf.Write(p[:min(len(p), left)])
	if len(p) > left && !b.overflow {
		b.overflow = true
		if b.full != nil {
			b.full()
		}
	}
	return len(p), nil
}
