package main

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/agents"
)

//go:embed workflow.hcl
var source embed.FS

// steps is the number of steps in the workflow "five", and in the workflow "undone".
const steps = 5

// payload is the size, in bytes, of the value that each step gets as input and returns.
const payload = 100

// A work holds workflows of the benchmark, and the catalog that finds their agents.
type work struct {
	def     *dsl.Definition
	vars    dsl.Value // variables for the runs of all these workflows
	catalog *agents.Catalog
}

// value returns the value of the only variable of each run, as JSON. The value is a string whose
// length is the constant `payload`.
func (w *work) value() string { return strconv.Quote(strings.Repeat("x", payload)) }

// link parses workflow.hcl and links its workflows with the agents in the directory dir.
func link(ctx context.Context, dir string) (*work, error) {
	catalog := agents.NewCatalog(agents.CatalogOptions{Search: agents.SearchOptions{PluginDirs: []string{dir}}})
	w, err := linkSource(ctx, catalog, source, "five")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return w, nil
}

// linkSource parses the workflows in fsys, and links them with agents of the catalog. The
// parameter `one` is the name of a workflow. All other workflows must have the same variables
// as that workflow.
func linkSource(ctx context.Context, catalog *agents.Catalog, fsys fs.FS, one string) (*work, error) {
	w, err := bind(fsys, one, func(use dsl.AgentUse) (dsl.AgentBinary, error) {
		bin, err := catalog.Find(ctx, use.Plugin, use.Constraint)
		if err != nil {
			return dsl.AgentBinary{}, fmt.Errorf("find agent %s: %w", use.Plugin, err)
		}
		return bin.Pin(), nil
	})
	if err != nil {
		return nil, err
	}
	w.catalog = catalog
	return w, nil
}

// bind parses the workflows in fsys, and links them with their agents. The parameter `find` is
// a function that returns an agent. The parameter `one` is the name of a workflow: bind
// computes the variables for this workflow.
func bind(fsys fs.FS, one string, find func(dsl.AgentUse) (dsl.AgentBinary, error)) (*work, error) {
	m, diags := dsl.Parse(fsys, dsl.ParseOptions{})
	if err := diags.Err(); err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	binaries := map[string]dsl.AgentBinary{}
	for _, use := range m.Agents() {
		bin, err := find(use)
		if err != nil {
			return nil, err
		}
		binaries[use.Name] = bin
	}
	def, diags := dsl.Link(m, binaries)
	if err := diags.Err(); err != nil {
		return nil, fmt.Errorf("link: %w", err)
	}
	vars, diags := def.Workflow(one).Bind([]dsl.Assignment{{Name: "value", Text: strings.Repeat("x", payload), Source: "bench"}})
	if err := diags.Err(); err != nil {
		return nil, fmt.Errorf("bind: %w", err)
	}
	return &work{def: def, vars: vars}, nil
}
