package typed

import (
	"encoding/json"
	"errors"
	"math"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"
)

// decoded decodes an object that fits.
func decoded[T any](t *testing.T, p *Plan, data string) T {
	t.Helper()
	v, err := p.Decode(json.RawMessage(data))
	if err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	return v.Interface().(T)
}

func TestDecodeFillsEveryForm(t *testing.T) {
	p := plan[order](t, Input)
	got := decoded[order](t, p, `{"tenant":"t","id":"a","size":2.0,"weight":1.5,"exact":1.10,"express":true,"within":"1d",
		"from":"10.0.0.1","speed":"fast","lines":[{"zip":"1"},{"zip":"2","name":"x"}],"labels":{"k":1e2},"where":{"zip":"3"},
		"extra":{"n":[1.50]},"raw":{"b":1,"a":2}}`)
	want := order{
		common: common{Tenant: "t"}, ID: "a", Count: 3, Size: 2, Weight: 1.5, Exact: "1.10", Express: true, Within: 24 * time.Hour,
		From: netip.MustParseAddr("10.0.0.1"), Speed: "fast", Lines: []city{{Zip: "1"}, {Zip: "2", Name: "x"}}, Labels: map[string]int{"k": 100},
		Where: &city{Zip: "3"}, Extra: map[string]any{"n": []any{json.Number("1.50")}}, Raw: json.RawMessage(`{"a":2,"b":1}`),
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("decoded\n%+v, want\n%+v", got, want)
	}
	// Null counts as missing where a field is optional, and a default then counts.
	least := decoded[order](t, p, `{"tenant":"t","id":"a","count":null,"within":null,"lines":null,"where":null,"raw":null}`)
	if least.Count != 3 || least.Within != 90*time.Second || least.Lines != nil || least.Where != nil || least.Raw != nil {
		t.Errorf("decoded %+v", least)
	}
}

// Null is a value of the forms that have one.
func TestDecodeNull(t *testing.T) {
	type nulls struct {
		Any any             `agent:"any"`
		Raw json.RawMessage `agent:"raw"`
		Ptr []*int          `agent:"ptr"`
	}
	p := plan[nulls](t, Input)
	got := decoded[nulls](t, p, `{"any":null,"raw":null,"ptr":[null,7]}`)
	if got.Any != nil || string(got.Raw) != "null" || got.Ptr[0] != nil || *got.Ptr[1] != 7 {
		t.Errorf("decoded %+v", got)
	}
	if _, err := p.Decode(json.RawMessage(`{"any":1,"raw":1,"ptr":null}`)); err == nil || !strings.Contains(err.Error(), "ptr: ") {
		t.Errorf("a list that is null: %v", err)
	}
}

// An error names the place, and never shows a value, which may be a secret.
func TestDecodeErrors(t *testing.T) {
	p := plan[order](t, Input)
	for data, want := range map[string]string{
		`x`: "not a JSON object", `[]`: "an object", `null`: "a value", `"QQ"`: "an object",
		`{"id":"a"}`: "tenant: is required", `{"tenant":"t"}`: "id: is required", `{"tenat":"t"}`: "tenat: is not known",
	} {
		refuses(t, p, data, want)
	}
	for change, want := range map[string]string{
		`"tenant":null`:      "tenant: ",
		`"id":1`:             "id: ",
		`"count":128`:        "count: number does not fit int8",
		`"count":-128.5`:     "count: number does not fit int8",
		`"count":"7"`:        "count: ",
		`"size":-1`:          "size: number does not fit uint16",
		`"size":65536`:       "size: number does not fit uint16",
		`"weight":1e39`:      "weight: number does not fit float32",
		`"express":"true"`:   "express: ",
		`"within":"QQ"`:      "within: must be a duration such as 90s, 1h30m or 2d",
		`"from":"QQ"`:        "from: is not a valid netip.Addr",
		`"speed":"QQ"`:       "speed: ",
		`"lines":{}`:         "lines: ",
		`"lines":[{}]`:       "lines[0].zip: is required",
		`"lines":[{"z":1}]`:  "lines[0].z: is not known",
		`"labels":{"k":{}}`:  `labels["k"]: `,
		`"labels":[]`:        "labels: ",
		`"where":"QQ"`:       "where: ",
		`"where":{"zip":{}}`: "where.zip: ",
		`"exact":"QQ"`:       "exact: ",
	} {
		// Of two fields with the same name, the last counts.
		refuses(t, p, `{"tenant":"t","id":"a","where":null,`+change+`}`, want)
	}
}

func refuses(t *testing.T, p *Plan, data, want string) {
	t.Helper()
	_, err := p.Decode(json.RawMessage(data))
	if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "QQ") {
		t.Errorf("%s: %v, want %q without the value", data, err, want)
	}
}

