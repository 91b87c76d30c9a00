package sdk_test

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/sdk"
	"github.com/saga-engine/engine/sdk/schema"
)

type address struct {
	City string `agent:"city"`
	Zip  string `agent:"zip,optional" default:"00000"`
}

type common struct {
	Tenant string `agent:"tenant,optional" doc:"Whose."`
}

type everything struct {
	common
	Text    string            `agent:"text" doc:"Some text."`
	Flag    bool              `agent:"flag"`
	Int     int64             `agent:"int"`
	Small   uint8             `agent:"small,optional" default:"7"`
	Float   float64           `agent:"float"`
	Exact   json.Number       `agent:"exact"`
	Any     any               `agent:"any,optional"`
	Raw     json.RawMessage   `agent:"raw,optional"`
	Wait    time.Duration     `agent:"wait,optional" default:"1m30s"`
	At      time.Time         `agent:"at"`
	List    []string          `agent:"list"`
	Map     map[string]int    `agent:"map,optional" default:"{\"a\":1}"`
	Address address           `agent:"address"`
	Others  []address         `agent:"others,optional"`
	Maybe   *int              `agent:"maybe"`
	Mode    string            `agent:"mode,optional" default:"soft" enum:"soft|hard"`
	Level   int               `agent:"level,optional" default:"2" enum:"1|2"`
	Token   string            `agent:"token,sensitive"`
	Labels  map[string]string `agent:"labels,optional"`
	Skipped chan int          `agent:"-"`
}

const fullInput = `{
	"text":"t","flag":true,"int":9007199254740993,"float":1.5,"exact":1.10,"any":{"n":12345678901234567890},
	"raw":[1.0,"x"],"at":"2026-01-02T03:04:05Z","list":["a"],"address":{"city":"Riga"},"others":[{"city":"Oslo","zip":"1"}],
	"token":"secret","tenant":"acme"}`

func echo[T any](a *sdk.Agent, got *T) {
	sdk.Action(a, "x", func(_ context.Context, _ *sdk.Call, in T) (sdk.None, error) {
		*got = in
		return sdk.None{}, nil
	})
}

func TestDecodeEverything(t *testing.T) {
	var got everything
	a := sdk.New("a", "1.0.0")
	echo(a, &got)
	if r := do(t, a, "x", fullInput); r.Outcome != sdk.OutcomeResult {
		t.Fatalf("reply = %+v", r)
	}
	want := everything{
		common: common{"acme"}, Text: "t", Flag: true, Int: 9007199254740993, Small: 7, Float: 1.5, Exact: "1.10",
		Any: map[string]any{"n": json.Number("12345678901234567890")}, Raw: json.RawMessage(`[1.0,"x"]`),
		Wait: 90 * time.Second, At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), List: []string{"a"},
		Map: map[string]int{"a": 1}, Address: address{"Riga", "00000"}, Others: []address{{"Oslo", "1"}},
		Mode: "soft", Level: 2, Token: "secret",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("decoded %+v\nwant    %+v", got, want)
	}
}

