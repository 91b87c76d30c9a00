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
	Type string `json:"type"` // type of the argument, written as in a variable block: list(string)
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

// returns computes the type of a function's result from the types of its parameters. It returns the
// name of this type. The name is "any" if the type depends on the arguments.
func returns(f function.Function) string {
	var args []cty.Type
	for _, p := range f.Params() {
		args = append(args, p.Type)
	}
	if p := f.VarParam(); p != nil {
		args = append(args, p.Type)
	}
	for _, ty := range args {
		if ty.IsCapsuleType() { // a function such as try evaluates its arguments itself: no type is known
			return typeName(cty.DynamicPseudoType)
		}
	}
	ty, err := f.ReturnType(args)
	if err != nil {
		ty = cty.DynamicPseudoType // the function needs its arguments to know the type
	}
	return typeName(ty)
}

// typeName returns the name of a type as it is written in a variable block. The parameters of the
// functions "can" and "try" have an internal type. For this type, typeName returns "any".
func typeName(ty cty.Type) string {
	if ty.IsCapsuleType() {
		ty = cty.DynamicPseudoType
	}
	return typeexpr.TypeString(ty)
}
