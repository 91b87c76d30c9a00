package sdk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/sdk"
)

// do runs an action that is expected to answer.
func do(t *testing.T, a *sdk.Agent, action, input string) sdk.Reply {
	t.Helper()
	reply, ok := a.Invoke(t.Context(), request(action, input), quiet)
	if !ok {
		t.Fatalf("Invoke(%s) was silent", action)
	}
	return reply
}

var quiet = sdk.InvokeOptions{Logger: slog.New(slog.DiscardHandler)}

func request(action, input string) sdk.Request {
	return sdk.Request{
		Action: action, Purpose: sdk.PurposeDo, Input: json.RawMessage(input), IdempotencyKey: "k",
		CompleteBy: time.Now().Add(time.Minute), Run: "r", Step: "s", Attempt: 1,
	}
}

func nothing(context.Context, *sdk.Call, sdk.None) (sdk.None, error) { return sdk.None{}, nil }

// fails makes an agent whose one action returns err.
func fails(err error, opts ...sdk.Option) *sdk.Agent {
	a := sdk.New("a", "1.0.0")
	sdk.Action(a, "x", func(context.Context, *sdk.Call, sdk.None) (sdk.None, error) { return sdk.None{}, err }, opts...)
	return a
}

// S31: each kind of error becomes the outcome and the code it stands for.
func TestErrorsBecomeOutcomes(t *testing.T) {
	errGone := errors.New("gone")
	for name, test := range map[string]struct {
		err  error
		want sdk.Reply
	}{
		"nil":                  {nil, sdk.Reply{Outcome: sdk.OutcomeResult, Output: json.RawMessage(`{}`)}},
		"plain":                {errGone, sdk.Reply{Outcome: sdk.OutcomeUnknown, Code: "internal", Message: "gone"}},
		"failure":              {&sdk.Failure{Code: "no", Message: "m"}, sdk.Reply{Outcome: sdk.OutcomeFailed, Code: "no", Message: "m"}},
		"failure, all fields":  {&sdk.Failure{Code: "no", Permanent: true, RetryAfter: time.Second, Err: errGone}, sdk.Reply{Outcome: sdk.OutcomeFailed, Code: "no", Message: "gone", Permanent: true, RetryAfter: time.Second}},
		"failure, wrapped":     {fmt.Errorf("do x: %w", &sdk.Failure{Code: "no"}), sdk.Reply{Outcome: sdk.OutcomeFailed, Code: "no", Message: "do x: no"}},
		"failure, negative":    {&sdk.Failure{Code: "no", RetryAfter: -1}, sdk.Reply{Outcome: sdk.OutcomeFailed, Code: "no", Message: "no"}},
		"code, matching":       {sdk.Code(fmt.Errorf("w: %w", errGone), errGone, "no"), sdk.Reply{Outcome: sdk.OutcomeFailed, Code: "no", Message: "w: gone"}},
		"code, other":          {sdk.Code(errors.New("other"), errGone, "no"), sdk.Reply{Outcome: sdk.OutcomeUnknown, Code: "internal", Message: "other"}},
		"code, nil":            {sdk.Code(nil, errGone, "no"), sdk.Reply{Outcome: sdk.OutcomeResult, Output: json.RawMessage(`{}`)}},
		"code, nested":         {sdk.Code(sdk.Code(errGone, errGone, "no"), errGone, "other"), sdk.Reply{Outcome: sdk.OutcomeFailed, Code: "no", Message: "gone"}},
		"not declared":         {&sdk.Failure{Code: "odd"}, sdk.Reply{Outcome: sdk.OutcomeFailed, Code: "odd", Message: "odd"}},
		"standard":             {&sdk.Failure{Code: "rate_limited"}, sdk.Reply{Outcome: sdk.OutcomeFailed, Code: "rate_limited", Message: "rate_limited"}},
		"no code":              {&sdk.Failure{Message: "m"}, sdk.Reply{Outcome: sdk.OutcomeUnknown, Code: "internal", Message: "m"}},
		"odd code":             {&sdk.Failure{Code: "No Money\xff"}, sdk.Reply{Outcome: sdk.OutcomeUnknown, Code: "internal", Message: "No Money"}},
		"engine's code":        {&sdk.Failure{Code: "timeout"}, sdk.Reply{Outcome: sdk.OutcomeUnknown, Code: "timeout", Message: "timeout"}},
		"unknown":              {sdk.Unknown(errGone, "unavailable"), sdk.Reply{Outcome: sdk.OutcomeUnknown, Code: "unavailable", Message: "gone"}},
		"unknown, nil":         {sdk.Unknown(nil, "unavailable"), sdk.Reply{Outcome: sdk.OutcomeResult, Output: json.RawMessage(`{}`)}},
		"unknown, no code":     {sdk.Unknown(errGone, ""), sdk.Reply{Outcome: sdk.OutcomeUnknown, Code: "internal", Message: "gone"}},
		"unknown with a wish":  {sdk.Unknown(&sdk.Failure{Code: "unavailable", RetryAfter: time.Minute, Err: errGone}, "unavailable"), sdk.Reply{Outcome: sdk.OutcomeUnknown, Code: "unavailable", Message: "gone", RetryAfter: time.Minute}},
		"a wish, no code":      {sdk.Unknown(&sdk.Failure{RetryAfter: time.Minute, Err: errGone}, ""), sdk.Reply{Outcome: sdk.OutcomeUnknown, Code: "internal", Message: "gone", RetryAfter: time.Minute}},
		"unknown of a failure": {sdk.Unknown(&sdk.Failure{Code: "no"}, "unavailable"), sdk.Reply{Outcome: sdk.OutcomeUnknown, Code: "unavailable", Message: "no"}},
		"failure of an unknown": {
			&sdk.Failure{Code: "no", Err: sdk.Unknown(errGone, "unavailable")},
			sdk.Reply{Outcome: sdk.OutcomeFailed, Code: "no", Message: "gone"},
		},
		"joined, one unknown": {
			errors.Join(&sdk.Failure{Code: "no"}, sdk.Unknown(errGone, "unavailable")),
			sdk.Reply{Outcome: sdk.OutcomeUnknown, Code: "unavailable", Message: "no\ngone"},
		},
		"joined, failure": {
			errors.Join(errGone, &sdk.Failure{Code: "no"}),
			sdk.Reply{Outcome: sdk.OutcomeFailed, Code: "no", Message: "gone\nno"},
		},
		"long": {errors.New(strings.Repeat("ä", 5000)), sdk.Reply{Outcome: sdk.OutcomeUnknown, Code: "internal", Message: strings.Repeat("ä", 2048)}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := do(t, fails(test.err, sdk.Errors("no")), "x", `{}`); !reflect.DeepEqual(got, test.want) {
				t.Errorf("reply = %+v\nwant    %+v", got, test.want)
			}
		})
	}
}

