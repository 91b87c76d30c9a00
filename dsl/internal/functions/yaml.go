package functions

import (
	ctyyaml "github.com/zclconf/go-cty-yaml"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/saga-engine/engine/dsl/internal/metered"
)

// yamlDecodeFunc decodes a YAML text. It returns an error if metered.CheckYAML refuses the text.
var yamlDecodeFunc = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "src", Type: cty.String}},
	Type:   function.StaticReturnType(cty.DynamicPseudoType),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		text := args[0].AsString()
		if err := metered.CheckYAML(text); err != nil {
			return cty.NilVal, err
		}
		ty, err := ctyyaml.Standard.ImpliedType([]byte(text))
		if err != nil {
			return cty.NilVal, err
		}
		return ctyyaml.Standard.Unmarshal([]byte(text), ty)
	},
})

var yamlEncodeFunc = ctyyaml.YAMLEncodeFunc
