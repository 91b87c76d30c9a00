package main

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/saga-engine/engine/dsl/diag"
)

// examples are what `init --example` can write.
//
//go:embed example
var examples embed.FS

// exampleNames lists the examples.
func exampleNames() []string {
	entries, err := fs.ReadDir(examples, "example")
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// writeExample writes the files of an example into dir and returns their
// names. It overwrites nothing.
func (a author) writeExample(name, dir string) ([]string, error) {
	from := path.Join("example", name)
	entries, err := fs.ReadDir(examples, from)
	if err != nil || strings.ContainsAny(name, `/\.`) {
		return nil, failed("Unknown example", "There is no example %q.%s Examples: %s.",
			name, diag.DidYouMean(name, exampleNames()), strings.Join(exampleNames(), ", "))
	}
	if err := os.MkdirAll(a.path(dir), 0o755); err != nil {
		return nil, fmt.Errorf("write the example: %w", err)
	}
	var written []string
	for _, e := range entries {
		data, err := fs.ReadFile(examples, path.Join(from, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("write the example: %w", err)
		}
		name := filepath.Join(dir, e.Name())
		f, err := os.OpenFile(a.path(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, fs.ErrExist) {
			return nil, failed("File exists", "%s is there already; choose an empty directory.", name)
		}
		if err != nil {
			return nil, fmt.Errorf("write the example: %w", err)
		}
		_, err = f.Write(data)
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, fmt.Errorf("write the example: %w", err)
		}
		written = append(written, filepath.ToSlash(name))
	}
	return written, nil
}
