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

// printSchema prints the schema of an agent as tables. If action is not "", it prints only that
// action.
func printSchema(a *cli.App, b agents.Binary, action string) error {
	if action == "" {
		if err := a.Print("%s", render.Clean(words.Join("  ", b.Name, b.Version, b.Schema.Doc))+"\n"); err != nil {
			return err
		}
		if err := printFields(a, "config", b.Schema.Config); err != nil {
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
	if err := printFields(a, "input", s.Inputs); err != nil {
		return err
	}
	if err := printFields(a, "output", s.Outputs); err != nil {
		return err
	}
	if len(s.Errors) == 0 {
		return nil
	}
	codes := make([]string, len(s.Errors))
	for i, e := range s.Errors {
		if codes[i] = e.Code; e.Retryable {
			codes[i] += " (repeated)"
		}
	}
	return a.Print("  errors: %s\n", render.Clean(strings.Join(codes, ", ")))
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

// printFields prints inputs, outputs or the configuration as a table.
func printFields(a *cli.App, what string, fields []schema.Field) error {
	if len(fields) == 0 {
		return nil
	}
	table := render.Table{Head: []string{"  " + strings.ToUpper(what), "TYPE", "", "MEANING"}}
	for _, f := range fields {
		table.Add("  "+f.Name, typeName(f.Type), fieldNotes(f), f.Doc)
	}
	return table.Write(a.Stdout)
}

func fieldNotes(f schema.Field) string {
	var notes []string
	switch {
	case len(f.Default) > 0:
		notes = append(notes, "default "+string(f.Default))
	case f.Optional:
		notes = append(notes, "optional")
	}
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
	return strings.Join(notes, ", ")
}

// typeName returns a type as a workflow writes it. It leaves out the attributes of an object,
// which --json shows.
func typeName(t schema.Type) string {
	switch {
	case t.Elem != nil:
		return string(t.Kind) + "(" + typeName(*t.Elem) + ")"
	case t.Kind == schema.KindAny:
		return "any"
	}
	return string(t.Kind)
}
