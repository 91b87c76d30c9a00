package sdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/saga-engine/engine/sdk"
	"github.com/saga-engine/engine/sdk/schema"
)

// hidden is the text that must not be in an error, a log line or a reply.
const hidden = "hunter2"

type hiddenIn struct {
	Pin     string                       `agent:"pin,optional,sensitive" pattern:"[0-9]+"`
	Pins    []string                     `agent:"pins,optional,sensitive" pattern:"[0-9]+"`
	Codes   map[string]string            `agent:"codes,optional,sensitive,codes" pattern:"[0-9]+"`
	Limits  map[string]int               `agent:"limits,optional,sensitive"`
	Card    struct{}                     `agent:"card,optional,sensitive"`
	Nested  map[string]map[string]string `agent:"nested,optional,sensitive"`
	Visible map[string]int               `agent:"visible,optional"`
}

// hiddenText is a text whose error repeats it, as the errors of many packages do.
type hiddenText struct{ text string }

func (h hiddenText) MarshalText() ([]byte, error) { return nil, errors.New("cannot write " + h.text) }
func (h *hiddenText) UnmarshalText([]byte) error  { return nil }

type hiddenOut struct {
	Text hiddenText     `agent:"text,sensitive"`
	Any  map[string]any `agent:"any,optional,sensitive"`
}

type shownOut struct {
	Text hiddenText `agent:"text"`
}

// No error repeats a part of a sensitive input, not even the key of a map. The error still names
// the input and the rule.
func TestErrorsHideSensitiveInputs(t *testing.T) {
	a := sdk.New("hidden", "1.0.0")
	sdk.Action(a, "call", func(context.Context, *sdk.Call, hiddenIn) (sdk.None, error) { return sdk.None{}, nil }, sdk.AnyErrors())
	for in, want := range map[string]string{
		`{"pin":"hunter2"}`:                   "pin: the text does not match [0-9]+; it is sensitive, so it is not shown",
		`{"pins":["1","hunter2"]}`:            "pins: the text does not match [0-9]+",
		`{"codes":{"hunter2":"gone"}}`:        "codes: the text does not match [0-9]+",
		`{"codes":{"1":"hunter2 Not Found"}}`: "codes: the text cannot be an error code",
		`{"limits":{"hunter2":"x"}}`:          "limits[…]: must be a number, not a string",
		`{"card":{"hunter2":1}}`:              "card: an attribute is not known",
		`{"nested":{"hunter2":{"a":1}}}`:      "nested[…][…]: must be a string, not a number",
		`{"nested":{"a":{"hunter2":1}}}`:      "nested[…][…]: must be a string, not a number",
		`{"visible":{"lamp":"x"}}`:            `visible["lamp"]: must be a number, not a string`,
	} {
		reply, ok := a.Invoke(t.Context(), request("call", in), quiet)
		if !ok || reply.Code != sdk.CodeInvalid || strings.Contains(reply.Message, hidden) || !strings.Contains(reply.Message, want) {
			t.Errorf("%s: %q; want %q", in, reply.Message, want)
		}
	}
}

// The same for the configuration of an agent.
func TestErrorsHideSensitiveConfiguration(t *testing.T) {
	a := sdk.New("hidden", "1.0.0")
	sdk.Configure(a, func(context.Context, struct {
		Token string `agent:"token,sensitive" pattern:"[0-9]+"`
	}) error {
		return nil
	})
	err := a.Configure(t.Context(), json.RawMessage(`{"token":"hunter2"}`))
	if err == nil || strings.Contains(err.Error(), hidden) {
		t.Errorf("Configure = %v, want an error without the token", err)
	}
}

// The cause of an error may repeat a value of an output. No reply and no log line contains it if
// the output is sensitive. The engine could not remove it: it does not know the value.
func TestErrorsHideSensitiveOutputs(t *testing.T) {
	a := sdk.New("hidden", "1.0.0")
	sdk.Action(a, "text", func(context.Context, *sdk.Call, sdk.None) (hiddenOut, error) {
		return hiddenOut{Text: hiddenText{hidden}}, nil
	})
	sdk.Action(a, "any", func(context.Context, *sdk.Call, sdk.None) (struct {
		Any map[string]any `agent:"any,optional,sensitive"`
	}, error) {
		return struct {
			Any map[string]any `agent:"any,optional,sensitive"`
		}{map[string]any{hidden: func() {}}}, nil
	})
	sdk.Action(a, "shown", func(context.Context, *sdk.Call, sdk.None) (shownOut, error) {
		return shownOut{hiddenText{"lamp"}}, nil
	})
	for action, want := range map[string]string{
		"text":  "text: cannot be written as JSON (the cause is not shown: the value is sensitive)",
		"any":   "any[…]: cannot be written as JSON (the cause is not shown: the value is sensitive)",
		"shown": "text: cannot write lamp",
	} {
		var log strings.Builder
		reply, ok := a.Invoke(t.Context(), request(action, `{}`), sdk.InvokeOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if !ok || reply.Code != sdk.CodeBadReply || !strings.Contains(reply.Message, want) {
			t.Errorf("%s: %+v, want %q", action, reply, want)
		}
		if strings.Contains(log.String()+reply.Message, hidden) {
			t.Errorf("%s: the value is in %q or %q", action, log.String(), reply.Message)
		}
	}
}

// A host's check of an output hides the same parts.
func TestCheckObjectHidesSensitiveValues(t *testing.T) {
	number := schema.Type{Kind: schema.KindNumber}
	fields := []schema.Field{
		{Name: "limits", Type: schema.Type{Kind: schema.KindMap, Elem: &number}, Sensitive: true, Optional: true},
		{Name: "card", Type: schema.Type{Kind: schema.KindObject}, Sensitive: true, Optional: true},
		{Name: "visible", Type: schema.Type{Kind: schema.KindMap, Elem: &number}, Optional: true},
	}
	err := sdk.CheckObject(fields, json.RawMessage(`{"limits":{"hunter2":"x"},"card":{"hunter2":1},"visible":{"lamp":"x"}}`))
	want := `limits[…]: must be a number, not a string; card: an attribute is not known; visible["lamp"]: must be a number, not a string`
	if err == nil || err.Error() != want {
		t.Errorf("error %v\nwant  %s", err, want)
	}
}
