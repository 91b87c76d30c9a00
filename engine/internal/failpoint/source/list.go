// Package source finds in the source code the points at which a fault can be injected.
package source

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// List returns the names of all points in the code at which a test can inject a fault, sorted. The
// parameter `root` is the directory of the Go module.
func List(root string) ([]string, error) {
	events, err := eventTypes(filepath.Join(root, "engine", "machine", "event.go"))
	if err != nil {
		return nil, err
	}
	var names []string
	err = eachFile(filepath.Join(root, "engine"), func(file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			fn, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, ok := fn.X.(*ast.Ident)
			lit, isLit := call.Args[0].(*ast.BasicLit)
			if !ok || pkg.Name != "failpoint" || !isLit {
				return true
			}
			name, err := strconv.Unquote(lit.Value)
			if err != nil {
				return true
			}
			switch fn.Sel.Name {
			case "Hit":
				names = append(names, name)
			case "HitEvent":
				for _, e := range events {
					names = append(names, name+"/"+e)
				}
			case "HitPurpose":
				for _, p := range []string{"do", "undo", "lookup"} {
					names = append(names, name+"/"+p)
				}
			}
			return true
		})
	})
	slices.Sort(names)
	return slices.Compact(names), err
}

// DurableMethods returns the names of the methods that change a store. It reads them from the
// interfaces in engine/store/store.go and roles.go. The parameter `root` is the module's directory.
func DurableMethods(root string) ([]string, error) {
	reads := map[string]bool{}
	for _, name := range []string{
		"Definition", "Members", "Load", "Rows", "Messages", "Suspects", "LateReplies", "Logs", "Undelivered",
		"Runs", "StepRows", "Alerts", "Places", "Retained", "Close",
	} {
		reads[name] = true
	}
	var methods []string
	for _, file := range []string{"store.go", "roles.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "engine", "store", file), nil, 0)
		if err != nil {
			return nil, fmt.Errorf("failpoint: %w", err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			ts, ok := n.(*ast.TypeSpec)
			if !ok || ts.Name.Name == "Waker" || ts.Name.Name == "Examiner" {
				return true
			}
			if iface, ok := ts.Type.(*ast.InterfaceType); ok {
				for _, m := range iface.Methods.List {
					for _, name := range m.Names {
						if !reads[name.Name] {
							methods = append(methods, name.Name)
						}
					}
				}
			}
			return true
		})
	}
	slices.Sort(methods)
	return slices.Compact(methods), nil
}

// eventTypes returns the names of the types in a source file that have a method with the name
// "event".
func eventTypes(path string) ([]string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		return nil, fmt.Errorf("failpoint: %w", err)
	}
	var types []string
	for _, decl := range file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Recv == nil || fn.Name.Name != "event" {
			continue
		}
		if id, ok := fn.Recv.List[0].Type.(*ast.Ident); ok {
			types = append(types, id.Name)
		}
	}
	return types, nil
}

// eachFile parses every Go file in dir and its subdirectories, and calls fn for each. It leaves
// out tests and directories named testdata.
func eachFile(dir string, fn func(*ast.File)) error {
	return filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "testdata":
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return fmt.Errorf("failpoint: %w", err)
		}
		fn(file)
		return nil
	})
}