// A number without a fraction fits an integer in whatever form it is written, as long as it is exact.
func TestWholeNumbers(t *testing.T) {
	type whole struct {
		I int64  `agent:"i"`
		U uint64 `agent:"u"`
	}
	p := plan[whole](t, Input)
	got := decoded[whole](t, p, `{"i":-9223372036854775808,"u":18446744073709551615}`)
	if got.I != math.MinInt64 || got.U != math.MaxUint64 {
		t.Errorf("decoded %+v", got)
	}
	if got := decoded[whole](t, p, `{"i":-2.50e1,"u":9007199254740992.0}`); got.I != -25 || got.U != 1<<53 {
		t.Errorf("decoded %+v", got)
	}
	for _, data := range []string{`{"i":9007199254740994.0,"u":0}`, `{"i":0.5,"u":0}`, `{"i":0,"u":-1.0}`, `{"i":0,"u":1e300}`, `{"i":1e999,"u":0}`} {
		if _, err := p.Decode(json.RawMessage(data)); err == nil {
			t.Errorf("%s fits", data)
		}
	}
}

func TestEncodeWritesEveryForm(t *testing.T) {
	p := plan[order](t, Input)
	v := order{
		common: common{Tenant: "t"}, ID: "a", Count: -1, Size: 2, Weight: 1.5, Exact: "1.10", Express: true, Within: 90 * time.Second,
		From: netip.MustParseAddr("10.0.0.1"), Speed: "fast", Secret: "s", Lines: []city{{Zip: "1"}}, Labels: map[string]int{"k": 1},
		Where: &city{Zip: "3"}, Extra: map[string]any{"n": json.Number("1.50")}, Raw: json.RawMessage(`{"b":1}`), hidden: 1,
	}
	got, err := p.Encode(reflect.ValueOf(v))
	want := `{"count":-1,"exact":1.10,"express":true,"extra":{"n":1.50},"from":"10.0.0.1","id":"a","labels":{"k":1},"lines":[{"name":"","zip":"1"}],` +
		`"raw":{"b":1},"secret":"s","size":2,"speed":"fast","tenant":"t","weight":1.5,"where":{"name":"","zip":"3"},"within":"1m30s"}`
	if err != nil || string(got) != want {
		t.Errorf("encoded\n%s, %v, want\n%s", got, err, want)
	}
	// What has no value is null or empty, and an optional enum that was not set is null.
	got, err = p.Encode(reflect.ValueOf(order{Exact: "0"}))
	want = `{"count":0,"exact":0,"express":false,"extra":null,"from":"","id":"","labels":{},"lines":[],` +
		`"raw":null,"secret":"","size":0,"speed":null,"tenant":"","weight":0,"where":null,"within":"0s"}`
	if err != nil || string(got) != want {
		t.Errorf("encoded\n%s, %v, want\n%s", got, err, want)
	}
}

// A broken text cannot be written.
type broken struct{}

func (broken) MarshalText() ([]byte, error) { return nil, errors.New("no text") }
func (*broken) UnmarshalText([]byte) error  { return nil }

func TestEncodeErrors(t *testing.T) {
	type out struct {
		F    float64           `agent:"f"`
		N    json.Number       `agent:"n"`
		Raw  json.RawMessage   `agent:"raw"`
		Any  any               `agent:"any"`
		Mode string            `agent:"mode" enum:"a|b"`
		List []map[string]uint `agent:"list"`
		Deep []float64         `agent:"deep"`
		Map  map[string]any    `agent:"map"`
		Text []broken          `agent:"text"`
	}
	p := plan[out](t, Output)
	good := func() out { return out{N: "1", Mode: "a"} }
	if _, err := p.Encode(reflect.ValueOf(good())); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*out){
		"f: NaN is not a number that JSON knows": func(o *out) { o.F = math.NaN() },
		"deep[1]: +Inf is not a number":          func(o *out) { o.Deep = []float64{0, math.Inf(1)} },
		"n: not a number: some other JSON":       func(o *out) { o.N = `"1"` },
		"n: not a number: ":                      func(o *out) { o.N = "" },
		"raw: not JSON":                          func(o *out) { o.Raw = json.RawMessage("{") },
		"any: json: unsupported type":            func(o *out) { o.Any = func() {} },
		`map["k"]: json: unsupported type`:       func(o *out) { o.Map = map[string]any{"k": make(chan int)} },
		"mode: ":                                 func(o *out) { o.Mode = "c" },
		"text[0]: no text":                       func(o *out) { o.Text = []broken{{}} },
	} {
		o := good()
		change(&o)
		if _, err := p.Encode(reflect.ValueOf(o)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A plan that New did not make is an error, not a wrong value.
func TestPlansWithoutForm(t *testing.T) {
	p := &Plan{Go: reflect.TypeFor[int]()}
	if err := p.Assign("x", reflect.New(p.Go).Elem(), "here"); err == nil || err.Error() != "here: unknown form" {
		t.Errorf("assign: %v", err)
	}
	if _, err := p.Encode(reflect.ValueOf(1)); err == nil {
		t.Error("encode: no error")
	}
}
