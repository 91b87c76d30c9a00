package link

import (
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/value"
)

// What for_each comes to is checked again in the run, where its value is known.
func TestEachOf(t *testing.T) {
	text := cty.StringVal("a")
	for name, tt := range map[string]struct {
		value cty.Value
		want  string // keys, or with "error:" a part of the message
	}{
		"map":              {cty.MapVal(map[string]cty.Value{"b": text, "a": text}), "a b"},
		"set":              {cty.SetVal([]cty.Value{cty.StringVal("b"), text}), "a b"},
		"sensitive values": {cty.ObjectVal(map[string]cty.Value{"b": text.Mark(value.SensitiveMark{})}), "b"},
		"null":             {cty.NullVal(cty.Map(cty.String)), "error:this is null"},
		"unknown":          {cty.UnknownVal(cty.Map(cty.String)), "error:not known"},
		"sensitive keys":   {cty.MapVal(map[string]cty.Value{"a": text}).Mark(value.SensitiveMark{}), "error:cannot be sensitive"},
		"list":             {cty.ListVal([]cty.Value{text}), "error:this is list of string"},
		"set of numbers":   {cty.SetVal([]cty.Value{cty.NumberIntVal(1)}), "error:strings only"},
	} {
		t.Run(name, func(t *testing.T) {
			each, err := eachOf(tt.value)
			if part, isError := strings.CutPrefix(tt.want, "error:"); isError {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("keys %q, error %v, want %q", each.Keys, err, part)
				}
				return
			}
			if got := strings.Join(each.Keys, " "); err != nil || got != tt.want {
				t.Errorf("keys %q, error %v, want %q", got, err, tt.want)
			}
		})
	}
}
