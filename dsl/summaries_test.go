package dsl

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// withoutGolden has the summaries that no golden file shows, as "file: why": the file has a test with
// this summary. A hyphen instead of the file means that no test can make the finding.
var withoutGolden = map[string]string{
	"Cannot evaluate":                "-: only a panic of a library makes it",
	"Cannot read the module":         "language_file_test.go: the directory cannot be read",
	"Cannot show the value":          "language_line_test.go: a line of the console",
	"Cannot store the definition":    "-: no module is known that makes it",
	"Engine version not checked":     "language_file_test.go: an engine without a version",
	"Expression too expensive":       "hostile_test.go: huge",
	"Expression too long":            "hostile_test.go: huge",
	"File too large":                 "hostile_test.go: huge",
	"Heredoc too long":               "internal/syntax/prescan_test.go: huge",
	"Invalid agent schema":           "language_agent_test.go: an agent whose schema is broken",
	"Invalid condition":              "language_rare_test.go: a value of the command line",
	"Invalid variables":              "language_rare_test.go: a run whose variables are broken",
	"Invalid value":                  "language_variable_test.go: a value of the command line",
	"Module too large":               "language_file_test.go: huge",
	"Nesting too deep":               "hostile_test.go: huge",
	"No run here":                    "language_line_test.go: a line of the console",
	"No value for required variable": "bind_test.go: a value of the command line",
	"No value in the run of a group": "language_line_test.go: a line of the console",
	"Not read":                       "language_line_test.go: a line of the console",
	"Too many agents":                "language_rare_test.go: huge",
	"Too many errors":                "hostile_test.go: huge",
	"Too many files":                 "autovars_test.go: huge",
	"Too many steps":                 "internal/decl/graph_test.go: huge",
	"Too many workflows":             "hostile_test.go: huge",
	"Unknown agent":                  "library_notify_test.go: the module has lost an agent",
	"Value too large":                "hostile_test.go: huge",
	"Values too large":               "autovars_test.go: huge",
}

// TestEachFindingIsInAGoldenFile: the summary of each finding that the language reports is in the
// golden part of a file under testdata, or in withoutGolden with the test that shows it. So each
// finding is read with its file, line and snippet before it is committed.
func TestEachFindingIsInAGoldenFile(t *testing.T) {
	shown := goldenSummaries(t)
	written := writtenSummaries(t)
	if len(written) < 150 || len(shown) < 150 {
		t.Fatalf("%d summaries in the code and %d in the golden files: they were not read", len(written), len(shown))
	}
	left := maps.Clone(withoutGolden)
	for _, pattern := range slices.Sorted(maps.Keys(written)) {
		golden := slices.ContainsFunc(shown, regexp.MustCompile("^("+pattern+")$").MatchString)
		text := strings.ReplaceAll(pattern, `\`, "")
		place, excused := withoutGolden[text]
		delete(left, text)
		file, _, _ := strings.Cut(place, ": ")
		switch {
		case golden && excused:
			t.Errorf("%q is in a golden file: remove it from withoutGolden", text)
		case !golden && !excused:
			t.Errorf("%s: no golden file under testdata shows %q", written[pattern], text)
		case excused && file != "-":
			test, err := os.ReadFile(filepath.FromSlash(file))
			if err != nil || !strings.Contains(string(test), text) {
				t.Errorf("%s does not test %q (%v)", file, text, err)
			}
		}
	}
	for text := range left {
		t.Errorf("no finding has the summary %q: remove it from withoutGolden", text)
	}
}

// goldenSummaries returns the summaries in the golden files.
func goldenSummaries(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "*", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, path := range paths {
		a, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range a.Files {
			if f.Name != "want" {
				continue
			}
			for line := range strings.Lines(string(f.Data)) {
				if severity, summary, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && slices.Contains([]string{"Error", "Warning", "Info"}, severity) {
					out = append(out, summary)
				}
			}
		}
	}
	return out
}

// writtenSummaries returns a pattern for the summary of each finding in the code, with its place.
// Package lock is left out: its findings are about files that the engine writes, and its own tests hold
// them.
func writtenSummaries(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "lock") {
			return err
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			e := summaryOf(n)
			if e == nil {
				return true
			}
			if pattern, ok := summaryPattern(e); ok {
				out[pattern] = fset.Position(e.Pos()).String()
			} else if !passesOn(e) {
				t.Errorf("%s: write the summary of the finding here, as a text", fset.Position(e.Pos()))
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// summaryAt says which argument of a function is the summary of a finding, and how many arguments
// the function has at least.
var summaryAt = map[string]struct{ at, least int }{
	"Errorf": {1, 3}, "Warnf": {1, 3}, "Add": {2, 4}, "placed": {2, 4}, "ExprError": {1, 3},
}

// summaryOf returns the summary if n reports a finding, and nil otherwise.
func summaryOf(n ast.Node) ast.Expr {
	switch n := n.(type) {
	case *ast.KeyValueExpr:
		if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Summary" {
			return n.Value
		}
	case *ast.CallExpr:
		name := ""
		switch f := n.Fun.(type) {
		case *ast.Ident:
			name = f.Name
		case *ast.SelectorExpr:
			if x, ok := f.X.(*ast.Ident); ok && x.Name == "fmt" {
				return nil
			}
			name = f.Sel.Name
		}
		if s, ok := summaryAt[name]; ok && len(n.Args) >= s.least {
			return n.Args[s.at]
		}
	}
	return nil
}

// verb is a place of a value in a format.
var verb = regexp.MustCompile(`%[a-z]`)

// summaryPattern returns a pattern for a text, for a sum of texts, and for a call of fmt.Sprintf. What
// is known only later matches anything.
func summaryPattern(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return regexp.QuoteMeta(text), err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		left, ok := summaryPattern(e.X)
		if !ok {
			return "", false
		}
		if right, ok := summaryPattern(e.Y); ok {
			return left + right, true
		}
		return left + ".*", true
	case *ast.CallExpr:
		if f, ok := e.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Sprintf" {
			if format, ok := e.Args[0].(*ast.BasicLit); ok {
				text, err := strconv.Unquote(format.Value)
				return verb.ReplaceAllString(regexp.QuoteMeta(text), ".*"), err == nil
			}
		}
	}
	return "", false
}

// passesOn reports whether e only passes on the summary of another finding.
func passesOn(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "summary"
	case *ast.SelectorExpr:
		return e.Sel.Name == "Summary"
	}
	return false
}
