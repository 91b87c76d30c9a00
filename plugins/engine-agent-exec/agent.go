package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/saga-engine/engine/sdk"
)

const version = "0.1.0"

// Error codes that this agent has in addition to those of the SDK. With each of these codes, the
// outcome is unknown.
const (
	// The program ended with an exit code that the input `errors` does not list.
	codeExit   = "exit_nonzero"
	codeKilled = "killed" // a signal ended the program
)

// Default value and largest value of the input `max_output`, in bytes. The agent keeps at most
// `max_output` bytes of each output of a program.
const (
	defaultOutput = 64 << 10
	maxOutput     = 1 << 20
)

// runIn is the input of the actions `run` and `query`.
type runIn struct {
	Argv      []string          `agent:"argv" doc:"Program and arguments. No shell is involved; write [\"sh\", \"-c\", …] for one."`
	Env       map[string]string `agent:"env,optional,sensitive" doc:"The program's whole environment, in addition to ENGINE_*."`
	Stdin     string            `agent:"stdin,optional" doc:"Standard input of the program; default: empty."`
	Cwd       string            `agent:"cwd,optional" doc:"Working directory; default: the engine's."`
	OKCodes   []int             `agent:"ok_codes,optional" doc:"Exit codes that are results; default [0]."`
	Errors    map[string]string `agent:"errors,optional,codes" pattern:"[0-9]|[1-9][0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-5]" doc:"Exit code to error code. A code listed here is a definite failure: nothing was done."`
	MaxOutput int               `agent:"max_output,optional" default:"65536" doc:"Bytes kept of each output, at most 1048576; the rest is dropped."`
	Parse     string            `agent:"parse,optional" default:"auto" enum:"auto|json|none" doc:"Whether stdout is read as JSON; with json it must be."`
}

// runOut is the output of the actions `run` and `query`.
type runOut struct {
	ExitCode  int    `agent:"exit_code"`
	Stdout    string `agent:"stdout"`
	Stderr    string `agent:"stderr"`
	Truncated bool   `agent:"truncated" doc:"An output was longer than max_output."`
	JSON      any    `agent:"json" doc:"Standard output, if it is JSON."`
}

// newAgent declares the agent: its actions, inputs and error codes.
func newAgent() *sdk.Agent {
	a := sdk.New("exec", version).Doc("Runs programs on the engine's machine.")
	// Only the action `query` is declared with sdk.Cancellable, because it changes nothing. If the
	// agent kills a program of the action `run`, the program may have done a part of its work, and
	// the outcome is unknown.
	opts := func(o ...sdk.Option) []sdk.Option {
		return append(o, sdk.Errors(codeExit, codeKilled), sdk.AnyErrors())
	}
	sdk.Action(a, "run", run, opts(sdk.Doc(
		"Runs a program. Write idempotent = true on the step if the program honours ENGINE_IDEMPOTENCY_KEY or may simply be repeated."))...)
	sdk.Action(a, "query", run, opts(sdk.ReadOnly(), sdk.Idempotent(), sdk.Cancellable(), sdk.Doc(
		"Runs a program that changes nothing."))...)
	return a
}

// rules holds the meaning of each exit code. The method `check` makes the rules from the inputs
// `ok_codes` and `errors`.
type rules struct {
	ok     map[int]bool   // exit codes that mean success
	errors map[int]string // error code for each exit code that is a definite failure
}

