package decl

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"sort"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	hcljson "github.com/hashicorp/hcl/v2/json"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/functions"
	"github.com/saga-engine/engine/dsl/internal/metered"
	"github.com/saga-engine/engine/dsl/internal/report"
	"github.com/saga-engine/engine/dsl/internal/syntax"
)

// Options choose what Parse reads.
type Options struct {
	// File is the name of the only file of the module; "" = the module consists of every
	// *.hcl and *.hcl.json file in the root directory.
	File string
	// Env looks up an environment variable for env(); nil = no variable is set.
	Env func(name string) (value string, ok bool)
	// Dir is the name of the directory in messages; "" = "this directory".
	Dir string
	// EngineVersion is the version of this engine, which must satisfy required_version;
	// "" = required_version is not checked.
	EngineVersion string
}

// ParseFiles reads the files of a module from fsys. It returns the module and all findings. If a
// file has errors, the module is incomplete, but not nil.
func ParseFiles(fsys fs.FS, opts Options) (*Module, diag.Diagnostics) {
	m := newModule(opts.File)
	r := &report.Reporter{Sources: m.Sources, Places: m.Places}
	if !r.Bounded(func() {
		m.load(r, fsys, opts.Dir)
		source := liveSource{fsys: fsys, env: opts.Env, reads: &m.Reads}
		m.build(r, source, opts.EngineVersion)
		m.loadValues(r, fsys)
	}) {
		m.Partial = true // the check ended early, so declarations are missing
	}
	diags := r.Finish()
	m.Failed = diags.HasErrors()
	return m, diags
}

// ParseStored parses the files of a stored definition. answers holds the results that file(), env()
// and similar functions had when the definition was loaded. If older is true, ParseStored does not check newer
// rules, because the definition may be older than these rules.
func ParseStored(file string, files map[string][]byte, answers functions.Reads, older bool) (*Module, diag.Diagnostics) {
	m := newModule(file)
	m.Older, m.Reads = older, answers
	for name, src := range files {
		m.Files[name], m.Sources[name] = src, src
	}
	r := &report.Reporter{Sources: m.Sources, Places: m.Places}
	if older {
		r.Effort = metered.NewAllowance(math.MaxInt64) // the definition was checked when it was stored
	}
	m.build(r, storedSource{&m.Reads}, "")
	diags := r.Finish()
	m.Failed = m.Failed || diags.HasErrors()
	return m, diags
}

func newModule(file string) *Module {
	return &Module{
		File:    file,
		Files:   map[string][]byte{},
		Sources: map[string][]byte{},
		Reads:   functions.Reads{Files: map[string]string{}, Env: map[string]*string{}},
		Places:  report.Places{},
	}
}

// isModuleFile reports whether a file in the directory belongs to the module, by its name.
func isModuleFile(name string) bool {
	base := strings.TrimSuffix(name, ".json")
	return strings.HasSuffix(base, ".hcl") && !strings.HasPrefix(name, ".") &&
		!strings.HasSuffix(base, ".test.hcl") && !strings.HasSuffix(base, ".vars.hcl")
}

func isAutoVars(name string) bool {
	return strings.HasSuffix(strings.TrimSuffix(name, ".json"), ".auto.vars.hcl") && !strings.HasPrefix(name, ".")
}

// load reads the files of the module into m.Files and m.Sources.
func (m *Module) load(r *report.Reporter, fsys fs.FS, dir string) {
	var names []string
	if m.File != "" {
		names = []string{path.Clean(m.File)}
		m.File = names[0]
	} else {
		entries, err := fs.ReadDir(fsys, ".")
		if err != nil {
			r.Errorf(hcl.Range{}, "Cannot read the module", "%s.", err)
			return
		}
		for _, e := range entries {
			if !e.IsDir() && isModuleFile(e.Name()) {
				names = append(names, e.Name())
			}
		}
		if len(names) == 0 {
			where := "This directory"
			if dir != "" {
				where = fmt.Sprintf("The directory %q", dir)
			}
			r.Errorf(hcl.Range{}, "No workflow files", "%s holds no *.hcl file.", where)
			return
		}
	}
	if len(names) > syntax.MaxFiles {
		r.Errorf(hcl.Range{}, "Too many files", "A module may hold at most %d files.", syntax.MaxFiles)
		return
	}
	total := 0
	for _, name := range names {
		src, ok := readFile(r, fsys, name)
		if !ok {
			continue
		}
		if total += len(src); total > syntax.MaxModule {
			r.Errorf(hcl.Range{}, "Module too large", "The files of a module may hold at most 16 MiB.")
			return
		}
		m.Files[name], m.Sources[name] = src, src
	}
}

