package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/saga-engine/engine/sdk"
	"github.com/saga-engine/engine/sdk/plugin"
	"github.com/saga-engine/engine/sdk/procgroup"
)

// defaultPath is the search path for programs if neither the call nor the environment of this
// agent has a variable PATH.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// drain is how long the agent still reads the outputs after the program has ended. Without
// this limit, the agent could wait for ever: a process that the program has started may keep
// the outputs open.
const drain = 500 * time.Millisecond

// A program is one execution of an external command for a call. The call's input names the
// command.
type program struct {
	cmd            *exec.Cmd
	stdout, stderr *output
	done           chan error // receives the error of exec.Cmd.Wait at the end of the program
	// true = the directory of the program comes from the input `env`. This input is sensitive, so no
	// error shows the directory.
	hidePath bool
}

// newProgram prepares the program, but does not start it. The program will have its own process
// group. When ctx ends, the agent kills the group.
func newProgram(ctx context.Context, c *sdk.Call, in runIn) (*program, error) {
	_, ownPath := in.Env["PATH"]
	path, err := find(in.Argv[0], in.Cwd, searchPath(in.Env))
	if err != nil {
		return nil, err
	}
	if path == "" {
		where := searchPath(nil)
		if ownPath {
			where = "the directories of PATH in env"
		}
		return nil, invalid("argv: program %q is not in %s", in.Argv[0], where)
	}
	p := &program{
		hidePath: ownPath && !strings.ContainsRune(in.Argv[0], filepath.Separator),
		stdout:   &output{limit: in.MaxOutput}, stderr: &output{limit: in.MaxOutput}, done: make(chan error, 1),
	}
	p.cmd = exec.CommandContext(ctx, path)
	p.cmd.Args, p.cmd.Dir, p.cmd.Env = in.Argv, in.Cwd, environ(c, in.Env)
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.WaitDelay = p.stdout, p.stderr, drain
	p.cmd.SysProcAttr = procgroup.OwnBound()
	p.cmd.Cancel = func() error { return procgroup.Kill(p.cmd.Process) }
	if in.Stdin != "" {
		p.cmd.Stdin = strings.NewReader(in.Stdin)
	}
	return p, nil
}

// searchPath returns the variable PATH of the call's input `env`. If the input has no PATH,
// searchPath returns the PATH of this agent's environment. If the environment has no PATH
// either, it returns defaultPath.
func searchPath(env map[string]string) string {
	if p, ok := env["PATH"]; ok {
		return p
	}
	if p, ok := os.LookupEnv("PATH"); ok {
		return p
	}
	return defaultPath
}

// find returns the absolute path of the program. A name that contains a separator is a path; a
// relative path is relative to cwd. For any other name, find looks in the directories of the search
// path. It skips relative directories, so that it never looks in the working directory by accident.
// If no directory contains the program, find returns "".
func find(name, cwd, search string) (string, error) {
	if strings.ContainsRune(name, filepath.Separator) {
		if !filepath.IsAbs(name) && cwd != "" {
			name = filepath.Join(cwd, name)
		}
		path, err := filepath.Abs(name)
		if err != nil {
			return "", invalid("argv: %v", err)
		}
		return path, nil
	}
	for _, dir := range filepath.SplitList(search) {
		if !filepath.IsAbs(dir) {
			continue
		}
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		if err == nil && !info.IsDir() && (runtime.GOOS == "windows" || info.Mode().Perm()&0o111 != 0) {
			return path, nil
		}
	}
	return "", nil
}

// environ returns the environment of the program: the variables in the parameter `given`, and the
// ENGINE_* variables, which describe the call. Variables in `given` must not replace the ENGINE_*
// variables of the call. So environ leaves out all variables in `given` whose name begins with
// ENGINE_.
func environ(c *sdk.Call, given map[string]string) []string {
	env := make([]string, 0, len(given)+8)
	for name, value := range given {
		if !strings.HasPrefix(name, "ENGINE_") {
			env = append(env, name+"="+value)
		}
	}
	sort.Strings(env)
	env = append(env,
		"ENGINE_IDEMPOTENCY_KEY="+c.IdempotencyKey,
		"ENGINE_RUN="+c.Run,
		"ENGINE_WORKFLOW="+c.Workflow,
		"ENGINE_STEP="+c.Step,
		"ENGINE_ATTEMPT="+strconv.Itoa(c.Attempt),
		"ENGINE_COMPLETE_BY="+c.CompleteBy.UTC().Format(time.RFC3339Nano),
	)
	if c.ForwardKey != "" {
		env = append(env, "ENGINE_FORWARD_KEY="+c.ForwardKey)
	}
	return env
}

// start starts the program. An error of start is a definite failure: the program did not
// run.
func (p *program) start() error {
	started := make(chan error, 1)
	go p.own(started)
	err := <-started
	var at *fs.PathError
	if p.hidePath && errors.As(err, &at) {
		err = fmt.Errorf("%s: %w", p.cmd.Args[0], at.Err)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &sdk.Failure{Code: sdk.CodeAborted, Err: err}
	case errors.As(err, new(*sdk.Failure)):
		return err
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.ENOMEM), errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return &sdk.Failure{Code: sdk.CodeUnavailable, Err: err}
	}
	return &sdk.Failure{Code: sdk.CodeInvalid, Permanent: true, Err: err}
}

// own starts the program and waits for its end, both on one locked thread. The kernel kills the
// program when the thread that started it ends. So this thread must exist until the program has
// ended. The method `own` sends the result of the start to the channel `started`, and the result
// of the wait to the channel p.done.
func (p *program) own(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// The program must not inherit file descriptors that the agent itself has inherited.
	if err := plugin.CloseOnExec(); err != nil {
		started <- &sdk.Failure{Code: sdk.CodeUnavailable, Err: err}
		return
	}
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	err = p.cmd.Wait()
	// Kill the processes that the program has started and that are still running. The reason: after
	// complete-by, no process of this call may run.
	_ = procgroup.Kill(p.cmd.Process)
	p.done <- err
}

// wait waits for the end of the program and returns the error of exec.Cmd.Wait.
func (p *program) wait() error { return <-p.done }

// output is a Writer that keeps the first bytes that are written to it. It keeps one byte more
// than its limit. The additional byte shows that there were more bytes than the limit.
type output struct {
	limit int    // largest number of bytes that the method `text` returns
	buf   []byte // kept bytes
}

// Write accepts all bytes and never fails. After an error the program would write to a broken
// pipe, and this would end the program.
func (o *output) Write(b []byte) (int, error) {
	left := o.limit + 1 - len(o.buf)
	o.buf = append(o.buf, b[:max(0, min(len(b), left))]...)
	return len(b), nil
}

// cut reports whether the program wrote more bytes than the limit.
func (o *output) cut() bool { return len(o.buf) > o.limit }

// text returns the output as valid UTF-8, without the bytes above the limit. It never cuts
// inside of an input value of the call, so the engine still recognises secrets in the text.
func (o *output) text(c *sdk.Call) string {
	if o.cut() {
		return c.Excerpt(string(o.buf), o.limit)
	}
	return strings.ToValidUTF8(string(o.buf), "\uFFFD")
}
