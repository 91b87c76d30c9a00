package dsl

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/saga-engine/engine/dsl/internal/syntax"
)

// The values beside a module are bounded in number and in size together.
func TestAutoVarsAreBounded(t *testing.T) {
	full := append([]byte("#"), bytes.Repeat([]byte("x"), syntax.MaxSource-1)...)
	for name, c := range map[string]struct {
		files int
		text  []byte
		want  string // of the one error; "" = none
	}{
		"as many as may be":  {syntax.MaxFiles, []byte("# none\n"), ""},
		"one more":           {syntax.MaxFiles + 1, []byte("# none\n"), "Too many files"},
		"as much as may be":  {syntax.MaxModule / syntax.MaxSource, full, ""},
		"more than together": {syntax.MaxModule/syntax.MaxSource + 1, full, "Values too large"},
	} {
		t.Run(name, func(t *testing.T) {
			fsys := fstest.MapFS{"a.hcl": {Data: []byte("locals {}\n")}}
			for i := range c.files {
				fsys[fmt.Sprintf("%04d.auto.vars.hcl", i)] = &fstest.MapFile{Data: c.text}
			}
			_, diags := Parse(fsys, ParseOptions{})
			if got := diags.Err(); c.want == "" && diags.HasErrors() || c.want != "" && (len(diags) != 1 || !strings.Contains(fmt.Sprint(got), c.want)) {
				t.Errorf("%v, want %q", got, c.want)
			}
		})
	}
}
