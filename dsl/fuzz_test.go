package dsl

import (
	"bytes"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/saga-engine/engine/dsl/diag"
)

// corpus adds every source file of the golden archives.
func corpus(f *testing.F, add func(name string, data []byte)) {
	f.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "*", "*.txtar"))
	if err != nil || len(paths) == 0 {
		f.Fatalf("no corpus: %v", err)
	}
	for _, p := range paths {
		a, err := txtar.ParseFile(p)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range a.Files {
			if strings.HasSuffix(file.Name, ".hcl") || strings.HasSuffix(file.Name, ".json") {
				add(file.Name, file.Data)
			}
		}
	}
}

// FuzzParse: any text gives a definition or an error with a place, never a
// crash; a definition survives its stored form and evaluates without panics.
func FuzzParse(f *testing.F) {
	corpus(f, func(name string, data []byte) { f.Add(data, strings.HasSuffix(name, ".json")) })
	f.Fuzz(func(t *testing.T, data []byte, asJSON bool) {
		name := "fuzz.hcl"
		if asJSON {
			name = "fuzz.hcl.json"
		}
		def, diags := parseAndLink(fstest.MapFS{name: &fstest.MapFile{Data: data}})
		if (def == nil) != diags.HasErrors() {
			t.Fatalf("definition %v with diagnostics %v", def, diags)
		}
		var out bytes.Buffer
		if err := diag.Render(&out, diags, diag.RenderOptions{Color: true, Width: 80}); err != nil {
			t.Fatal(err)
		}
		if def == nil {
			return
		}
		back, err := Decode(def.Encode())
		if err != nil || back.Digest() != def.Digest() {
			t.Fatalf("stored form: %v", err)
		}
		for _, n := range def.Names() {
			exercise(def.Workflow(n))
		}
	})
}

// exercise calls every function of a workflow with an empty scope: results do
// not matter, panics do.
func exercise(wf *Workflow) {
	wf.Bind(nil)
	s := &Scope{
		Step: func(int) StepResult { return StepResult{Final: true} }, Each: &EachItem{Key: "k"},
		Self: &Self{}, Failure: &Failure{}, Memo: &Memo{},
	}
	for _, st := range wf.Steps {
		_, _ = st.Input(s)
		_, _ = st.Settings(s)
		for _, when := range []func(*Scope) (bool, error){st.When, st.WhenEach} {
			if when != nil {
				_, _ = when(s)
			}
		}
		if st.ForEach != nil {
			_, _ = st.ForEach(s)
		}
		if st.Undo != nil {
			_, _ = st.Undo.Input(s)
		}
		_, _ = st.Do.Output([]byte("{}"))
	}
	for _, o := range wf.Outputs {
		_, _ = o.Value(s)
	}
}

// FuzzFormat: formatting twice is formatting once, and what was valid stays
// valid.
func FuzzFormat(f *testing.F) {
	corpus(f, func(name string, data []byte) {
		if strings.HasSuffix(name, ".hcl") {
			f.Add(data)
		}
	})
	f.Fuzz(func(t *testing.T, data []byte) {
		once, diags := Format(data, "f.hcl")
		if diags.HasErrors() {
			if !bytes.Equal(once, data) {
				t.Fatal("source with errors was changed")
			}
			return
		}
		twice, diags := Format(once, "f.hcl")
		if diags.HasErrors() {
			t.Fatalf("formatted source is not valid: %v\n%s", diags, once)
		}
		if !bytes.Equal(once, twice) {
			t.Fatalf("not idempotent:\n%s\n---\n%s", once, twice)
		}
	})
}

// FuzzDecode: damaged stored definitions are refused, not trusted.
func FuzzDecode(f *testing.F) {
	corpus(f, func(name string, data []byte) {
		if def, _ := parseAndLink(fstest.MapFS{name: &fstest.MapFile{Data: data}}); def != nil {
			f.Add(def.Encode())
		}
	})
	f.Fuzz(func(t *testing.T, data []byte) {
		def, err := Decode(data)
		if (def == nil) == (err == nil) {
			t.Fatalf("definition %v, error %v", def, err)
		}
	})
}

// FuzzEvaluate: an expression that pays for its work gives the value that the
// library gives without limits, or fails where it fails.
func FuzzEvaluate(f *testing.F) {
	c := composer{rand.New(rand.NewPCG(1, 2))}
	for range 200 {
		f.Add(c.expr(2, nil))
	}
	for _, a := range attacks() {
		f.Add(a.expr)
	}
	vars := seenVars()
	f.Fuzz(func(t *testing.T, src string) { compareBoth(t, src, vars) })
}
