package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/dsl/diag"
)

// A module is a parsed directory or file.
type module struct {
	dir    string // directory of its files, resolved against --chdir
	shown  string // the same as the user wrote it, for messages; "." = not shown
	file   string // the one file, if PATH was a file
	parsed *dsl.Module
	diags  diag.Diagnostics // of parsing, with names of files as shown
}

// locate finds the directory, and perhaps the file, that PATH names.
func (a opener) locate(given string) (*module, error) {
	full := a.path(given)
	info, err := os.Stat(full)
	if err != nil {
		return nil, failed("No such file or directory", "%s does not exist.", given)
	}
	if info.IsDir() {
		return &module{dir: full, shown: filepath.ToSlash(filepath.Clean(given))}, nil
	}
	if !info.Mode().IsRegular() {
		return nil, failed("Not a workflow", "%s is neither a file nor a directory.", given)
	}
	return &module{
		dir: filepath.Dir(full), shown: filepath.ToSlash(filepath.Dir(filepath.Clean(given))), file: filepath.Base(full),
	}, nil
}

// parse reads the module at PATH. The error is about reading it at all; what
// is wrong in it is in diags.
func (a opener) parse(given string) (*module, error) {
	m, err := a.locate(given)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(m.dir) // links cannot lead out of it
	if err != nil {
		return nil, fmt.Errorf("open module: %w", err)
	}
	defer root.Close()
	files, err := newModuleFS(root)
	if err != nil {
		return nil, fmt.Errorf("open module: %w", err)
	}
	called := given
	if abs, err := filepath.Abs(m.dir); err == nil && m.shown == "." {
		called = abs // "." would not name the module in messages
	}
	parsed, diags := dsl.Parse(files, dsl.ParseOptions{File: m.file, Dir: called, Env: a.lookup, EngineVersion: engineVersion})
	m.parsed = parsed
	m.diags = m.show(diags)
	return m, nil
}

// show gives the files in diagnostics the names that the user can open from
// where the command was given.
func (m *module) show(diags diag.Diagnostics) diag.Diagnostics {
	if m.shown == "." || m.parsed == nil {
		return diags
	}
	out := make(diag.Diagnostics, len(diags))
	for i, d := range diags {
		if _, own := m.parsed.Sources()[d.Range.File]; own {
			d.Range.File = path.Join(m.shown, d.Range.File)
		}
		out[i] = d
	}
	return out
}

// label is how messages call the module: its file, or its directory.
func (m *module) label() string {
	if m.file != "" {
		return path.Join(m.shown, m.file)
	}
	names := make([]string, 0, 1)
	for name := range m.parsed.Sources() {
		if strings.HasSuffix(name, ".hcl") || strings.HasSuffix(name, ".hcl.json") {
			names = append(names, name)
		}
	}
	if len(names) == 1 {
		return path.Join(m.shown, names[0])
	}
	return m.shown
}

// choose picks the workflow of a definition: the named one, or the only one.
func choose(def *dsl.Definition, name string) (*dsl.Workflow, error) {
	names := def.Names()
	switch {
	case name != "":
		if wf := def.Workflow(name); wf != nil {
			return wf, nil
		}
		return nil, failed("Unknown workflow", "There is no workflow %q.%s", name, diag.DidYouMean(name, names))
	case len(names) == 1:
		return def.Workflow(names[0]), nil
	case len(names) == 0:
		return nil, failed("No workflow found", "The module declares no workflow.")
	}
	return nil, failed("Which workflow?", "The module declares several workflows; choose one with --workflow: %s.", strings.Join(names, ", "))
}

func isDir(p string) bool {
	info, err := os.Stat(p)
	return err == nil && info.IsDir()
}
