package postgres

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An SQL statement can hardly name the schema of an operator, unlike the schema of a function. So a role
// that may create operators in the schema public could make the engine call its function, in a
// session with the usual search path: behind a pooler. The server prefers an operator of pg_catalog
// if it exists for exactly the types of both operands. So all statements use only such operators.
// The test makes an operator for every other pair of types. Its result has a type that fits
// nowhere, so a statement that finds it is refused.
const traps = `
CREATE TYPE public.trap AS ENUM ('trap');
DO $do$
DECLARE o text; a text; b text; n int := 0;
  types text[] := ARRAY['int2','int4','int8','float8','numeric','text','name','timestamptz','interval','bool','bytea','oid','jsonb','pg_lsn'];
BEGIN
  FOREACH o IN ARRAY ARRAY['=','<>','<','>','<=','>=','+','-','*','/','||','&','<<','>>'] LOOP
    FOREACH a IN ARRAY types LOOP FOREACH b IN ARRAY types LOOP
      IF NOT EXISTS (SELECT FROM pg_catalog.pg_operator WHERE oprname = o AND oprleft = a::regtype AND oprright = b::regtype AND oprnamespace = 'pg_catalog'::regnamespace) THEN
        n := n + 1;
        EXECUTE format('CREATE FUNCTION public.trap%s(%s, %s) RETURNS public.trap LANGUAGE sql AS $f$ SELECT ''trap''::public.trap $f$', n, a, b);
        EXECUTE format('CREATE OPERATOR public.%s (FUNCTION = public.trap%s, LEFTARG = %s, RIGHTARG = %s)', o, n, a, b);
      END IF;
    END LOOP; END LOOP;
  END LOOP;
END $do$`

func TestOperatorsAreOfTheServer(t *testing.T) {
	db := raw(t, migrated(t))
	must(t, db, traps)
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// try prepares a statement with a search path.
	try := func(path, query string) error {
		if _, err := conn.ExecContext(t.Context(), "SET search_path = "+path); err != nil {
			t.Fatal(err)
		}
		stmt, err := conn.PrepareContext(t.Context(), query)
		if err != nil {
			return err
		}
		return stmt.Close()
	}
	if try("pg_catalog, public", "SELECT 1::int8 * interval '1 second' + pg_catalog.now()") == nil {
		t.Fatal("the operators of the schema public catch nothing")
	}
	tried := map[string]bool{}
	for _, dir := range []string{"", "admission", "contexts", "firing", "outbox", "published", "shares"} {
		texts := queries // of this package
		if dir != "" {
			texts = statementsOf(t, dir)
		}
		for name, text := range texts {
			if try("pg_catalog, pg_temp", text) != nil {
				continue // a part of a statement, several statements, or no SQL
			}
			tried[filepath.Join(dir, name)] = true
			if err := try("public, pg_temp", text); err != nil {
				t.Errorf("%s: with operators in the schema public: %v: cast the operands to types for which pg_catalog has the operator", filepath.Join(dir, name), err)
			}
		}
	}
	if len(tried) < 200 {
		t.Errorf("%d statements tried", len(tried))
	}
}

// noImports is an importer that finds no package.
type noImports struct{}

func (noImports) Import(path string) (*types.Package, error) {
	return nil, fmt.Errorf("no package %s", path)
}

// statementsOf returns the constant texts of a package, by name.
func statementsOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	// The imports are not found. That does no harm, because the texts use only constants of their
	// own package.
	config := types.Config{Importer: noImports{}, Error: func(error) {}}
	pkg, _ := config.Check(dir, fset, files, nil)
	out := map[string]string{}
	for _, name := range pkg.Scope().Names() {
		if c, ok := pkg.Scope().Lookup(name).(*types.Const); ok && c.Val().Kind() == constant.String {
			out[name] = constant.StringVal(c.Val())
		}
	}
	return out
}
