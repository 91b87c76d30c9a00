// Package docs_test holds the documentation to its word.
package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// requirements and faults are how many rows docs/requirements.md must have.
const (
	requirements = 109
	faults       = 30
)

// due are the faults that have to be tested by now.
var due = []int{1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 25, 26, 27, 28, 30}

var (
	row       = regexp.MustCompile(`^\| S(\d+) \|`)
	faultRow  = regexp.MustCompile(`^\| T(\d+) \|`)
	reference = regexp.MustCompile("`([^`#]+)(?:#([^`]+))?`")
)

// A row of docs/requirements.md says where a requirement is built and which
// test proves it. Every test that is named exists and names the requirement; a
// row is "proven" only if it names one.
func TestRequirementsNameTestsThatNameThem(t *testing.T) {
	text, err := os.ReadFile("requirements.md")
	if err != nil {
		t.Fatal(err)
	}
	next := 1
	for line := range strings.Lines(string(text)) {
		m := row.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if m[1] != fmt.Sprint(next) {
			t.Fatalf("row S%s stands where S%d should", m[1], next)
		}
		next++
		t.Run("S"+m[1], func(t *testing.T) { checkRow(t, m[1], line) })
	}
	if next != requirements+1 {
		t.Errorf("requirements.md has %d rows, want %d", next-1, requirements)
	}
}

// S50: every failure mode is tested. The table of faults is whole, every test it
// names exists and names its fault, and what is due is proven.
func TestFaultsNameTestsThatNameThem(t *testing.T) {
	text, err := os.ReadFile("requirements.md")
	if err != nil {
		t.Fatal(err)
	}
	next := 1
	for line := range strings.Lines(string(text)) {
		m := faultRow.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if m[1] != fmt.Sprint(next) {
			t.Fatalf("row T%s stands where T%d should", m[1], next)
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 4 {
			t.Fatalf("T%d has %d cells, want 4", next, len(cells))
		}
		refs := checkTests(t, cells[2], "T"+m[1])
		if status := strings.TrimSpace(cells[3]); status != "proven" && status != "open" || status == "proven" && refs == 0 {
			t.Errorf("T%d is %q with %d tests", next, status, refs)
		} else if slices.Contains(due, next) && status != "proven" {
			t.Errorf("T%d is due and not proven", next)
		}
		next++
	}
	if next != faults+1 {
		t.Errorf("requirements.md has %d faults, want %d", next-1, faults)
	}
}

// checkTests checks the references in a cell and returns how many there are.
func checkTests(t *testing.T, cell, id string) int {
	t.Helper()
	refs := reference.FindAllStringSubmatch(cell, -1)
	for _, m := range refs {
		if err := names(filepath.Join("..", filepath.FromSlash(m[1])), m[2], id); err != nil {
			t.Errorf("%s: %s: %v", id, m[0], err)
		}
	}
	return len(refs)
}

func checkRow(t *testing.T, number, line string) {
	cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
	if len(cells) != 5 {
		t.Fatalf("the row has %d cells, want 5", len(cells))
	}
	built, tests, status := cells[2], cells[3], strings.TrimSpace(cells[4])
	for _, m := range reference.FindAllStringSubmatch(built, -1) {
		if _, err := os.Stat(filepath.Join("..", m[1])); err != nil {
			t.Errorf("built in %s, which does not exist", m[1])
		}
	}
	switch refs := checkTests(t, tests, "S"+number); {
	case status == "proven" && refs == 0:
		t.Error("proven, but no test is named")
	case status != "proven" && status != "open":
		t.Errorf("status is %q, want proven or open", status)
	}
}

// names checks that a test exists and names a requirement or fault: a function of
// a Go test file, a case of the stores' suite, or a script.
func names(path, name, id string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	mention := regexp.MustCompile(`(?:\b|[a-z])` + id + `(?:[^0-9]|$)`)
	switch {
	case strings.HasSuffix(path, "_test.go"):
		return function(path, string(text), name, mention)
	case strings.HasSuffix(path, ".go"):
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, name+`"`) && strings.Contains(line, "why:") {
				return must(mention.MatchString(line), "its reason does not name it")
			}
		}
		return fmt.Errorf("there is no such case")
	case strings.HasSuffix(path, ".txtar") && name == "":
		return must(mention.Match(text), "it does not name it")
	}
	return fmt.Errorf("it is no test")
}

// function checks a test function. With name "TestX/part" the function part of
// the same file names the requirement, and TestX is what runs it.
func function(path, text, name string, mention *regexp.Regexp) error {
	name, part, _ := strings.Cut(name, "/")
	if !strings.HasPrefix(name, "Test") {
		return fmt.Errorf("%q is no name of a test", name)
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, text, parser.ParseComments)
	if err != nil {
		return err
	}
	bodies := map[string]string{}
	for _, d := range file.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Recv != nil {
			continue
		}
		from := fn.Pos()
		if fn.Doc != nil {
			from = fn.Doc.Pos()
		}
		bodies[fn.Name.Name] = text[fset.Position(from).Offset:fset.Position(fn.End()).Offset]
	}
	body, ok := bodies[name]
	if ok && part != "" {
		if !strings.Contains(body, part+"(") {
			return fmt.Errorf("%s does not call %s", name, part)
		}
		body, ok = bodies[part]
	}
	if !ok {
		return fmt.Errorf("there is no such test")
	}
	return must(mention.MatchString(body), "it does not name it")
}

func must(ok bool, complaint string) error {
	if !ok {
		return fmt.Errorf("%s", complaint)
	}
	return nil
}

// The check itself notices what it is there for.
func TestReferencesAreChecked(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	goTest := write("x_test.go", "package x\n\n// S26: keys.\nfunc TestKeys(t *testing.T) {}\n\nfunc TestS30Crash(t *testing.T) {}\n\nfunc TestParts(t *testing.T) { part(t) }\n\n// S31: a part.\nfunc part(t *testing.T) {}\n\n// S32: nobody's.\nfunc other(t *testing.T) {}\n")
	suite := write("suite.go", "package x\n\nvar c = []rule{{name: \"submit/both\", why: \"both or neither (S54)\"}}\n")
	script := write("a.txtar", "# S19: goes on\nexec engine\n")
	for name, c := range map[string]struct {
		path, name, number string
		ok                 bool
	}{
		"in the comment":         {goTest, "TestKeys", "26", true},
		"in the name":            {goTest, "TestS30Crash", "30", true},
		"another number":         {goTest, "TestKeys", "2", false},
		"a longer number":        {goTest, "TestS30Crash", "3", false},
		"no such test":           {goTest, "TestNothing", "26", false},
		"no test at all":         {goTest, "keys", "26", false},
		"a part":                 {goTest, "TestParts/part", "31", true},
		"a part, other number":   {goTest, "TestParts/part", "32", false},
		"a part that is not run": {goTest, "TestParts/other", "32", false},
		"case of a suite":        {suite, "submit/both", "54", true},
		"other case":             {suite, "submit/neither", "54", false},
		"case, other number":     {suite, "submit/both", "5", false},
		"script":                 {script, "", "19", true},
		"script, other number":   {script, "", "1", false},
		"a file that is missing": {filepath.Join(dir, "y_test.go"), "TestKeys", "26", false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := names(c.path, c.name, "S"+c.number); (err == nil) != c.ok {
				t.Errorf("names = %v, want ok = %v", err, c.ok)
			}
		})
	}
}
