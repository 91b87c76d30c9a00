package language

import (
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/saga-engine/engine/dsl/internal/functions"
	"github.com/saga-engine/engine/dsl/internal/sorted"
)

// A Signature describes a function of the language for programs, such as editors.
type Signature struct {
	Name        string      `json:"name"`
	Description string      `json:"description,omitempty"`
	Parameters  []Parameter `json:"parameters"`
	// Variadic describes all further arguments, of which there may be any number; nil = none.
	Variadic *Parameter `json:"variadic_parameter,omitempty"`
	// Returns is the type of the result; "any" = the type depends on the arguments.
	Returns string `json:"returns"`
}

// A Parameter describes one parameter of a function.
type Parameter struct {
	Name string `json:"name"`
	Type string `json:"type"` // as in a variable block, such as list(string)
}

// signatures describes all functions, sorted by name.
func signatures() []Signature {
	table := functions.Table(&functions.Reads{})
	out := make([]Signature, 0, len(table))
	for _, name := range sorted.Keys(table) {
		f := table[name]
		s := Signature{Name: name, Description: f.Description(), Parameters: []Parameter{}, Returns: returns(f)}
		for _, p := range f.Params() {
			s.Parameters = append(s.Parameters, parameter(p))
		}
		if p := f.VarParam(); p != nil {
			v := parameter(*p)
			s.Variadic = &v
		}
		out = append(out, s)
	}
	return out
}

func parameter(p function.Parameter) Parameter {
	return Parameter{Name: p.Name, Type: typeName(p.Type)}
}

// returns returns the type of a function's result that is known without arguments.
func returns(f function.Function) string {
	var args []cty.Type
	for _, p := range f.Params() {
		args = append(args, p.Type)
	}
	if p := f.VarParam(); p != nil {
		args = append(args, p.Type)
	}
	for _, ty := range args {
		if ty.IsCapsuleType() { // the function evaluates its arguments itself
			return typeName(cty.DynamicPseudoType)
		}
	}
	ty, err := f.ReturnType(args)
	if err != nil {
		ty = cty.DynamicPseudoType // some arguments have no valid result
	}
	return typeName(ty)
}

// typeName returns the name of a type as a variable block has it. The functions can and try have
// parameters of an internal type, which stands for an expression of any type.
func typeName(ty cty.Type) string {
	if ty.IsCapsuleType() {
		ty = cty.DynamicPseudoType
	}
	return typeexpr.TypeString(ty)
}
