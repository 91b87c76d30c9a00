package faultpoints

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// rolePackages are the directory of package store and the directories below it. An interface of
// these packages that the code asks a store for is a role.
const rolePackages = "github.com/saga-engine/engine/engine/store"

// A wrapped store has all roles of the stores that it can wrap, and all roles that the code asks a
// store for with a type assertion. The list in roles.go holds the wrapped store to these roles when
// a build has the tag failpoints; this test holds the list.
func TestWrappedStoreHasAllRoles(t *testing.T) {
	has := declared(t, "roles.go")
	for _, file := range []string{"../postgres/postgres.go", "../sqlite/sqlite.go", "../memory/store.go"} {
		roles := declared(t, file)
		if len(roles) < 10 {
			t.Errorf("%s declares the roles %v, want all roles of the store", file, roles)
		}
		for _, role := range roles {
			if !slices.Contains(has, role) {
				t.Errorf("the store of %s has the role %s, the wrapped store does not", file, role)
			}
		}
	}
	asked := map[string][]string{}
	for _, dir := range []string{"../..", "../../../cmd"} {
		collect(t, dir, asked)
	}
	if len(asked["naming.Heirs"]) == 0 || len(asked["store.Retainer"]) == 0 {
		t.Errorf("the code asks for the roles %v, want naming.Heirs and store.Retainer among them", slices.Sorted(maps.Keys(asked)))
	}
	for role, files := range asked {
		if !slices.Contains(has, role) && role != "store.Full" && role != "store.Inbox" { // all stores have Inbox
			t.Errorf("%v: asks for the role %s, which the wrapped store does not have", files, role)
		}
	}
}

// declared returns the interfaces in the declarations `var _ interface { … } = …` of a file, sorted.
func declared(t *testing.T, file string) (roles []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range parsed.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.VAR {
			continue
		}
		for _, s := range g.Specs {
			typ, ok := s.(*ast.ValueSpec).Type.(*ast.InterfaceType)
			if !ok {
				continue
			}
			for _, m := range typ.Methods.List {
				roles = append(roles, qualified(m.Type))
			}
		}
	}
	slices.Sort(roles)
	return roles
}

// collect adds the roles that the code below a directory asks for with a type assertion. It leaves
// out tests, the test suites of stores, and this package.
func collect(t *testing.T, dir string, asked map[string][]string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(file string, e fs.DirEntry, err error) error {
		slashed := filepath.ToSlash(file)
		switch {
		case err != nil:
			return err
		case e.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go"),
			strings.Contains(slashed, "/storetest/"), strings.Contains(slashed, "/faultpoints/"):
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			return err
		}
		ours := map[string]bool{}
		for _, i := range parsed.Imports {
			if p := strings.Trim(i.Path.Value, `"`); i.Name == nil && (p == rolePackages || strings.HasPrefix(p, rolePackages+"/")) {
				ours[path.Base(p)] = true
			}
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if a, ok := n.(*ast.TypeAssertExpr); ok && a.Type != nil {
				if role := qualified(a.Type); ours[strings.Split(role, ".")[0]] {
					asked[role] = append(asked[role], slashed)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// qualified returns the name of a type with its package, such as store.Store; "" = the type has no
// such name.
func qualified(e ast.Expr) string {
	if s, ok := e.(*ast.SelectorExpr); ok {
		if x, ok := s.X.(*ast.Ident); ok {
			return x.Name + "." + s.Sel.Name
		}
	}
	return ""
}
