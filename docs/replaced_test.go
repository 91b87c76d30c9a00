package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// No name of the code, no SQL name of a migration, no key of a JSON object and no key of a log
// line holds a word that the glossary has replaced.
func TestReplacedWords(t *testing.T) {
	replaced := replacedWords(t)
	if len(replaced) < 10 {
		t.Fatalf("the glossary replaces %d words: the test reads the wrong table", len(replaced))
	}
	check := func(name, kind, file string) {
		for _, word := range wordsOf(name) {
			if replaced[singular(word)] {
				t.Errorf("%s: the %s %s holds %q", file, kind, name, word)
			}
		}
	}
	err := filepath.WalkDir("..", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "examples" || d.Name() != ".." && strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go"):
			return nil
		}
		check(strings.TrimSuffix(d.Name(), ".go"), "file name", file)
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			for _, name := range declared(n) {
				check(name, "name", file)
			}
			for _, key := range keysOf(n) {
				check(key, "key", file)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	migrations, err := filepath.Glob("../engine/store/*/migrations/*.sql")
	if err != nil || len(migrations) < 20 {
		t.Fatalf("%d migrations, %v", len(migrations), err)
	}
	for _, file := range migrations {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, name := range sqlName.FindAllString(notSQL.ReplaceAllString(string(text), ""), -1) {
			if !seen[name] {
				seen[name] = true
				check(name, "SQL name", file)
			}
		}
	}
}

var (
	// sqlName matches the names and the keywords of a migration.
	sqlName = regexp.MustCompile(`[A-Za-z_]\w*`)
	// notSQL matches comments and texts of a migration, which may have any word.
	notSQL = regexp.MustCompile(`--[^\n]*|'[^']*'`)
)

// TestReplacedWords sees each kind of name. Otherwise a replaced word could come back in a
// constant, or as a plural.
func TestReplacedWordsAreSeen(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "", `package patrols
const doingPatrol = ""
var letters []int
type seat struct {
	shelf, deaf int
	Row int `+"`json:\"trouble,omitempty\"`"+`
}
type i interface{ Mail() }
func pump() {
	log.Info("text", "term", 1)
	log.Log(ctx, level, "text", "run", 1, "lament", 2)
	slog.String("errand", "")
	_ = map[string]any{"agenda": 1}
}`, 0)
	if err != nil {
		t.Fatal(err)
	}
	replaced, found := replacedWords(t), map[string]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		for _, name := range append(declared(n), keysOf(n)...) {
			for _, word := range wordsOf(name) {
				if replaced[singular(word)] {
					found[word] = true
				}
			}
		}
		return true
	})
	for _, word := range strings.Fields("patrols patrol letters seat shelf deaf trouble mail pump term lament errand agenda") {
		if !found[word] {
			t.Errorf("the test does not see %q", word)
		}
	}
}

// declared lists the names that a node declares, except local variables.
func declared(n ast.Node) (names []string) {
	of := func(idents ...*ast.Ident) {
		for _, name := range idents {
			names = append(names, name.Name)
		}
	}
	switch n := n.(type) {
	case *ast.File:
		of(n.Name)
		for _, d := range n.Decls {
			values, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range values.Specs {
				if v, ok := s.(*ast.ValueSpec); ok {
					of(v.Names...)
				}
			}
		}
	case *ast.FuncDecl:
		of(n.Name)
	case *ast.TypeSpec:
		of(n.Name)
	case *ast.StructType:
		for _, field := range n.Fields.List {
			of(field.Names...)
		}
	case *ast.InterfaceType:
		for _, method := range n.Methods.List {
			of(method.Names...)
		}
	}
	return names
}

// logKeys says at which argument the keys of a log line begin, for the methods of a logger.
var logKeys = map[string]int{"Debug": 1, "Info": 1, "Warn": 1, "Error": 1, "Log": 3, "With": 0}

// keysOf lists the keys that a node gives to JSON objects and to log lines.
func keysOf(n ast.Node) (keys []string) {
	text := func(e ast.Expr) {
		if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if key, err := strconv.Unquote(lit.Value); err == nil && sqlName.FindString(key) == key {
				keys = append(keys, key)
			}
		}
	}
	switch n := n.(type) {
	case *ast.Field:
		if n.Tag != nil {
			tag, _ := strconv.Unquote(n.Tag.Value)
			name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
			keys = append(keys, name)
		}
	case *ast.CompositeLit:
		if of, ok := n.Type.(*ast.MapType); ok {
			if key, ok := of.Key.(*ast.Ident); ok && key.Name == "string" {
				for _, e := range n.Elts {
					if pair, ok := e.(*ast.KeyValueExpr); ok {
						text(pair.Key)
					}
				}
			}
		}
	case *ast.CallExpr:
		sel, ok := n.Fun.(*ast.SelectorExpr)
		if !ok {
			break
		}
		if of, ok := sel.X.(*ast.Ident); ok && of.Name == "slog" && len(n.Args) > 0 {
			text(n.Args[0])
		}
		if from, ok := logKeys[sel.Sel.Name]; ok {
			for k := from; k < len(n.Args); k += 2 {
				text(n.Args[k])
			}
		}
	}
	return keys
}

// singular returns a word without the s of a plural.
func singular(word string) string { return strings.TrimSuffix(word, "s") }

// replacedWords reads the last table of the glossary.
func replacedWords(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile("glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| Replaced | Now |\n|---|---|\n")
	replaced := map[string]bool{}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "| "), " | ")
		for _, word := range strings.Split(cells[0], ", ") {
			if len(cells) == 2 {
				replaced[singular(strings.ToLower(word))] = true
			}
		}
	}
	return replaced
}

// wordsOf splits a name where a capital letter or an underscore begins a word.
func wordsOf(name string) (words []string) {
	from := 0
	for i, r := range name + "_" {
		if (unicode.IsUpper(r) || r == '_') && i > from {
			words = append(words, strings.ToLower(strings.Trim(name[from:i], "_")))
			from = i
		}
	}
	return words
}
