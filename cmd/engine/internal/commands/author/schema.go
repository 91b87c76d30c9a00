package author

import (
	"fmt"
	"strings"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine/agents"
	"github.com/saga-engine/engine/sdk/schema"
)

// printSchema prints the schema of an agent as tables. If `action` is not "", it prints only that
// action.
func printSchema(a *cli.App, b agents.Binary, action string) error {
	if action == "" {
		if err := a.Print("%s", render.Clean(words.Join("  ", b.Name, b.Version, b.Schema.Doc))+"\n"); err != nil {
			return err
		}
		if err := printFields(a, "config", b.Schema.Config, inputNotes); err != nil {
			return err
		}
	}
	for _, name := range words.Sorted(b.Schema.Actions) {
		if action != "" && name != action {
			continue
		}
		if err := printAction(a, b.Name, name, b.Schema.Actions[name]); err != nil {
			return err
		}
	}
	return nil
}

func printAction(a *cli.App, agent, name string, s schema.Action) error {
	title := agent + "." + name
	if text := capabilities(s); text != "" {
		title += " (" + text + ")"
	}
	if err := a.Print("\n%s\n", render.Clean(words.Join(": ", title, s.Doc))); err != nil {
		return err
	}
	if err := printFields(a, "input", s.Inputs, inputNotes); err != nil {
		return err
	}
	if err := printFields(a, "output", s.Outputs, outputNotes); err != nil {
		return err
	}
	return printErrors(a, s.Errors)
}

// printErrors prints the error codes of an action as a table.
func printErrors(a *cli.App, codes []schema.ErrorCode) error {
	if len(codes) == 0 {
		return nil
	}
	table := render.Table{Head: []string{"  ERROR", "", "MEANING"}}
	for _, e := range codes {
		notes, doc := "", e.Doc
		if e.Retryable {
			notes = "repeated"
		}
		if e.Code == schema.AnyCode && doc == "" {
			doc = "any other code: the codes depend on the input"
		}
		table.Add("  "+e.Code, notes, doc)
	}
	return table.Write(a.Stdout)
}

// capabilities returns a text with the properties that an action declares, such as "read only".
func capabilities(s schema.Action) string {
	var parts []string
	for _, c := range []struct {
		has  bool
		name string
	}{
		{s.ReadOnly, "read only"}, {s.Idempotent, "idempotent"}, {s.ByKey, "by key"}, {s.Lookup, "lookup"},
		{s.Heartbeats, "heartbeats"}, {s.Checkpoints, "checkpoints"}, {s.Cancellable, "cancellable"},
	} {
		if c.has {
			parts = append(parts, c.name)
		}
	}
	if s.CompensatedBy != "" {
		parts = append(parts, "undone by "+s.CompensatedBy)
	}
	if s.Typical > 0 {
		parts = append(parts, "takes "+render.Span(s.Typical))
	}
	return strings.Join(parts, ", ")
}

// printFields prints inputs, outputs or the configuration as a table. The parameter `what` is
// the title of the first column. The function `notes` returns the text of the third column.
func printFields(a *cli.App, what string, fields []schema.Field, notes func(schema.Field) string) error {
	if len(fields) == 0 {
		return nil
	}
	table := render.Table{Head: []string{"  " + strings.ToUpper(what), "TYPE", "", "MEANING"}}
	addFields(&table, "  ", fields, notes)
	return table.Write(a.Stdout)
}

// addFields adds a row for each field, and for each attribute of its objects. The name of an
// attribute is a path such as address.city, or items[].sku for the objects in a list, set or map.
func addFields(table *render.Table, prefix string, fields []schema.Field, notes func(schema.Field) string) {
	for _, f := range fields {
		table.Add(prefix+f.Name, typeName(f.Type), notes(f), f.Doc)
		path, t := prefix+f.Name, f.Type
		for ; t.Elem != nil; t = *t.Elem {
			path += "[]"
		}
		addFields(table, path+".", t.Fields, notes)
	}
}

// inputNotes returns a text about an input of an action, or about an argument of the agent's
// configuration: whether it is required, its default, and which values it may have.
func inputNotes(f schema.Field) string {
	switch {
	case len(f.Default) > 0:
		return words.Join(", ", "default "+string(f.Default), fieldNotes(f))
	case f.Optional:
		return words.Join(", ", "optional", fieldNotes(f))
	}
	return words.Join(", ", "required", fieldNotes(f))
}

// outputNotes returns a text about an output of an action: whether it may be null, and which values
// it may have.
func outputNotes(f schema.Field) string {
	if f.Optional {
		return words.Join(", ", "may be null", fieldNotes(f))
	}
	return fieldNotes(f)
}

func fieldNotes(f schema.Field) string {
	var notes []string
	if f.Sensitive {
		notes = append(notes, "sensitive")
	}
	if len(f.Enum) > 0 {
		values := make([]string, len(f.Enum))
		for i, v := range f.Enum {
			values[i] = string(v)
		}
		notes = append(notes, "one of "+strings.Join(values, ", "))
	}
	if f.Pattern != "" {
		notes = append(notes, fmt.Sprintf("matches %s", f.Pattern))
	}
	if f.Codes {
		notes = append(notes, "error codes")
	}
	return strings.Join(notes, ", ")
}

// typeName returns the name of a type in the words of the language, such as list(string). It leaves
// out the attributes of an object, because each attribute has its own row in the table.
func typeName(t schema.Type) string {
	switch {
	case t.Elem != nil:
		return string(t.Kind) + "(" + typeName(*t.Elem) + ")"
	case t.Kind == schema.KindAny:
		return "any"
	}
	return string(t.Kind)
}
