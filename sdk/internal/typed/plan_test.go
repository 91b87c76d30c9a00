package typed

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"
)

type city struct {
	Zip  string `agent:"zip"`
	Name string `agent:"name,optional"`
}

type common struct {
	Tenant string `agent:"tenant"`
}

type order struct {
	common
	ID      string          `agent:"id" pattern:"[a-z]+"`
	Count   int8            `agent:"count,optional" default:"3"`
	Size    uint16          `agent:"size,optional"`
	Weight  float32         `agent:"weight,optional"`
	Exact   json.Number     `agent:"exact,optional"`
	Express bool            `agent:"express,optional"`
	Within  time.Duration   `agent:"within,optional" default:"90s"`
	From    netip.Addr      `agent:"from,optional"`
	Speed   string          `agent:"speed,optional" enum:"slow|fast"`
	Secret  string          `agent:"secret,optional,sensitive"`
	Lines   []city          `agent:"lines,optional"`
	Labels  map[string]int  `agent:"labels,optional"`
	Where   *city           `agent:"where" doc:"where it goes"`
	Extra   any             `agent:"extra,optional"`
	Raw     json.RawMessage `agent:"raw,optional"`
	Kept    func()          `agent:"-"`
	hidden  int
}

// plan returns the plan of a type that has no mistakes.
func plan[T any](t *testing.T, u Usage) *Plan {
	t.Helper()
	p, err := New(reflect.TypeFor[T](), u)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestSchemasOfAStruct(t *testing.T) {
	got := map[string]string{}
	optional := map[string]bool{}
	var names []string
	for _, f := range plan[order](t, Input).Schemas() {
		data, err := json.Marshal(f.Type)
		if err != nil {
			t.Fatal(err)
		}
		got[f.Name], optional[f.Name] = string(data), f.Optional
		names = append(names, f.Name)
		switch f.Name {
		case "count":
			if string(f.Default) != "3" {
				t.Errorf("default of count: %s", f.Default)
			}
		case "within":
			if string(f.Default) != `"90s"` {
				t.Errorf("default of within: %s", f.Default)
			}
		case "speed":
			if len(f.Enum) != 2 || string(f.Enum[1]) != `"fast"` {
				t.Errorf("enum of speed: %s", f.Enum)
			}
		case "where":
			if f.Doc != "where it goes" {
				t.Errorf("doc of where: %q", f.Doc)
			}
		}
		if f.Sensitive != (f.Name == "secret") {
			t.Errorf("%s: sensitive %t", f.Name, f.Sensitive)
		}
	}
	want := map[string]string{
		"tenant": `"string"`, "id": `"string"`, "count": `"number"`, "size": `"number"`, "weight": `"number"`, "exact": `"number"`,
		"express": `"bool"`, "within": `"string"`, "from": `"string"`, "speed": `"string"`, "secret": `"string"`,
		"lines":  `["list",["object",{"name":"string","zip":"string"},["name"]]]`,
		"labels": `["map","number"]`, "where": `["object",{"name":"string","zip":"string"},["name"]]`,
		"extra": `"dynamic"`, "raw": `"dynamic"`,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("schemas:\n%v\nwant\n%v", got, want)
	}
	if sorted := strings.Join(names, " "); sorted != "count exact express extra from id labels lines raw secret size speed tenant weight where within" {
		t.Errorf("fields in the order %s", sorted)
	}
	if !optional["where"] || optional["id"] || optional["tenant"] { // a pointer may be null
		t.Errorf("optional: %v", optional)
	}
}

// A value of type any may be null in an output, and must be given in an input.
func TestAnyInOutputs(t *testing.T) {
	type free struct {
		V any `agent:"v"`
	}
	if plan[free](t, Input).Schemas()[0].Optional || !plan[free](t, Output).Schemas()[0].Optional {
		t.Error("any is optional in an input, or required in an output")
	}
}

// A nested struct that an input and an output share may have defaults: they count in the input only.
func TestNestedDefaults(t *testing.T) {
	type part struct {
		N int `agent:"n,optional" default:"5"`
	}
	type whole struct {
		Part part `agent:"part"`
	}
	if got := decoded[whole](t, plan[whole](t, Input), `{"part":{}}`).Part.N; got != 5 {
		t.Errorf("input: %d", got)
	}
	if got := decoded[whole](t, plan[whole](t, Output), `{"part":{}}`).Part.N; got != 0 {
		t.Errorf("output: %d", got)
	}
}

type itself struct {
	Next []itself `agent:"next"`
}

// Every mistake in a struct is named, with its field.
func TestMistakesInStructs(t *testing.T) {
	inner := reflect.TypeFor[struct {
		Part struct {
			A string `agent:"a,sensitive"`
		} `agent:"part"`
	}]()
	for _, c := range []struct {
		t     reflect.Type
		usage Usage
		want  string
	}{
		{reflect.TypeFor[int](), Input, "input type int is not a struct"},
		{reflect.TypeFor[[]string](), Output, "output type []string is not a struct"},
		{reflect.TypeFor[struct{ A string }](), Input, "field A: has no agent tag; write `agent:\"name\"`"},
		{reflect.TypeFor[struct {
			a string `agent:"a"`
		}](), Input, "field a: has an agent tag but is not exported"},
		{reflect.TypeFor[struct {
			A string `agent:"BadName"`
		}](), Input, `field A: the name "BadName" in its agent tag is not snake_case`},
		{reflect.TypeFor[struct {
			A string `agent:"a,omitempty"`
		}](), Input, `unknown word "omitempty"; there are optional, sensitive and codes`},
		{reflect.TypeFor[struct {
			A string `agent:"x"`
			B string `agent:"x"`
		}](), Input, `two fields are named "x"`},
		{reflect.TypeFor[struct {
			A []byte `agent:"a"`
		}](), Input, "type []uint8 is not supported: use a string, in base64"},
		{reflect.TypeFor[struct {
			A map[int]string `agent:"a"`
		}](), Input, "keys must be strings"},
		{reflect.TypeFor[struct {
			A chan int `agent:"a"`
		}](), Input, "type chan int is not supported"},
		{reflect.TypeFor[struct {
			A error `agent:"a"`
		}](), Input, "type error is not supported"},
		{reflect.TypeFor[struct {
			A []chan int `agent:"a"`
		}](), Input, "type chan int is not supported"},
		{reflect.TypeFor[itself](), Input, "contains itself: use json.RawMessage"},
		{inner, Input, `field "a": only whole inputs and outputs can be sensitive`},
		{reflect.TypeFor[struct {
			A []string `agent:"a" enum:"x"`
		}](), Input, "enum: only strings, numbers and booleans can have one"},
		{reflect.TypeFor[struct {
			A int `agent:"a" enum:"1|two"`
		}](), Input, `enum: "two" is not JSON`},
		{reflect.TypeFor[struct {
			A int `agent:"a" default:"1"`
		}](), Input, "has a default but is not optional"},
		{reflect.TypeFor[struct {
			A int8 `agent:"a,optional" default:"300"`
		}](), Input, "default: value: number does not fit int8"},
		{reflect.TypeFor[struct {
			A string `agent:"a,optional" enum:"x|y" default:"z"`
		}](), Input, "default: "},
		{reflect.TypeFor[struct {
			A string `agent:"a,optional" pattern:"[0-9]" default:"z"`
		}](), Input, `default: "z" does not match [0-9]`},
		{reflect.TypeFor[struct {
			A int `agent:"a,optional" default:"1"`
		}](), Output, "an output has no default"},
		{reflect.TypeFor[struct {
			A string `agent:"a" pattern:"x"`
		}](), Output, "pattern, codes: only whole inputs can have them"},
		{reflect.TypeFor[struct {
			A string `agent:"a" pattern:"("`
		}](), Input, "pattern: error parsing regexp"},
		{reflect.TypeFor[struct {
			A int `agent:"a,codes"`
		}](), Input, "pattern, codes: only strings, lists of strings and maps can have them"},
	} {
		_, err := New(c.t, c.usage)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.t, err, c.want)
		}
	}
	_, err := New(reflect.TypeFor[struct {
		A chan int
		B chan int `agent:"b"`
	}](), Input)
	if err == nil || !strings.Contains(err.Error(), "field A") || !strings.Contains(err.Error(), "field B") {
		t.Errorf("%v, want both mistakes", err)
	}
}
