package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/saga-engine/engine/sdk"
)

const version = "0.1.0"

// config holds the arguments of the config {} block in the agent block.
type config struct {
	Ledger string `agent:"ledger,optional" doc:"File in which every call is recorded, one JSON object on each line. Processes with the same file share their memory."`
	Refuse string `agent:"refuse,optional" doc:"If not empty the agent refuses its configuration with this text."`
}

// script holds the inputs that say how the agent answers a call.
type script struct {
	Latency time.Duration `agent:"latency,optional" default:"0s" doc:"How long the call takes."`
	Hold    string        `agent:"hold,optional" doc:"Do not answer before a file of this name exists in the directory of the ledger. The call waits for it after the latency."`
	Effect  string        `agent:"effect,optional" default:"before" enum:"before|after" doc:"Whether the effect happens before the latency and the hold or after them."`
	Fail    *failure      `agent:"fail,optional" doc:"Answer with a failure."`
	Hang    bool          `agent:"hang,optional" default:"false" doc:"Never answer, even if the call is stopped."`
	Crash   bool          `agent:"crash,optional" default:"false" doc:"End the process after the latency and the hold."`
	Times   int           `agent:"times,optional" default:"0" doc:"Hang or crash only for the first calls of a key, this many; 0 = always."`
}

// failure describes an answer that is not a result.
type failure struct {
	Code       string        `agent:"code,optional" default:"unavailable"`
	Message    string        `agent:"message,optional"`
	Permanent  bool          `agent:"permanent,optional" default:"false"`
	Unknown    bool          `agent:"unknown,optional" default:"false" doc:"Answer that the outcome is not known. The effect happens."`
	RetryAfter time.Duration `agent:"retry_after,optional" default:"0s"`
	Times      int           `agent:"times,optional" default:"0" doc:"Only for the first calls of a key, this many; 0 = always."`
}

// callIn is the input of the actions `call` and `call_once`.
type callIn struct {
	script
	Value any `agent:"value,optional" doc:"Returned unchanged."`
}

// doIn is the input of the actions `do` and `do_once`.
type doIn struct {
	callIn
	Undo *script `agent:"undo,optional" doc:"How the call of undo for this call is answered."`
}

// undoIn is the input of the action `undo`. This action is declared with sdk.ByKey, so all its
// inputs must be optional.
type undoIn struct {
	Undo *script `agent:"undo,optional" doc:"How the call is answered."`
}

// valueOut is the output of all actions that return their input value.
type valueOut struct {
	Value any `agent:"value"`
}

// mock holds the state of the agent's process.
type mock struct {
	ledger *ledger
}

// newAgent declares the agent: its actions, inputs and configuration.
func newAgent() *sdk.Agent {
	a := sdk.New("mock", version).Doc("Does what its inputs say. For tests, examples and benchmarks.")
	m := &mock{ledger: newLedger("")}
	sdk.Configure(a, func(_ context.Context, c config) error {
		if c.Refuse != "" {
			return errors.New(c.Refuse)
		}
		m.ledger = newLedger(c.Ledger)
		return nil
	})
	common := func(opts ...sdk.Option) []sdk.Option {
		return append(opts, sdk.AnyErrors(), sdk.Progress())
	}
	sdk.Action(a, "call", m.call(true), common(sdk.Idempotent(), sdk.Cancellable(),
		sdk.Doc("Has one effect for each key and gives its value back."))...)
	sdk.Action(a, "call_once", m.call(false), common(
		sdk.Doc("Has an effect whenever it is called."))...)
	sdk.Action(a, "do", m.do(true), common(sdk.Idempotent(), sdk.Cancellable(), sdk.CompensatedBy("undo"), sdk.Lookup(m.lookup),
		sdk.Doc("Like call; can be asked about and is undone by undo."))...)
	sdk.Action(a, "do_once", m.do(false), common(sdk.CompensatedBy("undo"), sdk.Lookup(m.lookup),
		sdk.Doc("Like call_once; can be asked about and is undone by undo."))...)
	sdk.Action(a, "undo", m.undo, common(sdk.Idempotent(), sdk.Cancellable(), sdk.ByKey(),
		sdk.Doc("Undoes a do by its key; a do that comes after its undo is refused."))...)
	sdk.Action(a, "echo", m.echo, sdk.Idempotent(), sdk.ReadOnly(), sdk.Doc("Gives its value back."))
	sdk.Action(a, "big", m.big, sdk.Idempotent(), sdk.ReadOnly(), sdk.Doc("Gives a string of the wanted length back."))
	sdk.Action(a, "junk", m.junk, sdk.Idempotent(), sdk.ReadOnly(), sdk.Doc("Prints to both outputs, which become log lines."))
	sdk.Action(a, "log", m.log, sdk.Idempotent(), sdk.ReadOnly(), sdk.Doc("Logs a line about the call."))
	return a
}

