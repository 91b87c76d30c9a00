package typed

import (
	"reflect"

	"github.com/saga-engine/engine/sdk/internal/jsontree"
	"github.com/saga-engine/engine/sdk/schema"
)

// A Form says how values of a Go type are converted from JSON and to JSON.
type Form uint8

// The forms. The zero Form is invalid.
const (
	Any      Form = iota + 1 // an interface without methods; numbers are json.Number
	Raw                      // json.RawMessage
	Bool                     // a boolean type
	Int                      // a signed integer type
	Uint                     // an unsigned integer type
	Float                    // a floating-point type
	Number                   // json.Number
	String                   // a string type
	Duration                 // time.Duration, as a text such as "90s"
	Text                     // a type with the methods MarshalText and UnmarshalText
	List                     // a slice
	Map                      // a map with string keys
	Struct                   // a struct whose fields have agent tags
	Pointer                  // a pointer; nil is null
)

// A Plan says how values of one Go type are converted from JSON and to JSON. The SDK makes the
// plan when an action is added, so it finds mistakes in tags before it serves the agent. A Plan
// never changes.
type Plan struct {
	Form   Form
	Type   schema.Type  // type in the workflow language
	Go     reflect.Type // type in Go
	Elem   *Plan        // plan of the elements of a list, map or pointer; nil for other forms
	Fields []Field      // fields of a struct, sorted by name

	hidden bool // the value belongs to a sensitive field, so errors must not show any part of it
}

// hide makes the errors of the plan show no part of a value. It is called once, while the plan is
// made.
func (p *Plan) hide() {
	p.hidden = true
	if p.Elem != nil {
		p.Elem.hide()
	}
	for i := range p.Fields {
		p.Fields[i].Plan.hide()
	}
}

// A Field is one tagged field of a struct.
type Field struct {
	Schema schema.Field
	Index  []int // index for reflect.Value.FieldByIndex
	Plan   *Plan
	Words  *schema.Words // rules for texts in the field; nil = none

	enum []any // Schema.Enum as JSON trees
}

// Schemas returns the schemas of a struct's fields; nil if the struct has no fields. The
// caller may change the slice.
func (p *Plan) Schemas() []schema.Field {
	var fields []schema.Field
	for _, f := range p.Fields {
		fields = append(fields, f.Schema)
	}
	return fields
}

// oneOf returns an error if the field has an enum and `tree` is not in the enum. It returns nil
// if `tree` is null.
func (f *Field) oneOf(tree any) error { return jsontree.OneOf(tree, f.enum, f.Schema.Enum) }
