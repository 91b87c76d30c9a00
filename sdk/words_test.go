package sdk_test

import (
	"context"
	"strings"
	"testing"

	"github.com/saga-engine/engine/sdk"
)

type wordsIn struct {
	Expect []string          `agent:"expect,optional" pattern:"[1-5]xx"`
	Errors map[string]string `agent:"errors,optional,codes" pattern:"[0-9]{3}"`
	Name   string            `agent:"name,optional" pattern:"[a-z]+"`
	Counts map[string]int    `agent:"counts,optional" pattern:"[a-z]+"`
}

// A field's pattern and codes stand in the schema and are checked in each call.
func TestWords(t *testing.T) {
	a := sdk.New("words", "1.0.0")
	sdk.Action(a, "call", func(context.Context, *sdk.Call, wordsIn) (sdk.None, error) { return sdk.None{}, nil }, sdk.AnyErrors())
	s, err := a.Schema()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range s.Actions["call"].Inputs {
		if f.Pattern == "" || f.Codes != (f.Name == "errors") {
			t.Errorf("field %s has pattern %q, codes %t", f.Name, f.Pattern, f.Codes)
		}
	}
	for in, want := range map[string]string{
		`{"expect":["2xx"],"errors":{"404":"gone"},"name":"ann","counts":{"a":1}}`: "",
		`{}`:                             "",
		`{"expect":["2xx","2xxx"]}`:      `expect: "2xxx" does not match [1-5]xx`,
		`{"errors":{"40":"gone"}}`:       `errors: "40" does not match`,
		`{"errors":{"404":"Not Found"}}`: `errors: "Not Found" cannot be an error code`,
		`{"errors":{"404":"timeout"}}`:   `errors: "timeout" cannot be an error code`,
		`{"name":"Ann"}`:                 `name: "Ann" does not match`,
		`{"name":"ann\n"}`:               `name: "ann\n" does not match`,
		`{"counts":{"A":1}}`:             `counts: "A" does not match`,
	} {
		reply, ok := a.Invoke(t.Context(), request("call", in), quiet)
		if !ok || (reply.Outcome == sdk.OutcomeResult) != (want == "") || !strings.Contains(reply.Message, want) {
			t.Errorf("%s: outcome %v, %q; want %q", in, reply.Outcome, reply.Message, want)
		}
	}
}

func TestWordsOfTheWrongKind(t *testing.T) {
	none := func(context.Context, *sdk.Call, sdk.None) (sdk.None, error) { return sdk.None{}, nil }
	for name, add := range map[string]func(a *sdk.Agent){
		"not a regular expression": func(a *sdk.Agent) {
			sdk.Action(a, "call", func(context.Context, *sdk.Call, struct {
				A string `agent:"a" pattern:"("`
			}) (sdk.None, error) {
				return sdk.None{}, nil
			})
		},
		"numbers": func(a *sdk.Agent) {
			sdk.Action(a, "call", func(context.Context, *sdk.Call, struct {
				A int `agent:"a,codes"`
			}) (sdk.None, error) {
				return sdk.None{}, nil
			})
		},
		"codes of numbers": func(a *sdk.Agent) {
			sdk.Action(a, "call", func(context.Context, *sdk.Call, struct {
				A map[string]int `agent:"a,codes"`
			}) (sdk.None, error) {
				return sdk.None{}, nil
			})
		},
		"default": func(a *sdk.Agent) {
			sdk.Action(a, "call", func(context.Context, *sdk.Call, struct {
				A string `agent:"a,optional" pattern:"x" default:"y"`
			}) (sdk.None, error) {
				return sdk.None{}, nil
			})
		},
		"output": func(a *sdk.Agent) {
			sdk.Action(a, "call", func(context.Context, *sdk.Call, sdk.None) (struct {
				A string `agent:"a" pattern:"x"`
			}, error) {
				return struct {
					A string `agent:"a" pattern:"x"`
				}{}, nil
			})
		},
	} {
		a := sdk.New("words", "1.0.0")
		sdk.Action(a, "other", none)
		add(a)
		if _, err := a.Schema(); err == nil {
			t.Errorf("%s: the schema is taken", name)
		}
	}
}
