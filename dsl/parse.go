package dsl

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"sort"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	hcljson "github.com/hashicorp/hcl/v2/json"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/functions"
	"github.com/saga-engine/engine/dsl/internal/metered"
	"github.com/saga-engine/engine/dsl/internal/noun"
	"github.com/saga-engine/engine/dsl/internal/report"
	"github.com/saga-engine/engine/dsl/internal/syntax"
)

// ParseOptions choose what Parse reads.
type ParseOptions struct {
	// File is the one file that makes up the module; "" = every *.hcl and
	// *.hcl.json file of the root directory.
	File string
	// Env looks an environment variable up for env(); nil = none is set.
	Env func(name string) (value string, ok bool)
	// Dir is what messages call the directory; "" = "this directory".
	Dir string
	// EngineVersion is checked against required_version; "" = not checked.
	EngineVersion string
}

// A Module is the parsed source of a directory. It is immutable and safe for
// concurrent use.
type Module struct{ m *module }

// A module is the declarations of a module.
type module struct {
	files   map[string][]byte // that make up the module
	sources map[string][]byte // all that were read, for messages
	reads   functions.Reads
	places  report.Places

	agents    map[string]*agentDecl
	variables map[string]*variableDecl // of file level
	locals    map[string]*eval.Local   // of file level
	ownLocals []*eval.Local            // those of locals, and their twins
	workflows []*workflowDecl          // and their twins
	auto      []noun.Assignment
	funcs     map[string]function.Function
	file      string
	failed    bool
	partial   bool // a file could not be parsed: names are missing
	older     bool // stored before some rules were made, which do not hold for it

	// Declarations whose name is taken, which is an error: checked for others,
	// and never used.
	twinAgents    []*agentDecl
	twinVariables []*variableDecl // of file level
}

// Parse reads a module and reports everything that can be found wrong without
// knowing the agents. It never returns nil: a module with errors can still be
// linked, to see what else is wrong, though not to a definition.
//
// fsys is read at its root only, and by file(). Nothing is read afterwards.
func Parse(fsys fs.FS, opts ParseOptions) (*Module, diag.Diagnostics) {
	m, diags := parseFiles(fsys, opts)
	return &Module{m}, diags
}

// parseFiles reads the files of a module.
func parseFiles(fsys fs.FS, opts ParseOptions) (*module, diag.Diagnostics) {
	m := newModule(opts.File)
	r := &report.Reporter{Sources: m.sources, Places: m.places}
	if !r.Bounded(func() {
		m.load(r, fsys, opts.Dir)
		source := liveSource{fsys: fsys, env: opts.Env, reads: &m.reads}
		m.build(r, source, opts.EngineVersion)
		m.loadValues(r, fsys)
	}) {
		m.partial = true // what was not looked at is missing
	}
	diags := r.Finish()
	m.failed = diags.HasErrors()
	return m, diags
}

// parseStored reads the files of a stored definition, which holds what file() and env()
// answer. older leaves out the rules that were made after it was stored.
func parseStored(file string, files map[string][]byte, answers functions.Reads, older bool) (*module, diag.Diagnostics) {
	m := newModule(file)
	m.older, m.reads = older, answers
	for name, src := range files {
		m.files[name], m.sources[name] = src, src
	}
	r := &report.Reporter{Sources: m.sources, Places: m.places}
	if older {
		r.Effort = metered.NewAllowance(math.MaxInt64) // it was checked when it was stored
	}
	m.build(r, storedSource{&m.reads}, "")
	diags := r.Finish()
	m.failed = m.failed || diags.HasErrors()
	return m, diags
}

func newModule(file string) *module {
	return &module{
		file:    file,
		files:   map[string][]byte{},
		sources: map[string][]byte{},
		reads:   functions.Reads{Files: map[string]string{}, Env: map[string]*string{}},
		places:  report.Places{},
	}
}

// Sources returns every file that was read, by name; one that is too large is
// there without its text. The caller must not
// change it.
func (m *Module) Sources() map[string][]byte { return m.m.sources }

// Workflows returns the names of the workflows, in order of file and position.
func (m *Module) Workflows() []string {
	out := make([]string, 0, len(m.m.workflows))
	for _, w := range m.m.workflows {
		if !w.twin {
			out = append(out, w.name)
		}
	}
	return out
}

