package engines

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/regular"
	"github.com/saga-engine/engine/dsl/secret"
)

// maxSecret is the largest size, in bytes, of a file that holds a secret.
const maxSecret = 64 << 10

// resolve returns the secret that a reference in secret() names. "env:NAME" names an
// environment variable. "file:PATH" names a file, relative to the working directory; a line
// break at the end of the file is removed. Errors say what to do, and never contain a secret.
func resolve(a *cli.App, ref string) (string, error) {
	kind, name, _ := strings.Cut(ref, ":")
	switch {
	case kind == "env" && secret.ReservedEnv(name):
		return "", fmt.Errorf("the variable is reserved. %s", secret.ReservedEnvRule)
	case kind == "env" && name != "":
		if v, ok := a.Lookup(name); ok {
			return v, nil
		}
		return "", fmt.Errorf("the environment variable is not set; set %s where the engine runs", name)
	case kind == "file" && name != "":
		return secretFile(a, name)
	}
	return "", errors.New("a reference is env:NAME or file:PATH")
}

// secrets returns the function with which engines and agents read secrets.
func secrets(a *cli.App) func(ref string) (string, error) {
	return func(ref string) (string, error) { return resolve(a, ref) }
}

func secretFile(a *cli.App, name string) (string, error) {
	f, err := regular.Open(a.Path(name))
	if err != nil {
		return "", err // the error names the file
	}
	if err := mayRead(a, f); err != nil {
		return "", errors.Join(err, f.Close())
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("read the file: %w", err)
	}
	if len(data) > maxSecret {
		return "", fmt.Errorf("the file is larger than %d bytes", maxSecret)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r"), nil
}

// mayRead returns an error if f is a file with which a workflow could read the state. Such files
// are the embedded state, its key file, and all of /proc, which shows the environment of
// processes. Links to these files are refused, too.
func mayRead(a *cli.App, f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	for _, own := range a.Private {
		if other, err := os.Stat(own); err == nil && os.SameFile(info, other) {
			return errors.New("the engine's state and its key are not for workflows; use another file")
		}
	}
	real, err := filepath.EvalSymlinks(f.Name())
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		return err
	}
	if strings.HasPrefix(real, "/proc/") {
		return errors.New("what /proc shows of processes is not for workflows; use another file")
	}
	return nil
}
