package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// maxUpward is the largest share of arrows that may run upward in a package, in percent.
const maxUpward = 5

// minArrows is the size from which a package is measured. In a smaller one a single arrow
// would be too large a share.
const minArrows = 20

// In each package the files form layers: a file uses declarations of lower files only.
// Arrows that run upward are at most maxUpward percent.
func TestArrows(t *testing.T) {
	packages := map[string]*packageFiles{}
	eachFile(t, func(file string, _ *token.FileSet, f *ast.File) {
		dir := filepath.ToSlash(filepath.Dir(strings.TrimPrefix(file, "../")))
		p := packages[dir]
		if p == nil {
			p = &packageFiles{files: map[string]*ast.File{}}
			packages[dir] = p
		}
		p.files[filepath.Base(file)] = f
	})
	for _, dir := range sortedKeys(packages) {
		g := packages[dir].arrows()
		order := g.layered()
		up := g.upward(order)
		if g.count() < minArrows {
			continue
		}
		share := (100*len(up) + g.count() - 1) / g.count()
		t.Logf("%-28s %3d files %4d arrows %3d upward %3d %%", dir, len(packages[dir].files), g.count(), len(up), share)
		switch {
		case share > maxUpward:
			t.Errorf("%s: %d %% of its arrows run upward, %d %% are allowed:\n\t%s", dir, share, maxUpward, strings.Join(up, "\n\t"))
		case testing.Verbose() && len(up) > 0:
			t.Logf("\t%s", strings.Join(up, "\n\t"))
		}
	}
}

// packageFiles are the files of one package, by name.
type packageFiles struct {
	files map[string]*ast.File
}

// arrowGraph has the names that a file uses of another file: [user][used].
type arrowGraph map[string]map[string][]string

// arrows finds for each file the declarations of other files that it uses: functions,
// types, variables, constants, and methods whose name only one file declares. It reads
// names only, so that it needs no types.
func (p *packageFiles) arrows() arrowGraph {
	declared, methods := map[string]string{}, map[string]string{}
	for _, file := range sortedKeys(p.files) {
		for _, d := range p.files[file].Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					declared[d.Name.Name] = file
				} else if other, ok := methods[d.Name.Name]; ok && other != file {
					methods[d.Name.Name] = "" // in several files: a name says nothing
				} else {
					methods[d.Name.Name] = file
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					for _, name := range specNames(s) {
						declared[name] = file
					}
				}
			}
		}
	}
	// Fields and methods of interfaces share names with methods. A selector of such a name
	// says nothing either.
	for _, f := range p.files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.StructType:
				for _, field := range n.Fields.List {
					for _, name := range field.Names {
						delete(methods, name.Name)
					}
				}
			case *ast.InterfaceType:
				for _, m := range n.Methods.List {
					for _, name := range m.Names {
						delete(methods, name.Name)
					}
				}
			}
			return true
		})
	}
	g := arrowGraph{}
	for file, f := range p.files {
		use := func(name, of string) {
			if of == "" || of == file {
				return
			}
			if g[file] == nil {
				g[file] = map[string][]string{}
			}
			if !slices.Contains(g[file][of], name) {
				g[file][of] = append(g[file][of], name)
			}
		}
		imported := map[string]bool{}
		for _, i := range f.Imports {
			name := packageName(strings.Trim(i.Path.Value, `"`))
			if i.Name != nil {
				name = i.Name.Name
			}
			imported[name] = true
		}
		for _, id := range f.Unresolved {
			if !imported[id.Name] {
				use(id.Name, declared[id.Name])
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && (x.Obj == nil && imported[x.Name] || foreign(x, imported)) {
				return true // a name of another package
			}
			use(sel.Sel.Name, methods[sel.Sel.Name])
			return true
		})
	}
	return g
}

// packageName guesses the name of a package from its import path: "version" for
// github.com/hashicorp/go-version, "gobreaker" for github.com/sony/gobreaker/v2.
func packageName(path string) string {
	name := filepath.Base(path)
	if len(name) > 1 && name[0] == 'v' && strings.Trim(name[1:], "0123456789") == "" {
		name = filepath.Base(filepath.Dir(path))
	}
	return strings.TrimPrefix(name, "go-")
}

