package engine_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// watching are the imports of a Supervisor and of its passes over the runs of
// others: nothing with which a process could be watched or started.
var watching = []string{module + "/engine/internal/wait", "context", "errors", "fmt", "log/slog", "slices", "sync", "time", module + "/engine/machine", module + "/engine/machine/status", module + "/engine/store", module + "/engine/store/naming"}

// asks are the parts of a store that a Supervisor's passes use by themselves.
var asks = []string{"Pass", "Runs"}

// overreach lists what a file does that is not a Supervisor's business.
func overreach(t *testing.T, name string) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, imp := range f.Imports {
		if path, err := strconv.Unquote(imp.Path.Value); err != nil || !slices.Contains(watching, path) {
			found = append(found, "imports "+imp.Path.Value)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.SelectorExpr); ok && x.Sel.Name == "Store" && !slices.Contains(asks, n.Sel.Name) {
				found = append(found, "asks the store for "+n.Sel.Name)
			}
		case *ast.Ident:
			if slices.Contains([]string{"Invoker", "Invoke", "Capacity", "Reserve", "calls"}, n.Name) {
				found = append(found, "names "+n.Name)
			}
		}
		return true
	})
	return found
}

// S38, S42: neither the Supervisor nor its passes over the runs of others can
// call an agent, or watch or start a process: they have nothing to do it with.
func TestSupervisorHasNobodyToCall(t *testing.T) {
	for _, name := range []string{"internal/cluster/supervisor.go", "internal/cluster/scanner.go"} {
		if found := overreach(t, name); len(found) > 0 {
			t.Errorf("%s %s", name, strings.Join(found, ", "))
		}
	}
	if found := overreach(t, "internal/call/caller.go"); len(found) == 0 {
		t.Error("nothing is found where agents are called: the test looks for the wrong things")
	}
}
