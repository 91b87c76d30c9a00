package main

import (
	"context"
	"errors"
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
)

// defaultPath is where programs are looked for when neither the call nor the
// agent block says so.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// drain is how long outputs are still read after the program has ended, where a
// process that it left behind holds them open.
const drain = 500 * time.Millisecond

// A program is one run of one.
type program struct {
	cmd            *exec.Cmd
	stdout, stderr *output
	done           chan error
}

// newProgram prepares a run in a process group of its own, which is killed when
// ctx ends.
func newProgram(ctx context.Context, c *sdk.Call, in runIn) (*program, error) {
	path, err := find(in.Argv[0], in.Cwd, searchPath(in.Env))
	if err != nil {
		return nil, err
	}
	p := &program{stdout: &output{limit: in.MaxOutput}, stderr: &output{limit: in.MaxOutput}, done: make(chan error, 1)}
	p.cmd = exec.CommandContext(ctx, path)
	p.cmd.Args, p.cmd.Dir, p.cmd.Env = in.Argv, in.Cwd, environ(c, in.Env)
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.WaitDelay = p.stdout, p.stderr, drain
	p.cmd.SysProcAttr = groupAttr()
	p.cmd.Cancel = func() error { return killGroup(p.cmd.Process) }
	if in.Stdin != "" {
		p.cmd.Stdin = strings.NewReader(in.Stdin)
	}
	return p, nil
}

// searchPath is the PATH of the program, else the agent's own, which env of the
// agent block may allow, else the usual one.
func searchPath(env map[string]string) string {
	if p, ok := env["PATH"]; ok {
		return p
	}
	if p, ok := os.LookupEnv("PATH"); ok {
		return p
	}
	return defaultPath
}

// find makes a path of the program's name. A name with a separator is a path,
// relative to cwd; any other is looked for in the search path only, so never in
// the working directory.
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
	return "", invalid("argv: program %q is not in %s", name, search)
}

// environ is the given environment and what the call says about itself.
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

// start starts the program. Its errors are definite failures: nothing ran.
func (p *program) start() error {
	started := make(chan error, 1)
	go p.own(started)
	err := <-started
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

// own starts the program and stays with it to its end. It keeps its thread: the
// signal that the kernel sends the program when its parent dies is sent when
// the thread that started it does.
func (p *program) own(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := plugin.CloseOnExec(); err != nil { // what the agent itself has inherited
		started <- &sdk.Failure{Code: sdk.CodeUnavailable, Err: err}
		return
	}
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	err = p.cmd.Wait()
	// What the program left running ends with it: past complete-by nothing of
	// this call may go on.
	_ = killGroup(p.cmd.Process)
	p.done <- err
}

// wait returns how the program ended.
func (p *program) wait() error { return <-p.done }

// output keeps the beginning of what is written to it, and one byte more than
// limit: then it is known that there was more.
type output struct {
	limit int
	buf   []byte
}

// Write never fails, so that the program does not die of a broken pipe.
func (o *output) Write(b []byte) (int, error) {
	room := o.limit + 1 - len(o.buf)
	o.buf = append(o.buf, b[:max(0, min(len(b), room))]...)
	return len(b), nil
}

// cut reports whether more was written than is kept.
func (o *output) cut() bool { return len(o.buf) > o.limit }

// text is valid UTF-8. It does not end in the middle of a value of the call, so that
// the engine recognises secrets in it.
func (o *output) text(c *sdk.Call) string {
	if o.cut() {
		return c.Excerpt(string(o.buf), o.limit)
	}
	return strings.ToValidUTF8(string(o.buf), "\uFFFD")
}
