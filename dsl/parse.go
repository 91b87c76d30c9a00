package dsl

import (
	"io/fs"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/decl"
)

// A Module is the parsed source of a directory or of one file. It is immutable and
// safe for concurrent use.
type Module struct{ m *decl.Module }

// Parse reads a module and reports all errors that it can find without the
// agents. It returns a module even if the module has errors. Link accepts such a
// module, to find more errors, but makes no definition of it.
//
// Parse reads the files of the module in fsys, the files of its libraries in
// opts.Root, and the files that file() and similar functions name. It also reads
// the environment variables that env() names. Link and Bind read nothing from fsys.
func Parse(fsys fs.FS, opts ParseOptions) (*Module, diag.Diagnostics) {
	m, diags := decl.ParseFiles(fsys, opts)
	return &Module{m}, diags
}

// Sources returns the source files of the module and of its libraries, and the
// *.auto.vars.hcl files of the module, by name. If one of the module's own files is
// too large, it is included without its text. The caller must not change the map.
func (m *Module) Sources() map[string][]byte { return m.m.Sources }

// Workflows returns the names of the workflows, ordered by file name and by position in the file.
func (m *Module) Workflows() []string {
	out := make([]string, 0, len(m.m.Workflows))
	for _, w := range m.m.Workflows {
		if !w.Twin {
			out = append(out, w.Name)
		}
	}
	return out
}

// AutoVars returns the values of the module's *.auto.vars.hcl files, in the order of the file
// names. If two files set one variable, the value in the later file counts.
func (m *Module) AutoVars() []Assignment { return append([]Assignment(nil), m.m.Auto...) }

// ParseVars reads a file with values of variables. The file has one attribute for
// each variable, at its top level. If `filename` ends in .json, src is read as JSON.
func ParseVars(filename string, src []byte) ([]Assignment, diag.Diagnostics) {
	return decl.ParseVars(filename, src)
}
