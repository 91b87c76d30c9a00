//go:build unix

package agents

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/saga-engine/engine/sdk/plugin"
	"github.com/saga-engine/engine/sdk/schema"
)

// A binary that runs but cannot be read is not used: without its checksum it
// would pass for one that nobody wants checked.
func TestUnreadableBinary(t *testing.T) {
	f := Found{Name: "x", Path: filepath.Join(t.TempDir(), "engine-agent-x")}
	printed, err := json.Marshal(plugin.Description{
		Schema:           schema.Schema{Name: "x", Version: "1.0.0", Actions: map[string]schema.Action{"do": {}}},
		ProtocolVersions: []int{1},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.Path, []byte("#!/bin/sh\necho '"+string(printed)+"'\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	c := NewCatalog(CatalogOptions{})
	if b, err := c.describe(t.Context(), f, &description{}); err != nil || len(b.Checksum) != 64 {
		t.Fatalf("while it can be read: %+v, %v", b, err)
	}
	denied := errors.New("permission denied")
	d := &description{}
	d.hashOnce.Do(func() { d.hashErr = denied }) // a superuser may read any file
	b, err := c.describe(t.Context(), f, d)
	var start *plugin.StartError
	if !errors.As(err, &start) || start.Reason != plugin.ReasonNotExecutable || !errors.Is(err, denied) {
		t.Errorf("taken as %+v, %v", b, err)
	}
}

// The file that is described is the one whose checksum was compared: a file that
// took its place meanwhile is not run.
func TestDescribeRunsTheCheckedFile(t *testing.T) {
	dir := t.TempDir()
	f, ran := Found{Name: "x", Path: filepath.Join(dir, "engine-agent-x")}, filepath.Join(dir, "ran")
	if err := os.WriteFile(f.Path, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	c := NewCatalog(CatalogOptions{})
	d := c.entry(f.Path)
	if _, err := d.hash(f.Path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.Path, []byte("#!/bin/sh\necho > '"+ran+"'\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	b, err := c.describe(t.Context(), f, d)
	var start *plugin.StartError
	if !errors.As(err, &start) || start.Reason != plugin.ReasonChecksum {
		t.Errorf("described as %+v, %v; want that the file has changed", b, err)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("the other file was run")
	}
}
