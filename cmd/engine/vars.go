package main

import (
	"fmt"
	"sort"
	"strings"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/dsl/diag"
)

// envPrefix starts the names of environment variables that give values.
const envPrefix = "ENGINE_VAR_"

// A valueFlag collects --var and --var-file in the order in which they stand
// on the command line: later ones win over earlier ones of either kind.
type valueFlag struct {
	to   *[]givenValue
	file bool
}

type givenValue struct {
	text string
	file bool
}

// String returns the default, which is none.
func (f valueFlag) String() string { return "" }

// Type is what help shows for the flag's value.
func (f valueFlag) Type() string {
	if f.file {
		return "FILE"
	}
	return "NAME=VALUE"
}

// Set appends one value.
func (f valueFlag) Set(s string) error {
	if !f.file && !strings.Contains(s, "=") {
		return fmt.Errorf("%q is not NAME=VALUE", s)
	}
	*f.to = append(*f.to, givenValue{s, f.file})
	return nil
}

// valueFlags adds --var and --var-file to a command.
func valueFlags(cmd *cobra.Command, to *[]givenValue) {
	cmd.Flags().Var(valueFlag{to: to}, "var", "value of a variable; may be repeated")
	cmd.Flags().Var(valueFlag{to: to, file: true}, "var-file", "file of values; may be repeated")
}

// assignments gathers values in order of precedence, the weakest first:
// ENGINE_VAR_x, *.auto.vars.hcl, then --var and --var-file as given.
func (a planner) assignments(m *module, given []givenValue) ([]dsl.Assignment, error) {
	var out []dsl.Assignment
	env := a.environ()
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
		src, err := readRegular(a.path(g.text), maxFile)
		if err != nil {
			return nil, failed("Cannot read values", "--var-file: %s.", err)
		}
		more, d := dsl.ParseVars(g.text, src)
		out, diags = append(out, more...), append(diags, d...)
	}
	if diags.HasErrors() {
		return nil, problems(diags)
	}
	return out, nil
}