func TestDecodeRefuses(t *testing.T) {
	var got everything
	a := sdk.New("a", "1.0.0")
	echo(a, &got)
	for name, test := range map[string]struct{ old, new, want string }{
		"missing":          {`"text":"t",`, ``, "text: is required"},
		"null":             {`"text":"t"`, `"text":null`, "text: must be a value, not null"},
		"string":           {`"text":"t"`, `"text":1`, "text: must be a string, not a number"},
		"bool":             {`"flag":true`, `"flag":"true"`, "flag: must be a boolean, not a string"},
		"number":           {`"float":1.5`, `"float":"1.5"`, "float: must be a number, not a string"},
		"fraction":         {`"int":9007199254740993`, `"int":1.5`, "int: number does not fit int64"},
		"too big":          {`"int":9007199254740993`, `"int":9223372036854775808`, "int: number does not fit int64"},
		"small too big":    {`"text":"t"`, `"text":"t","small":256`, "small: number does not fit uint8"},
		"small negative":   {`"text":"t"`, `"text":"t","small":-1`, "small: number does not fit uint8"},
		"huge exponent":    {`"int":9007199254740993`, `"int":1e999999999`, "int: number does not fit int64"},
		"float too big":    {`"float":1.5`, `"float":1e400`, "float: number does not fit float64"},
		"duration":         {`"text":"t"`, `"text":"t","wait":"soon"`, "wait: must be a duration"},
		"time":             {`"at":"2026-01-02T03:04:05Z"`, `"at":"today"`, "at: is not a valid time.Time"},
		"list":             {`"list":["a"]`, `"list":{}`, "list: must be a list, not an object"},
		"element":          {`"list":["a"]`, `"list":["a",2]`, "list[1]: must be a string, not a number"},
		"map":              {`"text":"t"`, `"text":"t","map":[]`, "map: must be a map, not a list"},
		"map element":      {`"text":"t"`, `"text":"t","map":{"k":"v"}`, `map["k"]: must be a number`},
		"nested missing":   {`"address":{"city":"Riga"}`, `"address":{}`, "address.city: is required"},
		"nested not known": {`"address":{"city":"Riga"}`, `"address":{"city":"R","street":1}`, "address.street: is not known"},
		"deep":             {`{"city":"Oslo","zip":"1"}`, `{"city":"Oslo","zip":1}`, "others[0].zip: must be a string"},
		"not known":        {`"text":"t"`, `"text":"t","colour":"red"`, "colour: is not known"},
		"enum":             {`"text":"t"`, `"text":"t","mode":"HARD"`, `mode: must be one of "soft", "hard"`},
		"enum number":      {`"text":"t"`, `"text":"t","level":3`, "level: must be one of 1, 2"},
		"secret":           {`"token":"secret"`, `"token":["hunter2"]`, "token: must be a string, not a list"},
	} {
		t.Run(name, func(t *testing.T) {
			input := strings.Replace(fullInput, test.old, test.new, 1)
			if input == fullInput {
				t.Fatalf("%q is not in the input", test.old)
			}
			r := do(t, a, "x", input)
			if r.Outcome != sdk.OutcomeFailed || r.Code != sdk.CodeInvalid || !strings.Contains(r.Message, test.want) {
				t.Errorf("reply = %+v\nwant invalid with %q", r, test.want)
			}
			if strings.Contains(r.Message, "hunter2") {
				t.Errorf("message shows a value: %s", r.Message)
			}
		})
	}
	for _, input := range []string{`"level":1.0`, `"small":2e1`, `"small":null`, `"wait":null`} {
		if r := do(t, a, "x", strings.Replace(fullInput, `"text":"t"`, `"text":"t",`+input, 1)); r.Outcome != sdk.OutcomeResult {
			t.Errorf("%s = %+v, want it accepted", input, r)
		}
	}
}

type outputs struct {
	Text  string          `agent:"text"`
	N     int             `agent:"n"`
	F     float64         `agent:"f"`
	Exact json.Number     `agent:"exact"`
	Any   any             `agent:"any"`
	Raw   json.RawMessage `agent:"raw"`
	Wait  time.Duration   `agent:"wait"`
	At    time.Time       `agent:"at"`
	List  []int           `agent:"list"`
	Map   map[string]bool `agent:"map"`
	Maybe *address        `agent:"maybe"`
	Mode  string          `agent:"mode,optional" enum:"on|off"`
}

