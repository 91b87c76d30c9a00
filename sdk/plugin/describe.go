package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"time"
)

// Limits on what describe may take.
const (
	describeTimeout = 10 * time.Second
	describeLimit   = 4 << 20
)

// Describe runs the binary's describe mode, in an empty environment, for at most
// ten seconds, and returns what it prints. Whether the protocol versions fit is
// another question: see Description.Compatible. The error is a *StartError where
// the binary is to blame.
func Describe(ctx context.Context, path string) (Description, error) {
	path, err := executable(path)
	if err != nil {
		return Description{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, describeTimeout)
	defer cancel()
	out := &limitedBuffer{limit: describeLimit, full: cancel}
	errs := &limitedBuffer{limit: 64 << 10}
	cmd := exec.CommandContext(ctx, path, "describe")
	cmd.Env = []string{cookieName + "=describe"} // for the guard of standard output
	cmd.Stdout, cmd.Stderr = out, errs
	cmd.SysProcAttr = describeAttr()
	cmd.Cancel = func() error { return killGroup(cmd.Process.Pid) }
	cmd.WaitDelay = time.Second
	if err := CloseOnExec(); err != nil {
		return Description{}, err
	}
	err = cmd.Run()
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
	var exit *exec.ExitError
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

const notAnAgent = "is it an agent? Every agent prints its schema when it is run with the argument describe"

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

// Compatible returns nil if this engine can talk to the agent at path, and
// otherwise a *StartError that names both sides' versions and which to update.
func (d Description) Compatible(path string) error {
	hint, err := mismatch(d.ProtocolVersions)
	if err == nil {
		return nil
	}
	return &StartError{Path: path, Reason: ReasonProtocol, Hint: hint, Err: err}
}

// limitedBuffer keeps what is written up to a limit.
type limitedBuffer struct {
	buf      bytes.Buffer
	limit    int
	full     func() // called once when the limit is passed; may be nil
	overflow bool
}

// Write never fails, so that the writer is not killed by a broken pipe.
func (b *limitedBuffer) Write(p []byte) (int, error) {
	room := b.limit - b.buf.Len()
	b.buf.Write(p[:min(len(p), room)])
	if len(p) > room && !b.overflow {
		b.overflow = true
		if b.full != nil {
			b.full()
		}
	}
	return len(p), nil
}
