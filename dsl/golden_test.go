package dsl

import (
	"bytes"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/saga-engine/engine/dsl/diag"
)

var update = flag.Bool("update", false, "rewrite the golden parts of testdata")

// archiveFS holds the files of an archive whose names do not begin with
// "want" as a file system.
func archiveFS(a *txtar.Archive) fs.FS {
	out := fstest.MapFS{}
	for _, f := range a.Files {
		if !strings.HasPrefix(f.Name, "want") {
			out[f.Name] = &fstest.MapFile{Data: f.Data}
		}
	}
	return out
}

func testEnv(name string) (string, bool) {
	v, ok := map[string]string{"REGION": "eu", "PORT": "8080"}[name]
	return v, ok
}

// usedAgents picks the binaries the module asks for.
func usedAgents(m *Module) map[string]AgentBinary {
	out := map[string]AgentBinary{}
	all := testAgents()
	for _, a := range m.Agents() {
		if bin, ok := all[a.Name]; ok {
			out[a.Name] = bin
		} else if bin, ok := all[a.Plugin]; ok {
			out[a.Name] = bin
		}
	}
	return out
}

func parseAndLink(fsys fs.FS) (*Definition, diag.Diagnostics) {
	m, diags := Parse(fsys, ParseOptions{Env: testEnv, EngineVersion: "0.3.0"})
	def, more := Link(m, usedAgents(m))
	return def, append(diags, more...)
}

// TestGolden compares the diagnostics of every archive under testdata with
// its "want" part. Valid ones must link, invalid ones must not; a valid one
// must come back from its stored form with the same digest.
func TestGolden(t *testing.T) {
	for _, kind := range []string{"valid", "invalid"} {
		paths, err := filepath.Glob(filepath.Join("testdata", kind, "*.txtar"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("no archives of kind %s: %v", kind, err)
		}
		for _, path := range paths {
			t.Run(kind+"/"+strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
				checkGolden(t, path, kind == "valid")
			})
		}
	}
}

func checkGolden(t *testing.T, path string, valid bool) {
	a, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	def, diags := parseAndLink(archiveFS(a))
	diags = diags.Sorted()
	if valid != (def != nil) || valid == diags.HasErrors() {
		t.Errorf("linked=%t errors=%t, want valid=%t", def != nil, diags.HasErrors(), valid)
	}
	var got bytes.Buffer
	if err := diag.Render(&got, diags, diag.RenderOptions{}); err != nil {
		t.Fatal(err)
	}
	compareGolden(t, path, a, "want", got.Bytes())
	if def == nil {
		return
	}
	back, err := Decode(def.Encode())
	if err != nil {
		t.Fatalf("Decode(Encode): %v", err)
	}
	if back.Digest() != def.Digest() || !bytes.Equal(back.Encode(), def.Encode()) {
		t.Errorf("digest %s became %s in the stored form", def.Digest(), back.Digest())
	}
}

func compareGolden(t *testing.T, path string, a *txtar.Archive, name string, got []byte) {
	t.Helper()
	for i := range a.Files {
		if a.Files[i].Name != name {
			continue
		}
		if bytes.Equal(a.Files[i].Data, got) {
			return
		}
		if !*update {
			t.Errorf("%s differs.\n--- got\n%s--- want\n%s", name, got, a.Files[i].Data)
			return
		}
		a.Files[i].Data = got
		writeArchive(t, path, a)
		return
	}
	if !*update {
		t.Errorf("no part %s; got\n%s", name, got)
		return
	}
	a.Files = append(a.Files, txtar.File{Name: name, Data: got})
	writeArchive(t, path, a)
}

func writeArchive(t *testing.T, path string, a *txtar.Archive) {
	t.Helper()
	if err := os.WriteFile(path, txtar.Format(a), 0o644); err != nil {
		t.Fatal(err)
	}
}

// archiveText returns the first file of an archive.
func archiveText(t testing.TB, path string) string {
	t.Helper()
	a, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(a.Files[0].Data)
}