func TestPanicAndGoexitAreUnknown(t *testing.T) {
	for name, f := range map[string]func(){
		"panic":     func() { panic("oh") },
		"nil deref": func() { var p *int; _ = *p },
		"goexit":    runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			a := sdk.New("a", "1.0.0")
			sdk.Action(a, "x", func(context.Context, *sdk.Call, sdk.None) (sdk.None, error) {
				f()
				return sdk.None{}, nil
			})
			reply, ok := a.Invoke(t.Context(), request("x", `{}`), sdk.InvokeOptions{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
			if !ok || reply.Outcome != sdk.OutcomeUnknown || reply.Code != sdk.CodeInternal {
				t.Errorf("reply = %+v, %t; want unknown internal", reply, ok)
			}
			if !strings.Contains(log.String(), "agent_test.go") || !strings.Contains(log.String(), "run=r step=s attempt=1") {
				t.Errorf("log has no stack or no tags: %s", &log)
			}
			for line := range strings.Lines(log.String()) {
				if strings.Contains(line, "agent_test.go") != strings.Contains(line, "level=DEBUG") {
					t.Errorf("the stack stands above debug level: %s", line)
				}
			}
		})
	}
}

// S28: past complete-by there is silence, by whichever clock is earlier.
func TestSilenceAfterTheDeadline(t *testing.T) {
	for name, set := range map[string]func(*sdk.Request){
		"complete-by":          func(r *sdk.Request) { r.CompleteBy = time.Now().Add(time.Second) },
		"complete-by is wall":  func(r *sdk.Request) { r.CompleteBy = time.Now().Round(0).Add(time.Second) },
		"remaining is earlier": func(r *sdk.Request) { r.Remaining = time.Second },
		"remaining is later":   func(r *sdk.Request) { r.CompleteBy, r.Remaining = time.Now().Add(time.Second), time.Hour },
	} {
		for behaviour, late := range map[string]time.Duration{"ends with its context": 0, "is late": time.Minute} {
			t.Run(name+"/"+behaviour, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var cancelled, ended, events atomic.Int64
					start := time.Now()
					a := sdk.New("a", "1.0.0")
					sdk.Action(a, "x", func(ctx context.Context, c *sdk.Call, _ sdk.None) (sdk.None, error) {
						if deadline, ok := ctx.Deadline(); !ok || !deadline.Equal(c.CompleteBy) {
							t.Errorf("context's deadline = %v, complete-by %v", deadline, c.CompleteBy)
						}
						<-ctx.Done()
						cancelled.Store(int64(time.Since(start)))
						<-time.After(late)
						c.Heartbeat(1, "late")
						if err := c.Checkpoint(1, nil); !errors.Is(err, sdk.ErrCallEnded) {
							t.Errorf("late Checkpoint = %v, want ErrCallEnded", err)
						}
						return sdk.None{}, nil
					}, sdk.Heartbeats(), sdk.Checkpoints())
					req := request("x", `{}`)
					set(&req)
					reply, ok := a.Invoke(t.Context(), req, sdk.InvokeOptions{
						Logger: quiet.Logger, OnEvent: func(sdk.Event) { events.Add(1) }, Ended: func() { ended.Add(1) },
					})
					if ok || reply.Outcome != sdk.OutcomeInvalid {
						t.Errorf("Invoke = %+v, %t; want silence", reply, ok)
					}
					if took := time.Since(start); took != time.Second {
						t.Errorf("Invoke returned after %s, want 1s", took)
					}
					<-time.After(2 * late)
					synctest.Wait()
					if time.Duration(cancelled.Load()) != time.Second || ended.Load() != 1 || events.Load() != 0 {
						t.Errorf("cancelled at %s, ended %d times, %d events", time.Duration(cancelled.Load()), ended.Load(), events.Load())
					}
				})
			})
		}
	}
	t.Run("passed before", func(t *testing.T) {
		a := sdk.New("a", "1.0.0")
		sdk.Action(a, "x", func(context.Context, *sdk.Call, sdk.None) (sdk.None, error) {
			t.Error("called after complete-by")
			return sdk.None{}, nil
		})
		for _, by := range []time.Time{{}, time.Now().Add(-time.Nanosecond)} {
			req := request("x", `{}`)
			req.CompleteBy = by
			if reply, ok := a.Invoke(t.Context(), req, quiet); ok {
				t.Errorf("Invoke with complete-by %v = %+v, want silence", by, reply)
			}
		}
	})
}

