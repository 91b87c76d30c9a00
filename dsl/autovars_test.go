package dsl

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

// The values beside a module are bounded in number and in size together.
func TestAutoVarsAreBounded(t *testing.T) {
	full := append([]byte("#"), bytes.Repeat([]byte("x"), maxSource-1)...)
	for name, c := range map[string]struct {
		files int
		text  []byte
		want  string // of the one error; "" = none
	}{
		"as many as may be":  {maxFiles, []byte("# none\n"), ""},
		"one more":           {maxFiles + 1, []byte("# none\n"), "Too many files"},
		"as much as may be":  {maxModule / maxSource, full, ""},
		"more than together": {maxModule/maxSource + 1, full, "Values too large"},
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
