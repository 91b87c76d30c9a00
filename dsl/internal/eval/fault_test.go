package eval

import (
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/value"
)

// Of two sensitive texts, one within the other, the longer one is looked for
// first. Otherwise its rest would be shown.
func TestSensitiveTextsLongestFirst(t *testing.T) {
	hidden := func(s string) cty.Value { return cty.StringVal(s).Mark(value.SensitiveMark{}) }
	ctx := &hcl.EvalContext{Variables: map[string]cty.Value{"var": cty.ObjectVal(map[string]cty.Value{"a": hidden("4711"), "b": hidden("47110815"), "c": cty.StringVal("open")})}}
	if got := strings.Join(sensitiveTexts(ctx), " "); got != "47110815 4711" {
		t.Errorf("%q, want the longer one first and nothing else", got)
	}
}
