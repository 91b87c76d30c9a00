package value

import (
	"testing"

	"github.com/zclconf/go-cty/cty"
)

// TestConform: any keeps what it is given, everything else is converted.
func TestConform(t *testing.T) {
	object := cty.ObjectWithOptionalAttrs(map[string]cty.Type{"a": cty.DynamicPseudoType, "n": cty.Number}, []string{"n"})
	for _, tt := range []struct {
		name, in, want string
		ty             cty.Type
	}{
		{"any", `["a",1]`, `["a",1]`, cty.DynamicPseudoType},
		{"list of any", `["a",1,null,{"x":[]}]`, `["a",1,null,{"x":[]}]`, cty.List(cty.DynamicPseudoType)},
		{"list of any, no list", `1`, "", cty.List(cty.DynamicPseudoType)},
		{"map of any", `{"a":1,"b":"x"}`, `{"a":1,"b":"x"}`, cty.Map(cty.DynamicPseudoType)},
		{"map of any, no map", `[1]`, "", cty.Map(cty.DynamicPseudoType)},
		{"map of lists of any", `{"a":[1,"b"]}`, `{"a":[1,"b"]}`, cty.Map(cty.List(cty.DynamicPseudoType))},
		{"bad element", `{"a":1}`, "", cty.Map(cty.List(cty.DynamicPseudoType))},
		{"object", `{"a":[1,"b"],"n":"5","extra":1}`, `{"a":[1,"b"],"n":5}`, object},
		{"object, optional", `{"a":1}`, `{"a":1,"n":null}`, object},
		{"object, missing", `{"n":1}`, "", object},
		{"object, bad", `{"a":1,"n":"x"}`, "", object},
		{"object, no object", `[1]`, "", object},
		{"null", `null`, `null`, object},
		{"strings", `["a",1]`, `["a","1"]`, cty.List(cty.String)},
		{"set", `["b","a","b"]`, `["a","b"]`, cty.Set(cty.String)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v, err := DecodeJSON([]byte(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			v, err = Conform(v, tt.ty)
			if tt.want == "" {
				if err == nil {
					t.Errorf("no error")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			out, err := Encode(v, false)
			if err != nil || string(out.JSON()) != tt.want {
				t.Errorf("%s, %v; want %s", out.JSON(), err, tt.want)
			}
		})
	}
}

// A text is one JSON value, not the beginning of more.
func TestOneJSONValue(t *testing.T) {
	for _, text := range []string{"1 2", "{} {}", "1]", "null x"} {
		if v, err := DecodeJSON([]byte(text)); err == nil {
			t.Errorf("%q is taken for %#v", text, v)
		}
	}
}
