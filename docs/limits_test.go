package docs_test

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Each default on the page of limits is that of the constant that it names.
func TestLimitsAreThoseOfTheCode(t *testing.T) {
	page, err := os.ReadFile("limits.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\|.*\\| `([a-z/-]+)\\.([A-Za-z]+)` \\|$")
	rows := row.FindAllStringSubmatch(string(page), -1)
	if len(rows) < 25 {
		t.Fatalf("%d rows name a constant", len(rows))
	}
	constants := map[string]map[string]constant.Value{}
	named := map[string]bool{}
	for _, m := range rows {
		dir, name := m[1], m[2]
		if constants[dir] == nil {
			constants[dir] = constantsOf(t, filepath.Join("..", filepath.FromSlash(dir)))
		}
		v, ok := constants[dir][name]
		if !ok {
			t.Errorf("%s has no constant %s", dir, name)
			continue
		}
		named[name] = true
		n, exact := constant.Int64Val(constant.ToInt(v))
		if !exact {
			t.Errorf("%s.%s is %s, no whole number", dir, name, v)
			continue
		}
		found := false
		for _, cell := range strings.Split(m[0], " | ") {
			for _, text := range written(n) {
				found = found || strings.Trim(cell, "| ") == text
			}
		}
		if !found {
			t.Errorf("%s.%s is one of %q; the page says otherwise:\n%s", dir, name, written(n), m[0])
		}
	}
	for name := range constants["engine/machine"] {
		if strings.HasPrefix(name, "Default") && name != "DefaultCompensation" && !named[name] {
			t.Errorf("the page does not list machine.%s", name)
		}
	}
}

// written returns the ways in which the page may write a number.
func written(n int64) []string {
	digits, grouped := strconv.FormatInt(n, 10), ""
	for len(digits) > 3 {
		grouped, digits = ","+digits[len(digits)-3:]+grouped, digits[:len(digits)-3]
	}
	ways := []string{digits + grouped, time.Duration(n).String()}
	for _, u := range []struct {
		name string
		size int64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}} {
		if n%u.size == 0 {
			ways = append(ways, fmt.Sprintf("%d %s", n/u.size, u.name))
		}
	}
	return ways
}

// constantsOf evaluates the constants of a package that are made of numbers and
// durations.
func constantsOf(t *testing.T, dir string) map[string]constant.Value {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]constant.Value{}
	units := strings.NewReplacer("time.Second", "1000000000", "time.Millisecond", "1000000", "time.Minute", "60000000000", "time.Hour", "3600000000000")
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		fset := token.NewFileSet()
		tree, err := parser.ParseFile(fset, file, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range tree.Decls {
			g, ok := decl.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, spec := range g.Specs {
				s := spec.(*ast.ValueSpec)
				for k, name := range s.Names {
					if k >= len(s.Values) {
						continue
					}
					from, to := fset.Position(s.Values[k].Pos()).Offset, fset.Position(s.Values[k].End()).Offset
					v, err := types.Eval(token.NewFileSet(), nil, token.NoPos, units.Replace(string(text[from:to])))
					if err == nil && v.Value != nil && v.Value.Kind() != constant.String {
						found[name.Name] = v.Value
					}
				}
			}
		}
	}
	return found
}