func (m *mock) call(dedupe bool) func(context.Context, *sdk.Call, callIn) (valueOut, error) {
	return func(ctx context.Context, c *sdk.Call, in callIn) (valueOut, error) {
		value, err := m.play(ctx, c, in.script, effect{key: c.IdempotencyKey, value: in.Value, dedupe: dedupe})
		return valueOut{Value: value}, err
	}
}

func (m *mock) do(dedupe bool) func(context.Context, *sdk.Call, doIn) (valueOut, error) {
	return func(ctx context.Context, c *sdk.Call, in doIn) (valueOut, error) {
		return m.call(dedupe)(ctx, c, in.callIn)
	}
}

func (m *mock) undo(ctx context.Context, c *sdk.Call, in undoIn) (sdk.None, error) {
	if c.ForwardKey == "" {
		return sdk.None{}, &sdk.Failure{Code: sdk.CodeInvalid, Message: "there is no forward key: undo is for compensation only", Permanent: true}
	}
	s := script{}
	if in.Undo != nil {
		s = *in.Undo
	}
	_, err := m.play(ctx, c, s, effect{key: c.IdempotencyKey, undoes: c.ForwardKey, dedupe: true})
	return sdk.None{}, err
}

func (m *mock) lookup(_ context.Context, c *sdk.Call, _ doIn) (valueOut, bool, error) {
	value, done, err := m.ledger.find(c.IdempotencyKey)
	return valueOut{Value: value}, done, err
}

func (m *mock) echo(_ context.Context, _ *sdk.Call, in valueIn) (valueOut, error) {
	return valueOut(in), nil
}

type valueIn struct {
	Value any `agent:"value,optional"`
}

type bigIn struct {
	Bytes int `agent:"bytes"`
}

func (m *mock) big(_ context.Context, _ *sdk.Call, in bigIn) (valueOut, error) {
	if in.Bytes < 0 || in.Bytes > 1<<30 {
		return valueOut{}, &sdk.Failure{Code: sdk.CodeInvalid, Message: "bytes: must be between 0 and 2^30", Permanent: true}
	}
	return valueOut{Value: strings.Repeat("x", in.Bytes)}, nil
}

type junkIn struct {
	Lines int    `agent:"lines,optional" default:"1"`
	Text  string `agent:"text,optional" default:"junk"`
	Panic bool   `agent:"panic,optional" default:"false" doc:"End the process with a panic of this text."`
}

func (m *mock) junk(ctx context.Context, _ *sdk.Call, in junkIn) (sdk.None, error) {
	for i := 0; i < in.Lines && ctx.Err() == nil; i++ {
		fmt.Fprintln(os.Stdout, in.Text)
		fmt.Fprintln(os.Stderr, in.Text)
	}
	if in.Panic {
		// Panic in a new goroutine. After a panic in this goroutine, the SDK would answer the
		// call, and the process would not end.
		go panic(in.Text)
		<-ctx.Done()
	}
	return sdk.None{}, nil
}

type logIn struct {
	Text  string `agent:"text,optional" default:"logged"`
	Level string `agent:"level,optional" default:"info" enum:"debug|info|warn|error"`
}

func (m *mock) log(ctx context.Context, c *sdk.Call, in logIn) (sdk.None, error) {
	level := slog.LevelInfo
	if err := level.UnmarshalText([]byte(in.Level)); err != nil {
		return sdk.None{}, &sdk.Failure{Code: sdk.CodeInvalid, Message: "level: " + err.Error(), Permanent: true}
	}
	c.Logger.Log(ctx, level, in.Text, "answer", 42)
	return sdk.None{}, nil
}
