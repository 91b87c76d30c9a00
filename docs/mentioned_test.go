package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	// mention matches the words with which a comment names an identifier of its package.
	mention = regexp.MustCompile("\\b(?:method|function|field|parameter|variable|constant|type|result)\\s+`(\\w+)`")
	// qualified matches PACKAGE.Name and type.name, but no parts of a path or of a longer chain.
	qualified = regexp.MustCompile("(?:^|[^\\w./\"`-])([a-z]\\w*)\\.([A-Za-z]\\w+)")
)

// A directory holds the identifiers in the code of one directory.
type directory struct {
	used     map[string]bool // all identifiers
	types    map[string]bool // names of its types
	foreign  map[string]bool // names of imported packages of other modules
	comments []mentioning
}

// A mentioning is the text of one comment.
type mentioning struct{ position, text string }

// A comment names only identifiers that exist: after "the method", "the parameter" and such words, the
// name is in the code of the same directory, and PACKAGE.Name is declared in a package of this name.
// A rename that changed a word in the wrong comments, or forgot a comment, fails here.
func TestCommentsNameWhatExists(t *testing.T) {
	dirs, packages := identifiers(t)
	found := 0
	for _, d := range dirs {
		for _, c := range d.comments {
			for _, m := range mention.FindAllStringSubmatch(c.text, -1) {
				if found++; !d.used[m[1]] {
					t.Errorf("%s: %q is no identifier in the code of this directory", c.position, m[1])
				}
			}
			for _, m := range qualified.FindAllStringSubmatch(c.text, -1) {
				exported := packages[m[1]]
				switch {
				case m[2] == "go" || d.foreign[m[1]]: // the name of a file, or a name of another module
				case exported != nil && unicode.IsUpper(rune(m[2][0])):
					if found++; !exported[m[2]] && !d.used[m[2]] {
						t.Errorf("%s: no package %s has %s", c.position, m[1], m[2])
					}
				case d.types[m[1]]:
					if found++; !d.used[m[2]] {
						t.Errorf("%s: the type %s has no %s", c.position, m[1], m[2])
					}
				}
			}
		}
	}
	if found < 1000 {
		t.Errorf("%d names in comments: the test reads the wrong files", found)
	}
}

// identifiers reads all Go files. It returns the directories, and the identifiers by the names of the
// packages: packages with the same name share a set.
func identifiers(t *testing.T) (dirs map[string]*directory, packages map[string]map[string]bool) {
	t.Helper()
	dirs, packages = map[string]*directory{}, map[string]map[string]bool{}
	err := filepath.WalkDir("..", func(file string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && (e.Name() == "testdata" || e.Name() != ".." && strings.HasPrefix(e.Name(), ".")):
			return fs.SkipDir
		case e.IsDir() || filepath.Ext(file) != ".go":
			return nil
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, file, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		d, at := dirs[filepath.Dir(file)], f.Name.Name
		if d == nil {
			d = &directory{used: map[string]bool{}, types: map[string]bool{}, foreign: map[string]bool{}}
			dirs[filepath.Dir(file)] = d
		}
		if packages[at] == nil {
			packages[at] = map[string]bool{}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.Ident:
				d.used[x.Name], packages[at][x.Name] = true, true
			case *ast.ImportSpec:
				if name := strings.Trim(x.Path.Value, `"`); !strings.HasPrefix(name, "github.com/saga-engine/engine") {
					d.foreign[path.Base(name)] = true
				}
			case *ast.TypeSpec:
				d.types[x.Name.Name] = true
			}
			return true
		})
		for _, g := range f.Comments {
			d.comments = append(d.comments, mentioning{fset.Position(g.Pos()).String(), g.Text()})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return dirs, packages
}