// readFile reads a file. If it cannot read the file, it reports an error and returns false. It
// reads at most one byte more than the allowed size, so even a huge file needs little memory.
func readFile(r *report.Reporter, fsys fs.FS, name string) ([]byte, bool) {
	src, err := readLimited(fsys, name)
	switch {
	case errors.Is(err, errTooLarge):
		r.Sources[name] = nil // the map has the name of the file, but not its text
		r.HCL(hcl.Diagnostics{syntax.TooBig(name)})
	case err != nil:
		r.Errorf(hcl.Range{}, "Cannot read file", "%s.", err)
	}
	return src, err == nil
}

// build parses m.Files and adds the declarations to m. It does the same for a directory and for a
// stored definition.
func (m *Module) build(r *report.Reporter, source readSource, engineVersion string) {
	names := make([]string, 0, len(m.Files))
	for n := range m.Files {
		names = append(names, n)
	}
	sort.Strings(names)
	var bodies []hcl.Body
	broken := false
	for _, name := range names {
		body, ok := m.parseFile(r, name)
		if !ok {
			broken = true
			continue
		}
		bodies = append(bodies, body)
	}
	var blocks []*syntax.Block
	for _, body := range bodies {
		blocks = append(blocks, syntax.Reader{Reporter: r, Older: m.Older}.Read(body, syntax.ModuleSpec, "", body.MissingItemRange()).Blocks...)
	}
	d := &decoder{Reporter: r, lit: literalDecoder{r, m}, m: m, source: source, engineVersion: engineVersion}
	m.Funcs = functions.Table(&m.Reads)
	d.module(blocks)
	if !broken { // otherwise names that a broken file declares would be reported as unknown
		graphDecoder{d, referenceDecoder{d, map[*eval.Local]visit{}}}.resolve()
	} else {
		m.Failed, m.Partial = true, true
	}
}

// parseFile checks the limits of one file, parses the file, and adds the places of its blocks to
// m.Places. If the file has errors, parseFile reports them and returns false.
func (m *Module) parseFile(r *report.Reporter, name string) (hcl.Body, bool) {
	src := m.Files[name]
	if strings.HasSuffix(name, ".json") {
		if d := syntax.PrescanJSON(src, name); d != nil {
			r.HCL(hcl.Diagnostics{d})
			return nil, false
		}
		f, diags := hcljson.Parse(src, name)
		r.HCL(diags)
		return f.Body, !diags.HasErrors()
	}
	if d := syntax.Prescan(src, name); d != nil {
		r.HCL(hcl.Diagnostics{d})
		return nil, false
	}
	f, diags := hclsyntax.ParseConfig(src, name, hcl.InitialPos)
	r.HCL(diags)
	if body, ok := f.Body.(*hclsyntax.Body); ok {
		m.Places[name] = blockPlaces(body, nil)
	}
	return f.Body, !diags.HasErrors()
}

// blockPlaces appends the places of all blocks of a body to out, outer blocks before inner blocks.
// It leaves out input and locals blocks, because the source line alone is clear enough there.
func blockPlaces(body *hclsyntax.Body, out []report.Place) []report.Place {
	for _, b := range body.Blocks {
		label := b.Type
		if len(b.Labels) > 0 {
			label += fmt.Sprintf(" %q", b.Labels[0])
		}
		rng := b.Range()
		if b.Type != "input" && b.Type != "locals" {
			out = append(out, report.Place{Start: b.TypeRange.Start.Byte, End: max(rng.End.Byte, b.CloseBraceRange.End.Byte), Label: label})
		}
		out = blockPlaces(b.Body, out)
	}
	return out
}

// loadValues reads the *.auto.vars.hcl files in the directory of the module into m.Auto.
func (m *Module) loadValues(r *report.Reporter, fsys fs.FS) {
	dir := "."
	if m.File != "" {
		dir = path.Dir(m.File)
	}
	entries, err := fs.ReadDir(fsys, dir)
	if err != nil {
		if m.File == "" {
			return // the method load has reported the error
		}
		r.Errorf(hcl.Range{}, "Cannot read the module", "%s.", err)
		return
	}
	count, total := 0, 0
	for _, e := range entries {
		if e.IsDir() || !isAutoVars(e.Name()) {
			continue
		}
		if count++; count > syntax.MaxFiles {
			r.Errorf(hcl.Range{}, "Too many files", "A module may have at most %d *.auto.vars.hcl files. Put values together, or give other files with --var-file.", syntax.MaxFiles)
			return
		}
		name := path.Join(dir, e.Name())
		src, ok := readFile(r, fsys, name)
		if !ok {
			continue
		}
		if total += len(src); total > syntax.MaxModule {
			r.Errorf(hcl.Range{}, "Values too large", "The *.auto.vars.hcl files of a module may hold at most 16 MiB.")
			return
		}
		m.Sources[name] = src
		m.Auto = append(m.Auto, variableReader{r}.parseVars(name, src)...)
	}
}