// A cancelled call is awaited: what the action says about it is worth having.
func TestCancelIsHandedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := sdk.New("a", "1.0.0")
		sdk.Action(a, "stops", func(ctx context.Context, _ *sdk.Call, _ sdk.None) (sdk.None, error) {
			<-ctx.Done()
			<-time.After(time.Second)
			return sdk.None{}, fmt.Errorf("stopped: %w", ctx.Err())
		})
		sdk.Action(a, "finishes", func(ctx context.Context, _ *sdk.Call, _ sdk.None) (sdk.None, error) {
			<-ctx.Done()
			return sdk.None{}, nil
		})
		for action, want := range map[string]sdk.Reply{
			"stops":    {Outcome: sdk.OutcomeUnknown, Code: sdk.CodeAborted, Message: "stopped: context canceled"},
			"finishes": {Outcome: sdk.OutcomeResult, Output: json.RawMessage(`{}`)},
		} {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			reply, ok := a.Invoke(ctx, request(action, `{}`), quiet)
			if !ok || !reflect.DeepEqual(reply, want) {
				t.Errorf("%s = %+v, %t; want %+v", action, reply, ok, want)
			}
		}
	})
}

func TestRequestsThatMakeNoSense(t *testing.T) {
	a := fails(nil)
	sdk.Action(a, "bad", func(context.Context, *sdk.Call, struct{ A int }) (sdk.None, error) { return sdk.None{}, nil })
	for name, change := range map[string]func(*sdk.Request){
		"no such action": func(r *sdk.Request) { r.Action = "y" },
		"no purpose":     func(r *sdk.Request) { r.Purpose = 0 },
		"odd purpose":    func(r *sdk.Request) { r.Purpose = 9 },
		"no lookup":      func(r *sdk.Request) { r.Purpose = sdk.PurposeLookup },
		"no input":       func(r *sdk.Request) { r.Input = nil },
		"null":           func(r *sdk.Request) { r.Input = json.RawMessage(`null`) },
		"list":           func(r *sdk.Request) { r.Input = json.RawMessage(`[]`) },
		"two documents":  func(r *sdk.Request) { r.Input = json.RawMessage(`{}{}`) },
		"unfinished":     func(r *sdk.Request) { r.Input = json.RawMessage(`{`) },
		"unusable":       func(r *sdk.Request) { r.Action = "bad" },
	} {
		t.Run(name, func(t *testing.T) {
			req := request("x", `{}`)
			change(&req)
			var ended int
			reply, ok := a.Invoke(t.Context(), req, sdk.InvokeOptions{Logger: quiet.Logger, Ended: func() { ended++ }})
			if !ok || reply.Outcome != sdk.OutcomeFailed || reply.Code != sdk.CodeInvalid || !reply.Permanent || ended != 1 {
				t.Errorf("reply = %+v, %t, ended %d; want a permanent failure, invalid", reply, ok, ended)
			}
		})
	}
}

