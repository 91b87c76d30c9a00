package machine

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The core reads no clock, rolls no dice, and knows no process: what it may
// import is a list.
func TestImports(t *testing.T) {
	allowed := map[string]bool{
		"cmp": true, "container/heap": true, "crypto/sha256": true, "encoding/binary": true, "encoding/hex": true, "errors": true,
		"fmt": true, "iter": true, "maps": true, "math": true, "math/bits": true, "slices": true, "strconv": true, "strings": true, "time": true,
		"github.com/saga-engine/engine/dsl": true, "github.com/saga-engine/engine/engine/internal/model": true,
		"github.com/saga-engine/engine/engine/moving": true, "github.com/saga-engine/engine/engine/machine/line": true,
		"github.com/saga-engine/engine/engine/machine/status": true, "github.com/saga-engine/engine/sdk": true,
	}
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 10 {
		t.Fatalf("found %d files: %v", len(files), err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, imp := range f.Imports {
			path, err := strconv.Unquote(imp.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if !allowed[path] {
				t.Errorf("%s imports %s", file, path)
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s starts a goroutine", file)
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && (n.Sel.Name == "Now" || n.Sel.Name == "Since" || n.Sel.Name == "Sleep" || n.Sel.Name == "After") {
					t.Errorf("%s reads the clock: time.%s", file, n.Sel.Name)
				}
			}
			return true
		})
	}
}