// AutoVars returns the values of the module's *.auto.vars.hcl files; later
// files come later.
func (m *Module) AutoVars() []noun.Assignment { return append([]noun.Assignment(nil), m.m.auto...) }

// isModuleFile reports whether a file of the directory belongs to the module.
func isModuleFile(name string) bool {
	base := strings.TrimSuffix(name, ".json")
	return strings.HasSuffix(base, ".hcl") && !strings.HasPrefix(name, ".") &&
		!strings.HasSuffix(base, ".test.hcl") && !strings.HasSuffix(base, ".vars.hcl")
}

func isAutoVars(name string) bool {
	return strings.HasSuffix(strings.TrimSuffix(name, ".json"), ".auto.vars.hcl") && !strings.HasPrefix(name, ".")
}

// load reads the files of the module.
func (m *module) load(r *report.Reporter, fsys fs.FS, dir string) {
	var names []string
	if m.file != "" {
		names = []string{path.Clean(m.file)}
		m.file = names[0]
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
		m.files[name], m.sources[name] = src, src
	}
}

// readFile reads at most one byte more than is allowed: a file of any size
// costs no more than that.
func readFile(r *report.Reporter, fsys fs.FS, name string) ([]byte, bool) {
	src, err := readLimited(fsys, name)
	switch {
	case errors.Is(err, errTooLarge):
		r.Sources[name] = nil // known as a file, though none of it is kept
		r.HCL(hcl.Diagnostics{syntax.TooBig(name)})
	case err != nil:
		r.Errorf(hcl.Range{}, "Cannot read file", "%s.", err)
	}
	return src, err == nil
}

var errTooLarge = errors.New("larger than 1 MiB")

func readLimited(fsys fs.FS, name string) (data []byte, err error) {
	// To open a pipe would wait, and a device may do something when it is opened.
	info, err := fs.Stat(fsys, name)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", name)
	}
	if err != nil {
		return nil, err
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() {
		if cerr := f.Close(); err == nil && cerr != nil {
			data, err = nil, cerr
		}
	}()
	if info, err = f.Stat(); err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	data, err = io.ReadAll(io.LimitReader(f, syntax.MaxSource+1))
	if err != nil {
		return nil, err
	}
	if len(data) > syntax.MaxSource {
		return nil, errTooLarge
	}
	return data, nil
}

// build turns the files into declarations. It is the same for a directory and
// for a stored definition.
func (m *module) build(r *report.Reporter, source readSource, engineVersion string) {
	names := make([]string, 0, len(m.files))
	for n := range m.files {
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
		blocks = append(blocks, syntax.Reader{Reporter: r}.Read(body, syntax.ModuleSpec, "", body.MissingItemRange()).Blocks...)
	}
	d := &decoder{Reporter: r, lit: literalDecoder{r, m}, m: m, source: source, engineVersion: engineVersion}
	m.funcs = functions.Table(&m.reads)
	d.module(blocks)
	if !broken { // with a file missing, half of the names would seem unknown
		graphDecoder{d, referenceDecoder{d, map[*eval.Local]visit{}}}.resolve()
	} else {
		m.failed, m.partial = true, true
	}
}

// parseFile measures and parses one file and notes where its blocks are.
func (m *module) parseFile(r *report.Reporter, name string) (hcl.Body, bool) {
	src := m.files[name]
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
		m.places[name] = blockPlaces(body, nil)
	}
	return f.Body, !diags.HasErrors()
}

// blockPlaces lists the blocks of a body with their extent, outer before
// inner. Blocks named input and locals are left out: they say nothing that
// the source line does not.
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

// loadValues reads the *.auto.vars.hcl files next to the module.
func (m *module) loadValues(r *report.Reporter, fsys fs.FS) {
	dir := "."
	if m.file != "" {
		dir = path.Dir(m.file)
	}
	entries, err := fs.ReadDir(fsys, dir)
	if err != nil {
		if m.file == "" {
			return // load has said so
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
		m.sources[name] = src
		m.auto = append(m.auto, variableReader{r}.parseVars(name, src)...)
	}
}

// ParseVars reads a values file: attributes at its top level, one for each
// variable. A name that ends in .json is read as JSON.
func ParseVars(filename string, src []byte) ([]noun.Assignment, diag.Diagnostics) {
	return parseValues(filename, src)
}
