package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/saga-engine/engine/dsl"
)

// maxSecret is the largest secret that a file may hold.
const maxSecret = 64 << 10

// secret resolves a reference of secret(): "env:NAME", or "file:PATH" relative
// to the working directory, without the line break at its end. Errors say what to
// do, never a value; the reference is the caller's to name.
func (a *app) secret(ref string) (string, error) {
	kind, name, _ := strings.Cut(ref, ":")
	switch {
	case kind == "env" && dsl.ReservedEnv(name):
		return "", errors.New(dsl.ReservedEnvRule)
	case kind == "env" && name != "":
		if v, ok := a.lookup(name); ok {
			return v, nil
		}
		return "", fmt.Errorf("the environment variable is not set; set %s where the engine runs", name)
	case kind == "file" && name != "":
		return a.secretFile(name)
	}
	return "", errors.New("a reference is env:NAME or file:PATH")
}

func (a *app) secretFile(name string) (string, error) {
	f, err := os.Open(a.path(name))
	if err != nil {
		return "", err // it names the file
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
