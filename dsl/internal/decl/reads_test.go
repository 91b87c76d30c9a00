package decl

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/saga-engine/engine/dsl/internal/functions"
)

// A module reads a bounded number of files, and files of a bounded size; what it has read already, it
// may name again.
func TestReadsAreBounded(t *testing.T) {
	fsys := fstest.MapFS{"small": {Data: []byte("x")}}
	large := []byte(strings.Repeat("x", 1<<20))
	for i := range 20 {
		fsys[fmt.Sprintf("large%d", i)] = &fstest.MapFile{Data: large}
	}
	reads := functions.Reads{Files: map[string]string{}}
	source := liveSource{fsys: fsys, reads: &reads, use: &readUse{}}
	n := 0
	for ; n < 20; n++ {
		if err := source.readFile(fmt.Sprintf("large%d", n), true); err != nil {
			if !strings.Contains(err.Error(), "at most 16 MiB") {
				t.Fatal(err)
			}
			break
		}
	}
	if n != 16 || len(reads.Files) != n || source.readFile("large3", true) != nil {
		t.Errorf("%d files of 1 MiB were read, want 16, and each of them again", n)
	}
	if source.readFile("small", true) == nil {
		t.Error("a file was read after the limit was passed")
	}
	source.use = &readUse{}
	for n = range 20_000 {
		if err := source.readExists(fmt.Sprintf("absent%d", n)); err != nil {
			if !strings.Contains(err.Error(), "at most 10000 files") {
				t.Fatal(err)
			}
			break
		}
	}
	if n != maxReads || source.readFile("small", true) == nil {
		t.Errorf("%d names were looked up, want %d, and no more file", n, maxReads)
	}
}