// foreign reports whether x is a parameter or a receiver with a type of another package, such as
// p *os.Process. A call of its method is no arrow inside this package.
func foreign(x *ast.Ident, imported map[string]bool) bool {
	if x.Obj == nil {
		return false
	}
	field, ok := x.Obj.Decl.(*ast.Field)
	if !ok {
		return false
	}
	typ := field.Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	sel, ok := typ.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	pkg, ok := sel.X.(*ast.Ident)
	return ok && imported[pkg.Name]
}

func (g arrowGraph) count() (n int) {
	for _, used := range g {
		n += len(used)
	}
	return n
}

// layered orders the files so that few arrows run upward: the lowest file first. It takes
// the file with the least that is still missing below it, and then moves single files as
// long as that helps. The order is a heuristic; the true minimum may be lower.
func (g arrowGraph) layered() []string {
	names := map[string]bool{}
	for a, used := range g {
		names[a] = true
		for b := range used {
			names[b] = true
		}
	}
	left := sortedKeys(names)
	var order []string
	for len(left) > 0 {
		best, bestScore := 0, 1<<30
		for i, a := range left {
			missing, wanted := 0, 0
			for _, b := range left {
				if len(g[a][b]) > 0 {
					missing++
				}
				if len(g[b][a]) > 0 {
					wanted++
				}
			}
			score := missing*1000 - wanted
			if missing > 0 {
				score = 1_000_000 + (missing-wanted)*1000
			}
			if score < bestScore {
				best, bestScore = i, score
			}
		}
		order = append(order, left[best])
		left = slices.Delete(left, best, best+1)
	}
	for better := true; better; {
		better = false
		for i := range order {
			a := order[i]
			cost, bestCost, bestAt := 0, 0, i
			for j := i + 1; j < len(order); j++ { // move up past j
				if len(g[order[j]][a]) > 0 {
					cost++
				}
				if len(g[a][order[j]]) > 0 {
					cost--
				}
				if cost < bestCost {
					bestCost, bestAt = cost, j
				}
			}
			cost = 0
			for j := i - 1; j >= 0; j-- { // move down past j
				if len(g[a][order[j]]) > 0 {
					cost++
				}
				if len(g[order[j]][a]) > 0 {
					cost--
				}
				if cost < bestCost {
					bestCost, bestAt = cost, j
				}
			}
			if bestAt != i {
				order = slices.Insert(slices.Delete(order, i, i+1), bestAt, a)
				better = true
				break
			}
		}
	}
	return order
}

// upward lists the arrows from a file to one that is above it in the order.
func (g arrowGraph) upward(order []string) (up []string) {
	for i, a := range order {
		for _, b := range order[i+1:] {
			if names := g[a][b]; len(names) > 0 {
				slices.Sort(names)
				up = append(up, fmt.Sprintf("%s -> %s (%s)", a, b, strings.Join(names, ", ")))
			}
		}
	}
	return up
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// The count is right on a package that is small enough to see.
func TestArrowsOfAnExample(t *testing.T) {
	parse := func(text string) *ast.File {
		f, err := parser.ParseFile(token.NewFileSet(), "x.go", text, 0)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	p := packageFiles{files: map[string]*ast.File{
		"low.go":  parse("package x\ntype low struct{}\nfunc (low) lift() { high() }"),
		"mid.go":  parse("package x\nfunc mid(l low) { l.lift() }"),
		"high.go": parse("package x\nimport \"mid\"\nfunc high(m *mid.Lift) { mid.lift(); m.lift(); low := 1; _ = low }"),
	}}
	g := p.arrows()
	if n := g.count(); n != 2 {
		t.Errorf("%d arrows, want low.go -> high.go and mid.go -> low.go: %v", n, g)
	}
	if up := g.upward(g.layered()); len(up) != 0 {
		t.Errorf("upward: %v, and high.go, low.go, mid.go is an order without", up)
	}
	if up := g.upward([]string{"low.go", "mid.go", "high.go"}); len(up) != 1 {
		t.Errorf("upward: %v, want low.go -> high.go alone", up)
	}
}
