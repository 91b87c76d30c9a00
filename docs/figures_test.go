package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What one package, one type and one function may hold. A new reader finds the way in a
// house of small rooms.
const (
	maxFiles       = 30 // of a package
	maxExported    = 60 // names of a package that others can use
	maxMethods     = 40 // of a type
	maxMethodFiles = 4  // over which the methods of a type are spread
	maxLines       = 80 // of a function
	maxBranches    = 25 // of a function, as cyclomatic complexity
)

// exempt lists the figures that are above their limits, as they are today. The test fails
// where a figure has grown, and where it has fallen and this list still has the old one. The
// list has to become empty.
var exempt = map[string]int{}

// A room is what the test counts in a package.
type room struct {
	files    int
	exported int
	methods  map[string]int             // by type
	spread   map[string]map[string]bool // by type: files with its methods
}

// The figures of each package, type and function are within the limits, or in exempt.
func TestFigures(t *testing.T) {
	rooms, found := map[string]*room{}, map[string]int{}
	note := func(what string, n, limit int) {
		if n > limit {
			found[what] = n
		}
	}
	eachFile(t, func(file string, fset *token.FileSet, f *ast.File) {
		dir := filepath.ToSlash(filepath.Dir(strings.TrimPrefix(file, "../")))
		r := rooms[dir]
		if r == nil {
			r = &room{methods: map[string]int{}, spread: map[string]map[string]bool{}}
			rooms[dir] = r
		}
		r.files++
		r.exported += exportedNames(f)
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			name := dir + "." + fn.Name.Name
			if of := receiver(fn); of != "" {
				name = dir + "." + of + "." + fn.Name.Name
				r.methods[of]++
				if r.spread[of] == nil {
					r.spread[of] = map[string]bool{}
				}
				r.spread[of][file] = true
			}
			note(name+" lines", fset.Position(fn.End()).Line-fset.Position(fn.Pos()).Line+1, maxLines)
			note(name+" branches", branches(fn), maxBranches)
		}
	})
	for dir, r := range rooms {
		note(dir+" files", r.files, maxFiles)
		if !strings.HasPrefix(dir, "cmd/") && !strings.Contains(dir, "internal/") {
			note(dir+" exported", r.exported, maxExported)
		}
		for of, n := range r.methods {
			note(dir+"."+of+" methods", n, maxMethods)
			note(dir+"."+of+" method files", len(r.spread[of]), maxMethodFiles)
		}
	}
	if len(rooms) < 20 {
		t.Fatalf("%d packages were found: the test looks at the wrong tree", len(rooms))
	}
	for what, n := range found {
		if known := exempt[what]; n > known {
			t.Errorf("%s: %d, and exempt says %d: take it apart", what, n, known)
		}
	}
	for what, known := range exempt {
		if n := found[what]; n < known {
			t.Errorf("%s: %d, and exempt still says %d: lower it there", what, n, known)
		}
	}
	if t.Failed() {
		var lines []string
		for what, n := range found {
			lines = append(lines, fmt.Sprintf("\t%q: %d,", what, n))
		}
		slices.Sort(lines)
		t.Logf("the figures above the limits:\n%s", strings.Join(lines, "\n"))
	}
}

// What others can use is documented, no structure holds a context without saying why, and
// the core reads no clock.
func TestDeclarations(t *testing.T) {
	eachFile(t, func(file string, fset *token.FileSet, f *ast.File) {
		core := strings.HasPrefix(file, "../engine/machine/") || strings.HasPrefix(file, "../engine/internal/model/")
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Name.IsExported() && n.Doc == nil && (n.Recv == nil || ast.IsExported(receiver(n))) {
					t.Errorf("%s: %s is not documented", fset.Position(n.Pos()), n.Name.Name)
				}
			case *ast.GenDecl:
				for _, name := range undocumented(n) {
					t.Errorf("%s: %s is not documented", fset.Position(n.Pos()), name)
				}
			case *ast.StructType:
				for _, field := range n.Fields.List {
					if isSelector(field.Type, "context", "Context") && field.Comment == nil && field.Doc == nil {
						t.Errorf("%s: a structure holds a context and does not say why", fset.Position(field.Pos()))
					}
				}
			case *ast.SelectorExpr:
				if core && (isSelector(n, "time", "Now") || isSelector(n, "time", "Since") || isSelector(n, "time", "Until")) {
					t.Errorf("%s: the core reads the clock", fset.Position(n.Pos()))
				}
			}
			return true
		})
	})
}

// eachFile parses every file of code that is neither a test nor generated.
func eachFile(t *testing.T, do func(file string, fset *token.FileSet, f *ast.File)) {
	t.Helper()
	err := filepath.WalkDir("..", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "examples" || d.Name() != ".." && strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") || strings.HasSuffix(file, ".pb.go"):
			return nil
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, file, nil, parser.ParseComments)
		if err == nil {
			do(filepath.ToSlash(file), fset, f)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// receiver returns the type of which a function is a method; "" = of none.
func receiver(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return ""
	}
	of := fn.Recv.List[0].Type
	for {
		switch x := of.(type) {
		case *ast.StarExpr:
			of = x.X
		case *ast.IndexExpr:
			of = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// branches is one more than the number of places where a function can go two ways.
func branches(fn *ast.FuncDecl) int {
	n := 1
	ast.Inspect(fn, func(node ast.Node) bool {
		switch x := node.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			if x.List != nil {
				n++
			}
		case *ast.CommClause:
			if x.Comm != nil {
				n++
			}
		case *ast.BinaryExpr:
			if x.Op == token.LAND || x.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}

// exportedNames counts types, functions, constants and variables that others can use, not
// methods and fields.
func exportedNames(f *ast.File) (n int) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil && d.Name.IsExported() {
				n++
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				for _, name := range specNames(s) {
					if ast.IsExported(name) {
						n++
					}
				}
			}
		}
	}
	return n
}

func specNames(s ast.Spec) (names []string) {
	switch s := s.(type) {
	case *ast.TypeSpec:
		names = append(names, s.Name.Name)
	case *ast.ValueSpec:
		for _, name := range s.Names {
			names = append(names, name.Name)
		}
	}
	return names
}

// undocumented lists the exported names of a declaration of which nothing is said. What
// is said of a group counts for all of it.
func undocumented(d *ast.GenDecl) (names []string) {
	if d.Doc != nil || d.Tok == token.IMPORT {
		return nil
	}
	for _, s := range d.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			if s.Doc != nil || s.Comment != nil {
				continue
			}
		case *ast.ValueSpec:
			if s.Doc != nil || s.Comment != nil {
				continue
			}
		}
		for _, name := range specNames(s) {
			if ast.IsExported(name) {
				names = append(names, name)
			}
		}
	}
	return names
}

func isSelector(e ast.Expr, pkg, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == pkg
}