// check checks the inputs before the program is started, and returns the rules. If an input is
// wrong, the error is a definite failure.
func (in *runIn) check() (rules, error) {
	r := rules{ok: map[int]bool{}, errors: map[int]string{}}
	switch {
	case len(in.Argv) == 0 || in.Argv[0] == "":
		return r, invalid("argv: names no program")
	case in.MaxOutput < 0 || in.MaxOutput > maxOutput:
		return r, invalid("max_output: must be between 0 and %d", maxOutput)
	}
	for _, s := range append(in.Argv[:len(in.Argv):len(in.Argv)], in.Cwd) {
		if strings.ContainsRune(s, 0) {
			return r, invalid("argv and cwd: must not contain a zero byte")
		}
	}
	for name, value := range in.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
			// Do not show the name: env is sensitive, and a name such as "TOKEN=x" holds a value.
			return r, invalid(`env: a name is empty or contains "=" or a zero byte, or a value contains a zero byte`)
		}
	}
	for _, c := range in.OKCodes {
		r.ok[c] = true
	}
	if len(in.OKCodes) == 0 {
		r.ok[0] = true
	}
	for text, code := range in.Errors {
		n, err := strconv.Atoi(text)
		if err != nil {
			return r, invalid("errors: %q is not an exit code", text)
		}
		r.errors[n] = code
	}
	return r, nil
}

// run starts the program and waits for its end. Usually the exit code decides whether the outcome
// is a result, a definite failure or unknown. The outcome is also unknown if ctx has ended, if a
// signal ended the program, or if the input `parse` needs JSON and the output is not JSON.
func run(ctx context.Context, c *sdk.Call, in runIn) (runOut, error) {
	r, err := in.check()
	if err != nil {
		return runOut{}, err
	}
	p, err := newProgram(ctx, c, in)
	if err != nil {
		return runOut{}, err
	}
	if err := p.start(); err != nil {
		return runOut{}, err
	}
	err = p.wait()
	out := runOut{
		ExitCode: p.cmd.ProcessState.ExitCode(), Stdout: p.stdout.text(c), Stderr: p.stderr.text(c),
		Truncated: p.stdout.cut() || p.stderr.cut(),
	}
	switch {
	case ctx.Err() != nil:
		return runOut{}, sdk.Unknown(fmt.Errorf("%s was killed: %w", in.Argv[0], context.Cause(ctx)), sdk.CodeAborted)
	case out.ExitCode < 0:
		return runOut{}, sdk.Unknown(fmt.Errorf("%s ended by a signal: %w%s", in.Argv[0], err, tail(c, out.Stderr)), codeKilled)
	case r.errors[out.ExitCode] != "":
		return runOut{}, &sdk.Failure{Code: r.errors[out.ExitCode], Message: fmt.Sprintf("%s ended with exit code %d%s", in.Argv[0], out.ExitCode, tail(c, out.Stderr))}
	case !r.ok[out.ExitCode]:
		return runOut{}, sdk.Unknown(fmt.Errorf("%s ended with exit code %d%s", in.Argv[0], out.ExitCode, tail(c, out.Stderr)), codeExit)
	}
	if in.Parse == "none" {
		return out, nil
	}
	out.JSON, err = parseJSON([]byte(out.Stdout))
	if err != nil && in.Parse == "json" {
		return runOut{}, sdk.Unknown(fmt.Errorf("standard output of %s is not JSON", in.Argv[0]), sdk.CodeBadReply)
	}
	return out, nil
}

func invalid(format string, args ...any) error {
	return &sdk.Failure{Code: sdk.CodeInvalid, Message: fmt.Sprintf(format, args...), Permanent: true}
}

// parseJSON parses one JSON document. Numbers keep their exact form. parseJSON returns an error if
// `data` is not JSON, or contains more than one document.
func parseJSON(data []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var tree any
	if err := dec.Decode(&tree); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON document")
	}
	return tree, nil
}

// tail returns ": " and the last line of a program's standard error, for a message. If there is no
// such line, tail returns "". The SDK cuts a long line in such a way that the engine still
// recognises secrets in the line. Control characters stay in the line, too, so that secrets stay
// recognisable. The commands that show the message replace these characters.
func tail(c *sdk.Call, stderr string) string {
	text := strings.TrimSpace(stderr)
	const most = 300
	line := text[strings.LastIndexByte(text, '\n')+1:]
	text = strings.TrimSpace(c.ExcerptEnd(text, min(len(line), most)))
	if text == "" {
		return ""
	}
	return ": " + text
}