func TestEncode(t *testing.T) {
	var out outputs
	a := sdk.New("a", "1.0.0")
	sdk.Action(a, "x", func(context.Context, *sdk.Call, sdk.None) (outputs, error) { return out, nil })
	schema, err := a.Schema()
	if err != nil {
		t.Fatal(err)
	}
	fields := schema.Actions["x"].Outputs
	for name, test := range map[string]struct {
		out  outputs
		want string
	}{
		"zero": {
			outputs{Exact: "0"},
			`{"any":null,"at":"0001-01-01T00:00:00Z","exact":0,"f":0,"list":[],"map":{},"maybe":null,"mode":null,"n":0,"raw":null,"text":"","wait":"0s"}`,
		},
		"full": {
			outputs{
				Text: "<&>", N: -1, F: 0.5, Exact: "1e400", Any: map[string]any{"a": []int{1}}, Raw: json.RawMessage(` {"b": 1.0} `),
				Wait: time.Minute, At: time.Unix(0, 0).UTC(), List: []int{1}, Map: map[string]bool{"k": true}, Maybe: &address{"Riga", "1"}, Mode: "on",
			},
			`{"any":{"a":[1]},"at":"1970-01-01T00:00:00Z","exact":1e400,"f":0.5,"list":[1],"map":{"k":true},"maybe":{"city":"Riga","zip":"1"},"mode":"on","n":-1,"raw":{"b":1.0},"text":"<&>","wait":"1m0s"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			out = test.out
			r := do(t, a, "x", `{}`)
			if string(r.Output) != test.want {
				t.Errorf("output = %s (%+v)\nwant     %s", r.Output, r, test.want)
			}
			if err := sdk.CheckObject(fields, r.Output); err != nil {
				t.Errorf("CheckObject: %v", err)
			}
		})
	}
	for name, bad := range map[string]outputs{
		"bad number": {Exact: "one"},
		"no number":  {},
		"NaN":        {Exact: "0", F: nan()},
		"bad raw":    {Exact: "0", Raw: json.RawMessage(`{`)},
		"bad any":    {Exact: "0", Any: func() {}},
		"enum":       {Exact: "0", Mode: "maybe"},
		"bad time":   {Exact: "0", At: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		t.Run(name, func(t *testing.T) {
			out = bad
			if r := do(t, a, "x", `{}`); r.Outcome != sdk.OutcomeUnknown || r.Code != sdk.CodeBadReply {
				t.Errorf("reply = %+v, want unknown bad_reply", r)
			}
		})
	}
}

func nan() float64 {
	zero := 0.0
	return zero / zero
}

func TestSchema(t *testing.T) {
	a := sdk.New("shop", "1.2.0-rc.1").Doc("Sells.")
	sdk.Configure(a, func(context.Context, address) error { return nil })
	sdk.Action(a, "buy", func(context.Context, *sdk.Call, everything) (outputs, error) { return outputs{}, nil },
		sdk.Idempotent(), sdk.CompensatedBy("refund"), sdk.Errors("no_money"), sdk.RetryableErrors("busy"),
		sdk.Progress(), sdk.Checkpoints(), sdk.Cancellable(), sdk.Typical(time.Second), sdk.Doc("Buys."))
	sdk.Action(a, "refund", nothing, sdk.ByKey(), sdk.Idempotent())
	sdk.Action(a, "price", nothing, sdk.ReadOnly())
	s, err := a.Schema()
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var again schema.Schema
	if err := json.Unmarshal(data, &again); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(again, s) {
		t.Errorf("schema changes on its way through JSON:\n%+v\n%+v", s, again)
	}
	buy := s.Actions["buy"]
	fields := map[string]schema.Field{}
	for _, f := range buy.Inputs {
		fields[f.Name] = f
	}
	for name, want := range map[string]string{
		"text":    `{"name":"text","type":"string","doc":"Some text."}`,
		"small":   `{"name":"small","type":"number","optional":true,"default":7}`,
		"any":     `{"name":"any","type":"dynamic","optional":true}`,
		"wait":    `{"name":"wait","type":"string","optional":true,"default":"1m30s"}`,
		"map":     `{"name":"map","type":["map","number"],"optional":true,"default":{"a":1}}`,
		"address": `{"name":"address","type":["object",{"city":"string","zip":"string"},["zip"]]}`,
		"others":  `{"name":"others","type":["list",["object",{"city":"string","zip":"string"},["zip"]]],"optional":true}`,
		"maybe":   `{"name":"maybe","type":"number","optional":true}`,
		"mode":    `{"name":"mode","type":"string","optional":true,"default":"soft","enum":["soft","hard"]}`,
		"level":   `{"name":"level","type":"number","optional":true,"default":2,"enum":[1,2]}`,
		"token":   `{"name":"token","type":"string","sensitive":true}`,
		"tenant":  `{"name":"tenant","type":"string","optional":true,"doc":"Whose."}`,
	} {
		if got, _ := json.Marshal(fields[name]); string(got) != want {
			t.Errorf("field %s = %s\nwant %s", name, got, want)
		}
	}
	buy.Inputs, buy.Outputs = nil, nil
	want := schema.Action{
		Doc: "Buys.", Errors: []schema.ErrorCode{{Code: "no_money"}, {Code: "busy", Retryable: true}}, Idempotent: true,
		Heartbeats: true, Progress: true, Checkpoints: true, Cancellable: true, CompensatedBy: "refund", Typical: time.Second,
	}
	if !reflect.DeepEqual(buy, want) {
		t.Errorf("buy = %+v\nwant  %+v", buy, want)
	}
	if s.Name != "shop" || s.Version != "1.2.0-rc.1" || s.Doc != "Sells." || len(s.Config) != 2 || !s.Actions["price"].ReadOnly {
		t.Errorf("schema = %+v", s)
	}
}

// Every mistake of the author is reported, none panics.
func TestSchemaReportsMistakes(t *testing.T) {
	type loop struct {
		Next []*struct {
			M map[string]any `agent:"m"`
		} `agent:"next"`
	}
	for name, test := range map[string]struct {
		make func(a *sdk.Agent)
		want string
	}{
		"twice":        {func(a *sdk.Agent) { sdk.Action(a, "x", nothing) }, `action "x": added twice`},
		"name":         {func(a *sdk.Agent) { sdk.Action(a, "doIt", nothing) }, "snake_case"},
		"nil function": {func(a *sdk.Agent) { sdk.Action[sdk.None, sdk.None](a, "y", nil) }, "the function is nil"},
		"not a struct": {func(a *sdk.Agent) { var s string; echoAs(a, "y", &s) }, "input type string is not a struct"},
		"no tag":       {func(a *sdk.Agent) { var v struct{ A int }; echoAs(a, "y", &v) }, "field A: has no agent tag"},
		"unexported": {func(a *sdk.Agent) {
			var v struct {
				a int `agent:"a"`
			}
			_ = v.a
			echoAs(a, "y", &v)
		}, "not exported"},
		"bad name": {func(a *sdk.Agent) {
			var v struct {
				A int `agent:"A"`
			}
			echoAs(a, "y", &v)
		}, "not snake_case"},
		"bad word": {func(a *sdk.Agent) {
			var v struct {
				A int `agent:"a,omitempty"`
			}
			echoAs(a, "y", &v)
		}, `unknown word "omitempty"`},
		"same name": {func(a *sdk.Agent) {
			var v struct {
				A, B int `agent:"a"`
			}
			echoAs(a, "y", &v)
		}, `two fields are named "a"`},
		"default": {func(a *sdk.Agent) {
			var v struct {
				A int `agent:"a,optional" default:"x"`
			}
			echoAs(a, "y", &v)
		}, "default:"},
		"default type": {func(a *sdk.Agent) {
			var v struct {
				A int `agent:"a,optional" default:"true"`
			}
			echoAs(a, "y", &v)
		}, "must be a number"},
		"default, required": {func(a *sdk.Agent) {
			var v struct {
				A int `agent:"a" default:"1"`
			}
			echoAs(a, "y", &v)
		}, "not optional"},
		"default, enum": {func(a *sdk.Agent) {
			var v struct {
				A int `agent:"a,optional" default:"3" enum:"1|2"`
			}
			echoAs(a, "y", &v)
		}, "must be one of 1, 2"},
		"enum": {func(a *sdk.Agent) {
			var v struct {
				A []int `agent:"a" enum:"1"`
			}
			echoAs(a, "y", &v)
		}, "enum"},
		"bytes": {func(a *sdk.Agent) {
			var v struct {
				A []byte `agent:"a"`
			}
			echoAs(a, "y", &v)
		}, "use a string"},
		"keys": {func(a *sdk.Agent) {
			var v struct {
				A map[int]int `agent:"a"`
			}
			echoAs(a, "y", &v)
		}, "keys must be strings"},
		"channel": {func(a *sdk.Agent) {
			var v struct {
				A chan int `agent:"a"`
			}
			echoAs(a, "y", &v)
		}, "not supported"},
		"interface": {func(a *sdk.Agent) {
			var v struct {
				A error `agent:"a"`
			}
			echoAs(a, "y", &v)
		}, "not supported"},
		"recursive": {func(a *sdk.Agent) { var v recursive; echoAs(a, "y", &v) }, "contains itself"},
		"nested sensitive": {func(a *sdk.Agent) {
			var v struct {
				A struct {
					B string `agent:"b,sensitive"`
				} `agent:"a"`
			}
			echoAs(a, "y", &v)
		}, "only whole inputs"},
		"output default": {func(a *sdk.Agent) {
			sdk.Action(a, "y", func(context.Context, *sdk.Call, sdk.None) (struct {
				A int `agent:"a,optional" default:"1"`
			}, error) {
				panic("not called")
			})
		}, "an output has no default"},
		"undo": {func(a *sdk.Agent) { sdk.Action(a, "y", nothing, sdk.CompensatedBy("z")) }, `compensated by "z", which is not an action`},
		"undo read-only": {func(a *sdk.Agent) {
			sdk.Action(a, "z", nothing, sdk.ReadOnly())
			sdk.Action(a, "y", nothing, sdk.CompensatedBy("z"))
		}, "undoes nothing"},
		"read-only undone": {func(a *sdk.Agent) { sdk.Action(a, "y", nothing, sdk.ReadOnly(), sdk.CompensatedBy("x")) }, "nothing to compensate"},
		"by key": {func(a *sdk.Agent) {
			var v struct {
				A int `agent:"a"`
			}
			echoAs(a, "y", &v, sdk.ByKey())
		}, `input "a" must be optional`},
		"code":          {func(a *sdk.Agent) { sdk.Action(a, "y", nothing, sdk.Errors("No Money")) }, "want snake_case"},
		"code twice":    {func(a *sdk.Agent) { sdk.Action(a, "y", nothing, sdk.Errors("a"), sdk.RetryableErrors("a")) }, "declared twice"},
		"engine's code": {func(a *sdk.Agent) { sdk.Action(a, "y", nothing, sdk.Errors("agent_lost")) }, "the engine's own"},
		"typical":       {func(a *sdk.Agent) { sdk.Action(a, "y", nothing, sdk.Typical(-1)) }, "negative"},
		"lookup types": {func(a *sdk.Agent) {
			sdk.Action(a, "y", nothing, sdk.Lookup(func(context.Context, *sdk.Call, loop) (sdk.None, bool, error) { panic("not called") }))
		}, "unlike the action"},
		"nil lookup":   {func(a *sdk.Agent) { sdk.Action(a, "y", nothing, sdk.Lookup[sdk.None, sdk.None](nil)) }, "lookup: the function is nil"},
		"config twice": {func(a *sdk.Agent) { sdk.Configure(a, noConfig); sdk.Configure(a, noConfig) }, "configuration: declared twice"},
		"config type":  {func(a *sdk.Agent) { sdk.Configure(a, func(context.Context, int) error { return nil }) }, "configuration: input type int"},
		"config nil":   {func(a *sdk.Agent) { sdk.Configure[sdk.None](a, nil) }, "configuration: the function is nil"},
	} {
		t.Run(name, func(t *testing.T) {
			a := fails(nil)
			test.make(a)
			if _, err := a.Schema(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Schema = %v\nwant an error with %q", err, test.want)
			}
		})
	}
	if _, err := sdk.New("Bad", "one").Schema(); err == nil || !strings.Contains(err.Error(), "agent name") ||
		!strings.Contains(err.Error(), "agent version") || !strings.Contains(err.Error(), "no actions") {
		t.Errorf("Schema = %v, want all three mistakes", err)
	}
}

type recursive struct {
	Next []recursive `agent:"next"`
}

func noConfig(context.Context, sdk.None) error { return nil }

func echoAs[T any](a *sdk.Agent, name string, _ *T, opts ...sdk.Option) {
	sdk.Action(a, name, func(context.Context, *sdk.Call, T) (sdk.None, error) { return sdk.None{}, nil }, opts...)
}

func TestTypeJSON(t *testing.T) {
	for _, text := range []string{
		`"dynamic"`, `"bool"`, `"number"`, `"string"`, `["list","number"]`, `["set","string"]`, `["map",["list","bool"]]`,
		`["object",{}]`, `["object",{"a":"string","b":["map","dynamic"]}]`, `["object",{"a":"string","b":"number"},["a","b"]]`,
	} {
		var typ schema.Type
		if err := json.Unmarshal([]byte(text), &typ); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, err := json.Marshal(typ); err != nil || string(got) != text {
			t.Errorf("%s became %s, %v", text, got, err)
		}
	}
	for _, text := range []string{
		`"int"`, `1`, `[]`, `["list"]`, `["tuple","string"]`, `["list",1]`, `["object",[]]`, `["object",{"a":"x"}]`, `["object",{},1]`, `{}`,
	} {
		var typ schema.Type
		if err := json.Unmarshal([]byte(text), &typ); err == nil {
			t.Errorf("%s was read as %+v, want an error", text, typ)
		}
	}
	for _, typ := range []schema.Type{{}, {Kind: schema.KindList}, {Kind: "tuple"}} {
		if got, err := json.Marshal(typ); err == nil {
			t.Errorf("%+v was written as %s, want an error", typ, got)
		}
	}
}

// S35: CheckObject is what stands between a foreign process and the state.
func TestCheckObject(t *testing.T) {
	var fields []schema.Field
	if err := json.Unmarshal([]byte(`[
		{"name":"s","type":"string","enum":["a","b"]},{"name":"n","type":"number"},{"name":"b","type":"bool"},
		{"name":"l","type":["list","string"]},{"name":"t","type":["set","number"]},{"name":"m","type":["map","number"]},
		{"name":"o","type":["object",{"x":"string","y":"number"},["y"]]},{"name":"d","type":"dynamic"},
		{"name":"p","type":"string","optional":true}]`), &fields); err != nil {
		t.Fatal(err)
	}
	good := `{"s":"a","n":1,"b":true,"l":["x"],"t":[1],"m":{"k":1},"o":{"x":"y"},"d":null}`
	if err := sdk.CheckObject(fields, json.RawMessage(good)); err != nil {
		t.Fatalf("CheckObject of a good one: %v", err)
	}
	for _, test := range []struct{ old, new, want string }{
		{`"s":"a"`, `"s":"c"`, `s: must be one of "a", "b"`},
		{`"s":"a"`, `"s":null`, "s: must be a string, not null"},
		{`"n":1`, `"n":"1"`, "n: must be a number"},
		{`"b":true`, `"b":1`, "b: must be a boolean"},
		{`"l":["x"]`, `"l":[1]`, "l[0]: must be a string"},
		{`"l":["x"]`, `"l":"x"`, "l: must be a list"},
		{`"t":[1]`, `"t":[true]`, "t[0]: must be a number"},
		{`"m":{"k":1}`, `"m":{"k":null}`, `m["k"]: must be a number`},
		{`"m":{"k":1}`, `"m":1`, "m: must be a map"},
		{`{"x":"y"}`, `{"x":"y","z":1}`, "o.z: is not known"},
		{`{"x":"y"}`, `{"y":1}`, "o.x: is missing"},
		{`{"x":"y"}`, `[]`, "o: must be an object"},
		{`,"d":null`, ``, "d: is missing"},
		{`"d":null`, `"d":null,"p":1`, "p: must be a string"},
		{`"d":null`, `"d":null,"q":1`, "q: is not known"},
		{`"s":"a","n":1,"b":true`, `"b":1,"q":1`, "s: is missing; n: is missing; b: must be a boolean, not a number; q: is not known"},
		{`"o":{"x":"y"}`, `"o":{"z":1}`, "o.x: is missing; o.z: is not known"},
		{good, `[]`, "must be an object"},
		{good, ``, "not a JSON object"},
	} {
		err := sdk.CheckObject(fields, json.RawMessage(strings.Replace(good, test.old, test.new, 1)))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: CheckObject = %v, want %q", test.new, err, test.want)
		}
	}
}
