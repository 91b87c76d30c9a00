package fastjson

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/sdk/internal/typed"
	"github.com/saga-engine/engine/sdk/jsonscan"
)

type cents float64

// MarshalJSON writes cents as a text.
func (c cents) MarshalJSON() ([]byte, error) { return json.Marshal("c") }

type agreeInner struct {
	A string  `agent:"a"`
	B float32 `agent:"b,optional"`
	C *int8   `agent:"c"`
}

type agreeIn struct {
	Text  string                     `agent:"text,optional"`
	Flag  bool                       `agent:"flag,optional"`
	Int   int16                      `agent:"int,optional"`
	Uint  uint                       `agent:"uint,optional" default:"7"`
	Float float64                    `agent:"float,optional"`
	Exact json.Number                `agent:"exact,optional" default:"1.10"`
	Any   any                        `agent:"any,optional" default:"{\"d\":[1]}"`
	Raw   json.RawMessage            `agent:"raw,optional"`
	Wait  time.Duration              `agent:"wait,optional" default:"1m30s"`
	At    time.Time                  `agent:"at,optional"`
	List  []agreeInner               `agent:"list,optional"`
	Map   map[string]json.RawMessage `agent:"map,optional"`
	In    agreeInner                 `agent:"in,optional"`
	Mode  string                     `agent:"mode,optional" default:"soft" enum:"soft|hard|K"`
	Level int                        `agent:"level,optional" enum:"1|2"`
	Anys  []any                      `agent:"anys,optional"`
	Maps  map[string]any             `agent:"maps,optional"`
}

var agreePlan = func() *typed.Plan {
	p, err := typed.New(reflect.TypeFor[agreeIn](), typed.Input)
	if err != nil {
		panic(err)
	}
	return p
}()

// FuzzDecode: a document that is read or written without a tree can be read or written
// with a tree, too, and the results are equal.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		`{}`, `null`, `{"text":"é\n\ud800","flag":true,"int":-5,"uint":3,"float":1e-9,"exact":-0.0}`,
		`{"any":{"b":[null,true,"x",1.50],"a":{}},"raw":{"z":1,"a":"<\u2028>"},"wait":"2h","at":"2026-01-02T03:04:05Z"}`,
		`{"list":[{"a":"x","c":null},{"a":"y","b":0.1,"c":5}],"map":{"k":[1],"":null},"in":{"a":"","c":1}}`,
		`{"mode":"hard","level":2}`, `{"mode":"\u004b","level":1.0}`, `{"mode":"K","level":null}`, `{"level":3}`,
		`{"anys":[1,[],{}],"maps":{"b":1,"a":{"é":2}}}`, `{"int":40000}`, `{"int":1e2}`, `{"text":1}`, `{"text":"a","text":"b"}`,
		`{"in":{"a":"x","b":1,"c":2},"in":{"a":"y","c":null}}`, `{"nope":1}`, `{"list":[{}]}`, `{"text":"x",}`, `[1]`, `{"text":"x"} x`,
		`{"text":"\x"}`, "{\"text\":\"\x01\"}", "{\"text\":\"\xff\"}", `{"te\u0078t":"x"}`, `{"list":[`, `{"list":[1}`, `{"any":01}`,
		`{"any":` + strings.Repeat("[", 150) + strings.Repeat("]", 150) + `}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		fast := reflect.New(agreePlan.Go).Elem()
		s := jsonscan.Scanner{Src: raw}
		ok := read(agreePlan, &s, fast) && s.End()
		slow, err := agreePlan.Decode(raw)
		if ok && (err != nil || !reflect.DeepEqual(fast.Interface(), slow.Interface())) {
			t.Fatalf("%s is read as %+v; with a tree it is %+v, %v", raw, fast, slow, err)
		}
		if err == nil {
			sameEncoding(t, agreePlan, slow)
		}
	})
}

// sameEncoding reports whether a struct was written without a tree.
func sameEncoding(t *testing.T, p *typed.Plan, v reflect.Value) bool {
	t.Helper()
	out, ok := write(p, nil, v)
	if !ok {
		return false
	}
	if want, err := p.Encode(v); err != nil || string(out) != string(want) {
		t.Fatalf("%+v is written %s; with a tree %s, %v", v, out, want, err)
	}
	return true
}

// TestEncodeAgrees: values that only Go code can make.
func TestEncodeAgrees(t *testing.T) {
	loop := map[string]any{}
	loop["loop"] = loop
	for _, tt := range []struct {
		name string
		in   agreeIn
		fast bool
	}{
		{"zero", agreeIn{Exact: "0"}, true},
		{"floats", agreeIn{Float: 1e-9, In: agreeInner{B: 1e21}, Exact: "1"}, true},
		{"small floats", agreeIn{Float: -1.5e-7, In: agreeInner{B: 1e-7}, Exact: "1e5"}, true},
		{"large floats", agreeIn{Float: math.MaxFloat64, In: agreeInner{B: 3.4e38}, Exact: "-0"}, true},
		{"any int", agreeIn{Any: map[string]any{"n": 5, "m": int64(-6), "f": 0.1, "z": nil}, Exact: "1"}, true},
		{"nil inside", agreeIn{Any: map[string]any{"n": []any(nil), "m": map[string]any(nil)}, Exact: "1"}, true},
		{"any struct", agreeIn{Any: agreeInner{}, Exact: "1"}, false},
		{"any that writes itself", agreeIn{Any: cents(1), Exact: "1"}, false},
		{"not UTF-8", agreeIn{Text: "\xff", Exact: "1"}, true},
		{"any not UTF-8", agreeIn{Any: "\xff", Exact: "1"}, false},
		{"html", agreeIn{Text: "<&>\u2028\x7f", Any: "<&>\u2029", Exact: "1"}, true},
		{"microseconds", agreeIn{Wait: 1500 * time.Nanosecond, Exact: "1"}, true},
		{"raw", agreeIn{Raw: json.RawMessage(` {"b":1,"a":"\u0061"} `), Exact: "1"}, true},
		{"map", agreeIn{Map: map[string]json.RawMessage{"b": []byte("1"), "a<": []byte("[1.0]")}, Exact: "1"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := sameEncoding(t, agreePlan, reflect.ValueOf(&tt.in).Elem()); got != tt.fast {
				t.Errorf("written without a tree: %t, want %t", got, tt.fast)
			}
		})
	}
	for name, in := range map[string]agreeIn{
		"infinite": {Float: math.Inf(1)}, "no number": {Exact: "x"}, "bad enum": {Mode: "other", Exact: "1"},
		"broken raw": {Raw: json.RawMessage("{"), Exact: "1"}, "loop": {Any: loop, Exact: "1"},
		"channel": {Any: make(chan int), Exact: "1"}, "level": {Level: 3, Exact: "1"},
	} {
		if out, err := Encode(agreePlan, reflect.ValueOf(&in).Elem()); err == nil {
			t.Errorf("%s: written %s", name, out)
		}
	}
}

// TestFloatThatWritesItself: a named float with its own JSON keeps it.
func TestFloatThatWritesItself(t *testing.T) {
	type out struct {
		C cents `agent:"c"`
	}
	p, err := typed.New(reflect.TypeFor[out](), typed.Output)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := Encode(p, reflect.ValueOf(out{1}))
	if want := `{"c":"c"}`; err != nil || string(raw) != want {
		t.Errorf("%s, %v; want %s", raw, err, want)
	}
}