func TestLookup(t *testing.T) {
	type out struct {
		ID string `agent:"id"`
	}
	a := sdk.New("a", "1.0.0")
	sdk.Action(a, "x", func(context.Context, *sdk.Call, sdk.None) (out, error) {
		t.Error("a lookup did the work")
		return out{}, nil
	}, sdk.Lookup(func(_ context.Context, c *sdk.Call, _ sdk.None) (out, bool, error) {
		switch c.IdempotencyKey {
		case "done":
			return out{"id-1"}, true, nil
		case "never":
			return out{}, false, nil
		case "failure":
			return out{}, false, &sdk.Failure{Code: sdk.CodeDenied}
		}
		return out{}, true, errors.New("cannot tell")
	}))
	for key, want := range map[string]sdk.Reply{
		"done":    {Outcome: sdk.OutcomeResult, Output: json.RawMessage(`{"id":"id-1"}`)},
		"never":   {Outcome: sdk.OutcomeNotDone},
		"failure": {Outcome: sdk.OutcomeUnknown, Code: "denied", Message: "denied"},
		"other":   {Outcome: sdk.OutcomeUnknown, Code: "internal", Message: "cannot tell"},
	} {
		req := request("x", `{}`)
		req.Purpose, req.IdempotencyKey = sdk.PurposeLookup, key
		if got, ok := a.Invoke(t.Context(), req, quiet); !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("lookup of %s = %+v, want %+v", key, got, want)
		}
	}
}

