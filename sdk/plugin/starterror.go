package plugin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"syscall"

	goplugin "github.com/hashicorp/go-plugin"
)

// executable returns the absolute form of the path of a binary. With an absolute path, the system
// does not search in the directories of the variable PATH. The error is a *StartError: the file is
// missing, is not a regular file, or is not executable.
func executable(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", &StartError{Path: path, Reason: ReasonMissing, Err: err}
	}
	info, err := os.Stat(abs)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", &StartError{Path: path, Reason: ReasonMissing, Hint: "install the agent, or say where it is with --plugin-dir", Err: errors.New("no such file")}
	case err != nil:
		return "", &StartError{Path: path, Reason: ReasonMissing, Err: err}
	case info.IsDir():
		return "", &StartError{Path: path, Reason: ReasonNotExecutable, Hint: "give the path of the binary itself", Err: errors.New("is a directory")}
	case !info.Mode().IsRegular():
		return "", &StartError{Path: path, Reason: ReasonNotExecutable, Hint: "give the path of the binary itself", Err: errors.New("is not a regular file")}
	case goruntime.GOOS != "windows" && info.Mode().Perm()&0o111 == 0:
		return "", &StartError{Path: path, Reason: ReasonNotExecutable, Hint: "chmod +x " + path, Err: errors.New("is not executable")}
	}
	return abs, nil
}

// execError returns a *StartError with a hint why the system did not start a binary. The
// parameter `err` is the error of the system.
func execError(path string, err error) *StartError {
	e := &StartError{Path: path, Reason: ReasonNotExecutable, Err: err}
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		e.Hint = "it is not a program for " + goruntime.GOOS + "/" + goruntime.GOARCH + "; install the one that is"
	case errors.Is(err, fs.ErrPermission):
		e.Hint = "check the permissions of the file, and that it and the temporary directory are on file systems not mounted noexec"
	case errors.Is(err, fs.ErrNotExist):
		e.Hint = "the interpreter or dynamic loader that the file names does not exist on this machine"
	}
	return e
}

const notAnAgent = "is it an agent? Every agent prints its schema when it is run with the argument describe"

// startError returns the error that people see when a start has failed. It finds the cause
// from the output of the process and from the parameter `ended`, which is the result of the
// method hasEnded. It does not depend on the texts of go-plugin's errors.
func (c *child) startError(ctx context.Context, err error, ended bool) error {
	path := c.options.Path
	line := c.firstLine()
	parts := strings.Split(line, "|")
	var launch *launchError
	switch {
	case errors.Is(err, goplugin.ErrChecksumsDoNotMatch):
		return changedError(path)
	case errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("plugin: start agent %s: %w", path, ctx.Err())
	case errors.As(err, &launch):
		return execError(path, launch.err)
	case line == "" && ctx.Err() != nil:
		return &StartError{Path: path, Reason: ReasonTimeout, Hint: notAnAgent, Err: c.withOutput("printed no handshake within " + c.options.StartTimeout.String())}
	case line == "" && c.pidNumber() != 0:
		return &StartError{Path: path, Reason: ReasonExited, Hint: notAnAgent, Err: c.withOutput("ended before its handshake")}
	case line != "" && (len(parts) < 5 || parts[0] != strconv.Itoa(goplugin.CoreProtocolVersion)):
		return &StartError{Path: path, Reason: ReasonHandshake, Hint: notAnAgent, Err: fmt.Errorf("printed %s instead of a handshake", quote(line))}
	case line != "" && parts[4] != string(goplugin.ProtocolGRPC):
		return &StartError{Path: path, Reason: ReasonProtocol, Hint: "rebuild the agent with this engine's SDK", Err: fmt.Errorf("speaks %s, not grpc", quote(parts[4]))}
	}
	if len(parts) >= 5 {
		if v, errV := strconv.Atoi(parts[1]); errV == nil {
			if hint, err := mismatch([]int{v}); err != nil {
				return &StartError{Path: path, Reason: ReasonProtocol, Hint: hint, Err: err}
			}
		}
		if ctx.Err() != nil {
			return &StartError{Path: path, Reason: ReasonTimeout, Err: c.withOutput("did not answer within " + c.options.StartTimeout.String() + " after its handshake")}
		}
		reason := ReasonHandshake
		if ended {
			reason = ReasonExited
		}
		return &StartError{Path: path, Reason: reason, Err: fmt.Errorf("connect after the handshake: %w", err)}
	}
	return &StartError{Path: path, Reason: ReasonInternal, Err: err}
}

// withOutput returns an error whose text is the parameter `what`, followed by the latest lines
// that the process printed.
func (c *child) withOutput(what string) error {
	if tail := c.lines.recent(); tail != "" {
		return fmt.Errorf("%s; it said: %s", what, quote(tail))
	}
	return errors.New(what)
}

func quote(text string) string { return strconv.Quote(shortened(text, 300)) }
