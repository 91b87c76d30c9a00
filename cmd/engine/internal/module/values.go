package module

import (
	"fmt"
	"sort"
	"strings"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/regular"
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/dsl/diag"
)

// envPrefix is the beginning of the names of environment variables that set a workflow's
// variables.
const envPrefix = "ENGINE_VAR_"

// A Value is the text of one flag --var or --var-file.
type Value struct {
	text string
	file bool
}

// A valueFlag collects the values of --var and --var-file in the order of the command line. If two
// of these values set the same variable, the later one counts.
type valueFlag struct {
	to   *[]Value
	file bool
}

// String returns "", because the flags have no default.
func (f valueFlag) String() string { return "" }

// Type returns the name of the flag's value in the help.
func (f valueFlag) Type() string {
	if f.file {
		return "FILE"
	}
	return "NAME=VALUE"
}

// Set appends the flag's value to the collected values.
func (f valueFlag) Set(s string) error {
	if !f.file && !strings.Contains(s, "=") {
		return fmt.Errorf("%q is not NAME=VALUE", s)
	}
	*f.to = append(*f.to, Value{s, f.file})
	return nil
}

// ValueFlags adds --var and --var-file to a command.
func ValueFlags(cmd *cobra.Command, to *[]Value) {
	cmd.Flags().Var(valueFlag{to: to}, "var", "value of a variable; may be repeated")
	cmd.Flags().Var(valueFlag{to: to, file: true}, "var-file", "file of values; may be repeated")
}

// Assignments collects the values from ENGINE_VAR_x, then from *.auto.vars.hcl, then from
// --var and --var-file in their order. If a variable has several values, the last one counts.
func Assignments(a *cli.App, m *Module, given []Value) ([]dsl.Assignment, error) {
	var out []dsl.Assignment
	env := a.Environ()
	sort.Strings(env)
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		if v, ok := strings.CutPrefix(name, envPrefix); ok && v != "" {
			out = append(out, dsl.Assignment{Name: v, Text: value, Source: name})
		}
	}
	out = append(out, m.parsed.AutoVars()...)
	var diags diag.Diagnostics
	for _, g := range given {
		if !g.file {
			name, value, _ := strings.Cut(g.text, "=")
			out = append(out, dsl.Assignment{Name: strings.TrimSpace(name), Text: value, Source: "--var"})
			continue
		}
		src, err := regular.Read(a.Path(g.text), regular.MaxSource)
		if err != nil {
			return nil, cli.Failed("Cannot read values", "--var-file: %s.", err)
		}
		more, d := dsl.ParseVars(g.text, src)
		out, diags = append(out, more...), append(diags, d...)
	}
	if diags.HasErrors() {
		return nil, cli.Problems(diags)
	}
	return out, nil
}