func TestEvents(t *testing.T) {
	run := func(opts ...sdk.Option) (events []sdk.Event, errs []error) {
		a := sdk.New("a", "1.0.0")
		sdk.Action(a, "x", func(_ context.Context, c *sdk.Call, _ sdk.None) (sdk.None, error) {
			c.Heartbeat(7, strings.Repeat("n", 2000))
			blob := []byte("b")
			errs = append(errs, c.Checkpoint(1, blob), c.Checkpoint(2, make([]byte, sdk.MaxCheckpoint+1)))
			blob[0] = 'x'
			return sdk.None{}, nil
		}, opts...)
		o := quiet
		o.OnEvent = func(ev sdk.Event) { events = append(events, ev) }
		a.Invoke(t.Context(), request("x", `{}`), o)
		return events, errs
	}
	events, errs := run(sdk.Progress(), sdk.Checkpoints())
	want := []sdk.Event{sdk.Heartbeat{Progress: 1, Note: strings.Repeat("n", 1024)}, sdk.Checkpoint{Number: 1, Blob: []byte("b")}}
	if !reflect.DeepEqual(events, want) || errs[0] != nil || errs[1] == nil {
		t.Errorf("events = %v, errors %v", events, errs)
	}
	if events, errs := run(); len(events) != 0 || errs[0] == nil {
		t.Errorf("without the capabilities: events = %v, errors %v; want none and an error", events, errs)
	}
	var c sdk.Call
	c.Heartbeat(0.5, "in a unit test")
	if err := c.Checkpoint(1, nil); err != nil {
		t.Errorf("Checkpoint of the zero Call = %v", err)
	}
}

func TestConfigureOnce(t *testing.T) {
	type config struct {
		URL string `agent:"url"`
		Max int    `agent:"max,optional" default:"3"`
	}
	made := func(fn func(config) error) (*sdk.Agent, *[]config) {
		var got []config
		a := fails(nil)
		sdk.Configure(a, func(_ context.Context, c config) error {
			got = append(got, c)
			return fn(c)
		})
		return a, &got
	}
	t.Run("given", func(t *testing.T) {
		a, got := made(func(config) error { return nil })
		if err := a.Configure(t.Context(), json.RawMessage(`{"url":"u"}`)); err != nil {
			t.Fatal(err)
		}
		if err := a.Configure(t.Context(), json.RawMessage(`{"url":"v"}`)); !errors.Is(err, sdk.ErrConfigured) {
			t.Errorf("second Configure = %v, want ErrConfigured", err)
		}
		if r := do(t, a, "x", `{}`); r.Outcome != sdk.OutcomeResult {
			t.Errorf("call = %+v", r)
		}
		if want := []config{{"u", 3}}; !reflect.DeepEqual(*got, want) {
			t.Errorf("configured with %v, want %v", *got, want)
		}
	})
	for name, test := range map[string]struct {
		raw  string
		fn   func(config) error
		want string
	}{
		"not given": {"", nil, "url: is required"},
		"not known": {`{"url":"u","uri":"u"}`, nil, "uri: is not known"},
		"refused":   {`{"url":"u"}`, func(config) error { return errors.New("no such host") }, "no such host"},
		"panic":     {`{"url":"u"}`, func(config) error { panic("oh") }, "panic: oh"},
	} {
		t.Run(name, func(t *testing.T) {
			a, _ := made(test.fn)
			if test.raw != "" {
				if err := a.Configure(t.Context(), json.RawMessage(test.raw)); err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("Configure = %v, want %q", err, test.want)
				}
			}
			r := do(t, a, "x", `{}`)
			if r.Outcome != sdk.OutcomeFailed || r.Code != sdk.CodeInvalid || !strings.Contains(r.Message, test.want) {
				t.Errorf("call = %+v, want invalid with %q", r, test.want)
			}
		})
	}
	t.Run("without a configuration", func(t *testing.T) {
		a := fails(nil)
		if err := a.Configure(t.Context(), json.RawMessage(`{"url":"u"}`)); err == nil || !strings.Contains(err.Error(), "url: is not known") {
			t.Errorf("Configure = %v", err)
		}
	})
}
