package planted

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
)

// root is the module's directory, as tests of this package see it.
const root = "../../.."

// A declaration is the piece of a file that declares a symbol.
type declaration struct {
	file     string // absolute
	from, to int    // bytes
}

// locate finds what an entry names:
//
//	engine.(*Node).Run               a method
//	engine/store/postgres.memberTick       a function, constant, variable or type
//	engine/store/sqlite/migrations/00005_steps.sql   a whole file that is no Go
func locate(in string) (declaration, error) {
	if path, err := filepath.Abs(filepath.Join(root, filepath.FromSlash(in))); err == nil {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return declaration{path, 0, int(info.Size())}, nil
		}
	}
	slash := strings.LastIndexByte(in, '/') + 1
	dot := strings.IndexByte(in[slash:], '.')
	if dot < 0 {
		return declaration{}, fmt.Errorf("%q names no declaration: write package.Name or package.(*Type).Method", in)
	}
	pkg, symbol := in[:slash+dot], in[slash+dot+1:]
	dir, err := filepath.Abs(filepath.Join(root, filepath.FromSlash(pkg)))
	if err != nil {
		return declaration{}, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return declaration{}, err
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		if match, err := build.Default.MatchFile(dir, e.Name()); err != nil || !match {
			continue
		}
		files := token.NewFileSet()
		path := filepath.Join(dir, e.Name())
		f, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return declaration{}, err
		}
		if n := find(f, symbol); n != nil {
			return declaration{path, files.Position(n.Pos()).Offset, files.Position(n.End()).Offset}, nil
		}
	}
	return declaration{}, fmt.Errorf("package %s declares no %s on this system: the code has moved or changed its name; mend the entry", pkg, symbol)
}

// find returns the declaration of a symbol in a file, or nil.
func find(f *ast.File, symbol string) ast.Node {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if name(d) == symbol {
				return d
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					if s.Name.Name == symbol {
						return s
					}
				case *ast.ValueSpec:
					for _, n := range s.Names {
						if n.Name == symbol {
							return s
						}
					}
				}
			}
		}
	}
	return nil
}

// name returns what an entry calls a function: F, T.M or (*T).M.
func name(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return d.Name.Name
	}
	t, pattern := d.Recv.List[0].Type, "%s.%s"
	if p, ok := t.(*ast.StarExpr); ok {
		t, pattern = p.X, "(*%s).%s"
	}
	if g, ok := t.(*ast.IndexExpr); ok {
		t = g.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return fmt.Sprintf(pattern, id.Name, d.Name.Name)
	}
	return d.Name.Name
}

// replace changes the one occurrence of old between from and to. White space is
// compared as one space.
func replace(source string, d declaration, old, new string) (changed string, grown int, err error) {
	part, at := squeeze(source[d.from:d.to])
	want, _ := squeeze(old)
	want = strings.TrimSpace(want)
	if want == "" {
		return "", 0, fmt.Errorf("old is empty")
	}
	switch n := strings.Count(part, want); n {
	case 0:
		return "", 0, fmt.Errorf("%s does not contain %q: the code has changed; mend the entry", filepath.Base(d.file), old)
	case 1:
	default:
		return "", 0, fmt.Errorf("%s contains %q %d times in this declaration: write more of it", filepath.Base(d.file), old, n)
	}
	k := strings.Index(part, want)
	from, to := d.from+at[k], d.from+at[k+len(want)-1]+1
	return source[:from] + new + source[to:], len(new) - (to - from), nil
}

// squeeze makes one space of each run of white space. at holds, for each byte
// that is left, where it was.
func squeeze(s string) (out string, at []int) {
	var b strings.Builder
	space := false
	for i := range len(s) {
		c := s[i]
		if unicode.IsSpace(rune(c)) {
			if !space {
				b.WriteByte(' ')
				at = append(at, i)
			}
			space = true
			continue
		}
		space = false
		b.WriteByte(c)
		at = append(at, i)
	}
	return b.String(), at
}

// plant returns the changed files of a fault, by path.
func (f fault) plant() (map[string]string, error) {
	changed := map[string]string{}
	for _, e := range append([]edit{{f.in, f.old, f.new}}, f.also...) {
		d, err := locate(e.in)
		if err != nil {
			return nil, err
		}
		source, ok := changed[d.file]
		if ok {
			// An earlier edit has moved what follows it: look for the piece in the
			// whole file.
			d.from, d.to = 0, len(source)
		} else {
			b, err := os.ReadFile(d.file)
			if err != nil {
				return nil, err
			}
			source = string(b)
		}
		if source, _, err = replace(source, d, e.old, e.new); err != nil {
			return nil, err
		}
		changed[d.file] = source
	}
	return changed, nil
}

// overlay writes changed files, and the list by which the go command reads them
// instead of the real ones. It returns the list's path.
func overlay(t *testing.T, changed map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	replaced := map[string]string{}
	for path, source := range changed {
		to := filepath.Join(dir, fmt.Sprintf("%d-%s", len(replaced), filepath.Base(path)))
		if err := os.WriteFile(to, []byte(source), 0o644); err != nil {
			t.Fatal(err)
		}
		replaced[path] = to
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(path, list, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
