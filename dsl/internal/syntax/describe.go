package syntax

import (
	"maps"
	"slices"

	"github.com/saga-engine/engine/dsl/internal/eval"
)

// A BlockSchema describes a block of the language for programs, such as editors. Describe makes it
// from the same table that Reader.Read uses.
type BlockSchema struct {
	Name       string            `json:"name"`
	Labels     []string          `json:"labels"`          // the word "name" if the block has a label; empty = it has none
	Repeatable bool              `json:"repeatable"`      // true = the block may occur several times
	Free       bool              `json:"free_attributes"` // true = the attributes may have any name
	Attributes []AttributeSchema `json:"attributes"`
	Blocks     []BlockSchema     `json:"blocks"` // inner blocks
	// true = the block is inside of a block of the same kind, such as a group in a group. Then
	// Blocks is empty, because the outer block has the same inner blocks in its own field Blocks.
	Nested bool `json:"nested,omitempty"`
}

// An AttributeSchema describes an attribute of a block.
type AttributeSchema struct {
	Name     string `json:"name"`
	Required bool   `json:"required"`
	Literal  bool   `json:"literal"`         // true = the value uses neither references nor functions
	Type     bool   `json:"type_constraint"` // true = the value is a type, such as list(string)
}

// A ReferenceSchema describes a kind of reference that expressions may contain.
type ReferenceSchema struct {
	Root string `json:"root"` // first name of the reference, such as "var" in var.NAME
	Form string `json:"form"` // the whole reference; a word in capital letters means any name
	// The whole reference to a step with for_each; "" = the reference is the same for all steps.
	KeyedForm string `json:"keyed_form,omitempty"`
	// Attributes that may replace the word ATTRIBUTE in Form; nil = Form has no such word.
	Attributes []ReferenceSchema `json:"attributes,omitempty"`
}

// Describe returns the blocks that a file may have at its top level, with all inner blocks.
func Describe() []BlockSchema { return ModuleSpec.describe() }

// describe returns the inner blocks of s. The parameter `around` holds the specs of the blocks that
// contain s. If the spec of an inner block is s or one of these specs, describe only sets the field
// Nested for it, and does not describe what is inside. Without this rule, describe would never end.
func (s *bodySpec) describe(around ...*bodySpec) []BlockSchema {
	around = append(slices.Clone(around), s)
	out := make([]BlockSchema, 0, len(s.blocks))
	for _, b := range s.blocks {
		block := BlockSchema{
			Name: b.name, Labels: []string{}, Repeatable: b.many, Free: b.body.free,
			Attributes: make([]AttributeSchema, 0, len(b.body.attrs)), Blocks: []BlockSchema{}, Nested: slices.Contains(around, b.body),
		}
		if !block.Nested {
			block.Blocks = b.body.describe(around...)
		}
		if b.label {
			block.Labels = append(block.Labels, labelName)
		}
		for _, a := range b.body.attrs {
			block.Attributes = append(block.Attributes, AttributeSchema{Name: a.name, Required: a.required, Literal: a.literal, Type: a.typ})
		}
		out = append(out, block)
	}
	return out
}

// References returns the kinds of references. The position of an expression in the source decides
// which kinds of references the expression may contain.
func References() []ReferenceSchema {
	out := []ReferenceSchema{
		{Root: "agent", Form: "agent.NAME.ACTION"},
		{Root: "args", Form: "args.NAME"},
		{Root: "library", Form: "library.NAME.agent.NAME.ACTION"},
		{Root: "library", Form: "library.NAME.workflow.NAME"},
		{Root: "local", Form: "local.NAME"},
		{Root: "var", Form: "var.NAME"},
		{Root: "workflow", Form: "workflow.NAME"},
	}
	step := ReferenceSchema{Root: "step", Form: "step.NAME.ATTRIBUTE", KeyedForm: "step.NAME[KEY].ATTRIBUTE"}
	for _, field := range StepFields {
		f := ReferenceSchema{Root: field, Form: field}
		switch field {
		case "output":
			f.Form = "output.NAME"
		case "error":
			f.Form = "error.ATTRIBUTE"
			f.Attributes = fields(slices.Sorted(maps.Keys(eval.ErrorType.AttributeTypes())))
		}
		step.Attributes = append(step.Attributes, f)
	}
	group := ReferenceSchema{Root: "group", Form: "group.NAME.ATTRIBUTE", KeyedForm: "group.NAME[KEY].ATTRIBUTE"}
	for _, f := range step.Attributes {
		if slices.Contains(GroupFields, f.Root) {
			group.Attributes = append(group.Attributes, f)
		}
	}
	out = append(out, step, group)
	for _, root := range slices.Sorted(maps.Keys(RootFields)) {
		out = append(out, ReferenceSchema{Root: root, Form: root + ".ATTRIBUTE", Attributes: fields(RootFields[root])})
	}
	return out
}

func fields(names []string) []ReferenceSchema {
	out := make([]ReferenceSchema, len(names))
	for i, name := range names {
		out[i] = ReferenceSchema{Root: name, Form: name}
	}
	return out
}
