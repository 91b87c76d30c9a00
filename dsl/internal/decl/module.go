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
	// File is the name of the only file of the module; "" = the module consists of the
	// *.hcl and *.hcl.json files in the root directory (see isModuleFile for exceptions).
	File string
	// Env looks up an environment variable for env(); nil = no variable is set.
	Env func(name string) (value string, ok bool)
	// Dir is the name of the directory in messages; "" = "this directory".
	Dir string
	// Root is the file system in which the libraries of the module must be; nil = the file system
	// of the module itself.
	Root fs.FS
	// Home is the path of the directory of the module in Root; "" = the module is in the root
	// directory of Root.
	Home string
	// EngineVersion is the version of this engine, which must satisfy required_version;
	// "" = required_version is not checked.
	EngineVersion string
}

// ParseFiles reads the files of a module from fsys. It returns the module and all findings. If a
// file has errors, the module is incomplete, but not nil.
func ParseFiles(fsys fs.FS, opts Options) (*Module, diag.Diagnostics) {
	m := newModule(opts.File)
	r := &report.Reporter{Sources: m.Sources, Blocks: m.Blocks}
	if !r.Bounded(func() {
		m.load(r, fsys, opts.Dir)
		source := liveSource{fsys: fsys, env: opts.Env, reads: &m.Reads, use: &readUse{}}
		below := liveLibraries{root: opts.Root, home: opts.Home, env: opts.Env}
		if below.root == nil {
			below.root = fsys
		}
		m.buildAll(r, source, below, opts.EngineVersion)
		m.loadValues(r, fsys)
	}) {
		m.Partial = true // the check ended early, so declarations are missing
	}
	diags := r.Finish()
	m.Failed = diags.HasErrors()
	return m, diags
}

// ParseStored parses the files of a stored definition. If the parameter `older` is true, it does
// not check newer rules, because the definition may be older than these rules.
func ParseStored(s Stored, older bool) (*Module, diag.Diagnostics) {
	m := newModule(s.File)
	m.Older, m.Reads = older, s.Reads
	for name, src := range s.Files {
		m.Files[name], m.Sources[name] = src, src
	}
	r := &report.Reporter{Sources: m.Sources, Blocks: m.Blocks}
	if older {
		// There is no limit: the check was cheap enough when the definition was stored.
		r.Effort = metered.NewAllowance(math.MaxInt64)
		m.kept = s.Agents
	}
	m.buildAll(r, storedSource{&m.Reads}, storedLibraries(s.Libraries), "")
	diags := r.Finish()
	m.Failed = m.Failed || diags.HasErrors()
	return m, diags
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
		r.Sources[name] = nil // the map now has the name of the file, but not its text
		r.HCL(hcl.Diagnostics{syntax.TooBig(name)})
	case err != nil:
		r.Errorf(hcl.Range{}, "Cannot read file", "%s.", err)
	}
	return src, err == nil
}

// buildAll parses the files of the main module m and adds their declarations to m. It also reads
// the libraries of m. The parameter `below` supplies the files of these libraries.
func (m *Module) buildAll(r *report.Reporter, source readSource, below librarySource, engineVersion string) {
	m.chain = []string{path.Clean(m.File)}
	libs := &libraries{source: below, read: map[string]*Module{}}
	libs.build = func(lib *Module, source readSource) { lib.build(r, source, libs, engineVersion) }
	m.build(r, source, libs, engineVersion)
	m.Below = libs.complete()
}

// build parses the texts in m.Files and adds the declarations in them to m. The parameter `source`
// supplies the results of file(), env() and similar functions.
func (m *Module) build(r *report.Reporter, source readSource, libs *libraries, engineVersion string) {
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
	d := &decoder{Reporter: r, lit: literalDecoder{r, m}, m: m, source: source, libs: libs, engineVersion: engineVersion}
	m.Funcs = functions.Table(&m.Reads)
	d.module(blocks)
	// If a file is broken, its declarations are missing here. A reference to a missing declaration
	// would be reported as unknown. So in this case, no references are checked.
	if !broken {
		graphDecoder{d, referenceDecoder{d, map[*eval.Local]visit{}}}.resolve()
		sourceDecoder{d}.agree()
	} else {
		m.Failed, m.Partial = true, true
	}
}

// parseFile checks the limits of one file and parses the file. If the file is not a JSON file,
// parseFile also adds the positions of its blocks to m.Blocks. If the file has errors, parseFile
// reports them and returns false.
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
		m.Blocks[name] = blockRanges(body, nil)
	}
	return f.Body, !diags.HasErrors()
}

// blockRanges appends the positions of the blocks in body to the list `out`, outer blocks before
// inner blocks, and returns the longer list. With these positions, a message can name the blocks
// that contain an error. Messages do not name input and locals blocks, so blockRanges leaves these
// two kinds out.
func blockRanges(body *hclsyntax.Body, out []report.BlockRange) []report.BlockRange {
	for _, b := range body.Blocks {
		label := b.Type
		if len(b.Labels) > 0 {
			label += fmt.Sprintf(" %q", b.Labels[0])
		}
		rng := b.Range()
		if b.Type != "input" && b.Type != "locals" {
			out = append(out, report.BlockRange{Start: b.TypeRange.Start.Byte, End: max(rng.End.Byte, b.CloseBraceRange.End.Byte), Label: label})
		}
		out = blockRanges(b.Body, out)
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
			return // the method `load` has reported the error
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
