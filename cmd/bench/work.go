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

// steps is the number of steps of the workflows five and undone.
const steps = 5

// payload is the size of the value that each step passes on, in bytes.
const payload = 100

// A work holds the workflows of the benchmark, and the catalog in which their agent is found.
type work struct {
	def     *dsl.Definition
	vars    dsl.Value // variables for the runs of all its workflows
	catalog *agents.Catalog
}

// value returns the value with which runs are submitted, as JSON.
func (w *work) value() string { return strconv.Quote(strings.Repeat("x", payload)) }

// link prepares the workflows with the agent in a directory.
func link(ctx context.Context, dir string) (*work, error) {
	catalog := agents.NewCatalog(agents.CatalogOptions{Search: agents.SearchOptions{PluginDirs: []string{dir}}})
	w, err := linkSource(ctx, catalog, source, "five")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return w, nil
}

// linkSource prepares workflows. The parameter one is the name of a workflow. All the other
// workflows take the same variables as this one.
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

// bind links workflows with the agents that the function find returns.
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
