package module

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/regular"
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/dsl/diag"
)

// A Module is a directory of workflow files, or a single file, with its parsed content.
type Module struct {
	Dir    string // directory of its files, resolved against --chdir
	Shown  string // Dir as the user wrote it, for messages; "." = messages leave it out
	file   string // name of the file if PATH is a file; "" = PATH is a directory
	parsed *dsl.Module
	Diags  diag.Diagnostics // findings of Parse, with file names that the user can open
}

// Locate finds the directory, or the file, that PATH names. It does not parse the module.
func Locate(a *cli.App, given string) (*Module, error) {
	full := a.Path(given)
	info, err := os.Stat(full)
	if err != nil {
		return nil, cli.Failed("No such file or directory", "%s does not exist.", given)
	}
	if info.IsDir() {
		return &Module{Dir: full, Shown: filepath.ToSlash(filepath.Clean(given))}, nil
	}
	if !info.Mode().IsRegular() {
		return nil, cli.Failed("Not a workflow", "%s is neither a file nor a directory.", given)
	}
	return &Module{
		Dir: filepath.Dir(full), Shown: filepath.ToSlash(filepath.Dir(filepath.Clean(given))), file: filepath.Base(full),
	}, nil
}

// Parse reads the module at PATH. It returns an error if it cannot read the files. The field
// Diags of the result holds what is wrong in the text of the files.
func Parse(a *cli.App, given string) (*Module, error) {
	m, err := Locate(a, given)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(m.Dir) // links in root cannot lead out of the directory
	if err != nil {
		return nil, fmt.Errorf("open module: %w", err)
	}
	defer root.Close()
	files, err := regular.NewFS(root)
	if err != nil {
		return nil, fmt.Errorf("open module: %w", err)
	}
	called := given
	if abs, err := filepath.Abs(m.Dir); err == nil && m.Shown == "." {
		called = abs // in messages, "." would not show which module it is
	}
	opts := dsl.ParseOptions{File: m.file, Dir: called, Env: a.Lookup, EngineVersion: cli.Version}
	if home, inside := below(a.Path("."), m.Dir); inside {
		// The files of a library may be anywhere in the working directory, so the parser can read
		// all of it.
		around, err := os.OpenRoot(a.Path("."))
		if err != nil {
			return nil, fmt.Errorf("open the working directory: %w", err)
		}
		defer around.Close()
		if opts.Root, err = regular.NewFS(around); err != nil {
			return nil, fmt.Errorf("open the working directory: %w", err)
		}
		opts.Home = home
	}
	parsed, diags := dsl.Parse(files, opts)
	m.parsed = parsed
	m.Diags = m.Named(diags)
	return m, nil
}

// below returns the path of `dir` relative to the directory `base`, with slashes. It returns false
// if `dir` is not inside of `base`.
func below(base, dir string) (string, bool) {
	base, baseErr := filepath.Abs(base)
	dir, dirErr := filepath.Abs(dir)
	rel, err := filepath.Rel(base, dir)
	if baseErr != nil || dirErr != nil || err != nil || !filepath.IsLocal(rel) {
		return "", false
	}
	return filepath.ToSlash(rel), true
}

// Named changes the file names in diagnostics, so that the user can open them from the
// directory in which the command was given.
func (m *Module) Named(diags diag.Diagnostics) diag.Diagnostics {
	if m.Shown == "." || m.parsed == nil {
		return diags
	}
	out := make(diag.Diagnostics, len(diags))
	for i, d := range diags {
		if _, own := m.parsed.Sources()[d.Range.File]; own {
			d.Range.File = path.Join(m.Shown, d.Range.File)
		}
		out[i] = d
	}
	return out
}

// Label returns the name of the module in messages: the name of its file if the module has only one
// file, and otherwise the name of its directory.
func (m *Module) Label() string {
	if m.file != "" {
		return path.Join(m.Shown, m.file)
	}
	names := make([]string, 0, 1)
	for name := range m.parsed.Sources() {
		library := strings.Contains(name, "/")
		if !library && (strings.HasSuffix(name, ".hcl") || strings.HasSuffix(name, ".hcl.json")) {
			names = append(names, name)
		}
	}
	if len(names) == 1 {
		return path.Join(m.Shown, names[0])
	}
	return m.Shown
}

// Choose returns the workflow with the given name. If `name` is "", it returns the only workflow,
// or an error if there is not exactly one.
func Choose(def *dsl.Definition, name string) (*dsl.Workflow, error) {
	names := def.Names()
	switch {
	case name != "":
		if wf := def.Workflow(name); wf != nil && wf.Inner {
			return nil, cli.Failed("Workflow of a child run", "Only a step starts %q, as a child run: it is a group or a workflow of a library. Choose a workflow of the module: %s.", name, strings.Join(names, ", "))
		} else if wf != nil && wf.Notifies == "" {
			return wf, nil
		}
		return nil, cli.Failed("Unknown workflow", "There is no workflow %q.%s", name, diag.DidYouMean(name, names))
	case len(names) == 1:
		return def.Workflow(names[0]), nil
	case len(names) == 0:
		return nil, cli.Failed("No workflow found", "The module declares no workflow.")
	}
	return nil, cli.Failed("Which workflow?", "The module declares several workflows; choose one with --workflow: %s.", strings.Join(names, ", "))
}
