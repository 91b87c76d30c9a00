package decl

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/report"
	"github.com/saga-engine/engine/dsl/internal/sorted"
	"github.com/saga-engine/engine/dsl/internal/syntax"
)

// maxLibraryDepth limits how deep libraries may be nested. A library of the module has the depth 1.
const maxLibraryDepth = 8

// A libraryDecoder reads library blocks, and the actions that refer to them.
type libraryDecoder struct{ *decoder }

// library reads a library block and the module that the block names. It adds the library to
// d.m.Libraries, unless an earlier library has the same name.
func (d libraryDecoder) library(b *syntax.Block) {
	first, dup := d.m.Libraries[b.Label]
	if dup {
		d.Errorf(b.DefRange, fmt.Sprintf("Duplicate library %q", b.Label), "The first one is at %s.", report.Range(first.where))
	}
	lib := &Library{Name: b.Label, where: b.DefRange}
	if !dup {
		d.m.Libraries[b.Label] = lib
	}
	e := b.Attr("source")
	if e == nil {
		return // the argument `source` is required, so another check has reported that it is missing
	}
	source, ok := d.lit.literalText(e, "source")
	if !ok {
		return
	}
	if source == "" || path.IsAbs(source) || strings.ContainsAny(source, `\:`) {
		d.Errorf(e.Range, "Invalid library source",
			"source is a path relative to this file's directory, written with /: \"../shared\" or \"./shared/trips.hcl\".")
		return
	}
	lib.Module = d.open(b.Label, path.Join(d.m.dir(), source), e)
	if lib.Module != nil {
		d.m.levels = max(d.m.levels, lib.Module.levels+1)
	}
}

// open returns the library at a path. The parameter `name` is this path, relative to the directory
// of the main module. The parameters `label` and `e` are the name and the attribute `source` of the
// library block. The method `open` reads a library once, even if several blocks name the same path.
// It returns nil if the library cannot be read, is part of a cycle or is nested too deep. It also
// returns a library whose declarations have errors.
func (d libraryDecoder) open(label, name string, e *eval.Expr) *Module {
	chain := append(slices.Clone(d.m.chain), name)
	if i := slices.Index(d.m.chain, name); i >= 0 {
		d.Errorf(e.Range, "Cycle of libraries", "Libraries use each other: %s.", quotedChain(chain[i:]))
		return nil
	}
	lib, known := d.libs.read[name]
	if depth := len(d.m.chain); depth > maxLibraryDepth || lib != nil && depth+lib.levels > maxLibraryDepth {
		d.Errorf(e.Range, "Libraries nested too deep", "Libraries may be nested %d deep at most; here are more: %s.", maxLibraryDepth, quotedChain(chain))
		return nil
	}
	if known {
		return lib
	}
	d.libs.read[name] = nil
	lib, source, err := d.libs.source.open(name)
	if err == nil && !d.m.Older {
		err = d.libs.add(lib)
	}
	if err != nil {
		d.Errorf(e.Range, fmt.Sprintf("Cannot read library %q", label), "source: %s.", err)
		return nil
	}
	lib.chain, lib.Older, lib.Sources, lib.Blocks = chain, d.m.Older, d.m.Sources, d.m.Blocks
	for file, src := range lib.Files {
		lib.Sources[file] = src
	}
	d.libs.build(lib, source)
	for _, n := range sorted.Keys(lib.Variables) {
		if v := lib.Variables[n]; !v.hasDefault() {
			d.Errorf(v.Where, "Library variable without default",
				"This module is used as a library, and variables of a library always have their defaults. Variable %q needs one; it may use env().", n)
		}
	}
	d.libs.read[name] = lib
	return lib
}

// quotedChain returns the paths of libraries in quotes, with arrows between them.
func quotedChain(paths []string) string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = fmt.Sprintf("%q", p)
	}
	return strings.Join(out, " → ")
}

// action reads the action of a step: library.LIBRARY.agent.NAME.ACTION. It returns
// LIBRARY.NAME as the name of the agent. The names of the module's own agents have no dot, so
// they differ from LIBRARY.NAME. After an error, action returns "" for both names.
func (d libraryDecoder) action(e *eval.Expr, t hcl.Traversal) (agent, action string) {
	var names []string
	for _, part := range t[1:] {
		if attr, ok := part.(hcl.TraverseAttr); ok && syntax.ValidName(attr.Name) {
			names = append(names, attr.Name)
		}
	}
	switch {
	case len(t) == 5 && len(names) == 4 && names[1] == "agent":
		return names[0] + "." + names[2], names[3]
	case len(names) > 1 && names[1] == "workflow":
		d.Errorf(e.Range, "Invalid action", "action calls an agent. To start a workflow of a library write workflow = library.LIBRARY.workflow.NAME instead.")
	default:
		d.Errorf(e.Range, "Invalid action", "An action of a library is written library.LIBRARY.agent.NAME.ACTION, without quotes.")
	}
	e.Bad = true
	return "", ""
}

// fromLibrary reports whether the name of an agent has the form LIBRARY.NAME, which only an agent
// of a library has.
func fromLibrary(agent string) bool { return strings.Contains(agent, ".") }

// agent adds an agent of a library to the agents of the module, under the name LIBRARY.NAME. The
// parameter `at` is the position of an action that uses the agent, for messages.
func (d libraryDecoder) agent(name string, at hcl.Range) {
	label, short, _ := strings.Cut(name, ".")
	lib, ok := d.m.Libraries[label]
	if !ok {
		d.Errorf(at, "Reference to undeclared library", "There is no library named %q.%s", label, diag.DidYouMean(label, sorted.Keys(d.m.Libraries)))
		return
	}
	if lib.Module == nil || lib.Module.Partial {
		return // the errors of the library have been reported already
	}
	a, ok := lib.Module.Agents[short]
	if !ok || a.Implied {
		var declared []string
		for _, n := range sorted.Keys(lib.Module.Agents) {
			if own := lib.Module.Agents[n]; !own.Implied && own.Library == nil {
				declared = append(declared, n)
			}
		}
		d.Errorf(at, "Reference to undeclared agent", "Library %q has no block agent %q.%s", label, short, diag.DidYouMean(short, declared))
		return
	}
	own := *a
	if own.Name = name; own.Library == nil {
		own.Library = lib.Module
	}
	d.m.Agents[name] = &own
}
