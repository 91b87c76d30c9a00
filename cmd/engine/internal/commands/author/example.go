package author

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/saga-engine/engine/cmd/engine/example"
	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/dsl/diag"
)

func exampleNames() []string {
	entries, err := fs.ReadDir(example.Files, ".")
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// writeExample writes the files of an example into dir and returns their names. It does not
// overwrite existing files.
func writeExample(a *cli.App, name, dir string) ([]string, error) {
	entries, err := fs.ReadDir(example.Files, name)
	if err != nil || strings.ContainsAny(name, `/\.`) {
		return nil, cli.Failed("Unknown example", "There is no example %q.%s Examples: %s.",
			name, diag.DidYouMean(name, exampleNames()), strings.Join(exampleNames(), ", "))
	}
	if err := os.MkdirAll(a.Path(dir), 0o755); err != nil {
		return nil, fmt.Errorf("write the example: %w", err)
	}
	var written []string
	for _, e := range entries {
		data, err := fs.ReadFile(example.Files, path.Join(name, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("write the example: %w", err)
		}
		to := filepath.Join(dir, e.Name())
		f, err := os.OpenFile(a.Path(to), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, fs.ErrExist) {
			return nil, cli.Failed("File exists", "%s is there already; choose an empty directory.", to)
		}
		if err != nil {
			return nil, fmt.Errorf("write the example: %w", err)
		}
		_, err = f.Write(data)
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, fmt.Errorf("write the example: %w", err)
		}
		written = append(written, filepath.ToSlash(to))
	}
	return written, nil
}
