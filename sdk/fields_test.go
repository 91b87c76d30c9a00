package sdk_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/saga-engine/engine/sdk"
)

// The data of a failure reaches the workflow as JSON. Data that cannot be sent is left out, with a warning,
// and the failure itself still counts (S31).
func TestDataOfAFailure(t *testing.T) {
	largest := strings.Repeat("x", sdk.MaxData-2) // two quotes make it MaxData bytes of JSON
	for name, c := range map[string]struct {
		data any
		want string // "" = no data
		warn string // "" = no warning
	}{
		"none":     {nil, "", ""},
		"a map":    {map[string]any{"left": 3, "why": []string{"a"}}, `{"left":3,"why":["a"]}`, ""},
		"a text":   {"x", `"x"`, ""},
		"largest":  {largest, `"` + largest + `"`, ""},
		"larger":   {largest + "x", "", "the data of a failure are too large"},
		"no JSON":  {func() {}, "", "the data of a failure cannot be encoded"},
		"a number": {0, "0", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			a := fails(&sdk.Failure{Code: "no", Message: "m", Data: c.data}, sdk.Errors("no"))
			reply, ok := a.Invoke(t.Context(), request("x", `{}`), sdk.InvokeOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			if !ok || reply.Outcome != sdk.OutcomeFailed || reply.Code != "no" || string(reply.Output) != c.want {
				t.Errorf("reply %+v, want the data %.40q", reply.Outcome, c.want)
			}
			if warned := log.String(); (warned == "") != (c.warn == "") || !strings.Contains(warned, c.warn) {
				t.Errorf("logged %q, want %q", warned, c.warn)
			}
		})
	}
}

// An error that says an outcome is unknown sends no data, and its cause can be found.
func TestCausesOfErrors(t *testing.T) {
	errGone := errors.New("gone")
	f := &sdk.Failure{Code: "no", Err: errGone, Data: 1}
	if !errors.Is(f, errGone) || !errors.Is(sdk.Unknown(f, "unavailable"), errGone) {
		t.Error("the cause is hidden")
	}
	if reply := do(t, fails(sdk.Unknown(f, "unavailable")), "x", `{}`); reply.Outcome != sdk.OutcomeUnknown || reply.Output != nil {
		t.Errorf("reply %+v", reply)
	}
	if f := (&sdk.Failure{Code: "no"}); f.Error() != "no" || f.Unwrap() != nil {
		t.Errorf("%v, %v", f, f.Unwrap())
	}
}

// An action sees the last stored checkpoint of its step, and a copy of it can be changed.
func TestLastCheckpoint(t *testing.T) {
	a := sdk.New("a", "1.2.3")
	var seen []string
	sdk.Action(a, "x", func(_ context.Context, c *sdk.Call, _ sdk.None) (sdk.None, error) {
		n, blob, ok := c.LastCheckpoint()
		if ok {
			seen = append(seen, string(rune('0'+n))+string(blob))
		} else {
			seen = append(seen, "none")
		}
		return sdk.None{}, nil
	}, sdk.Checkpoints())
	req := request("x", `{}`)
	for _, last := range []*sdk.Checkpoint{nil, {Number: 4, Blob: []byte("at 4")}, {}} {
		req.Checkpoint = last
		if _, ok := a.Invoke(t.Context(), req, quiet); !ok {
			t.Fatal("silent")
		}
	}
	if got := strings.Join(seen, " "); got != "none 4at 4 0" {
		t.Errorf("seen %q", got)
	}
	if a.Name() != "a" || a.Version() != "1.2.3" {
		t.Errorf("agent %s %s", a.Name(), a.Version())
	}
}

// What an action logs carries the run, the step and the attempt, also through With and groups.
func TestLogLinesNameTheCall(t *testing.T) {
	var log bytes.Buffer
	a := sdk.New("a", "1.0.0")
	sdk.Action(a, "x", func(_ context.Context, c *sdk.Call, _ sdk.None) (sdk.None, error) {
		c.Logger.Info("plain")
		c.Logger.With("part", 2).Info("with")
		c.Logger.WithGroup("g").Info("group", "k", "v")
		c.Logger.Debug("hidden")
		return sdk.None{}, nil
	})
	req := request("x", `{}`)
	req.Run, req.Step, req.Attempt = "o-1", "pay", 3
	if _, ok := a.Invoke(t.Context(), req, sdk.InvokeOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))}); !ok {
		t.Fatal("silent")
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 3 {
		t.Fatalf("logged %q", lines)
	}
	for i, want := range []string{"msg=plain", "part=2", "g.k=v"} {
		if !strings.Contains(lines[i], want) || !strings.Contains(lines[i], "run=o-1 step=pay attempt=3") {
			t.Errorf("line %q, want %s", lines[i], want)
		}
	}
}
