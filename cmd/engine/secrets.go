package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// maxSecret is the largest secret that a file may hold.
const maxSecret = 64 << 10

// secret resolves a reference of secret(): "env:NAME", or "file:PATH" relative
// to the working directory, without the line break at its end. Errors name the
// reference and never tell a value.
func (a *app) secret(ref string) (string, error) {
	kind, name, _ := strings.Cut(ref, ":")
	switch {
	case kind == "env" && own[name]:
		return "", fmt.Errorf("secret %s: the engine's own settings are not for workflows", ref)
	case kind == "env" && name != "":
		if v, ok := a.lookup(name); ok {
			return v, nil
		}
		return "", fmt.Errorf("secret %s: the environment variable is not set", ref)
	case kind == "file" && name != "":
		return a.secretFile(ref, name)
	}
	return "", fmt.Errorf("secret %s: a reference is env:NAME or file:PATH", ref)
}

// own are settings of the engine itself.
var own = map[string]bool{"ENGINE_ENCRYPTION_KEY": true, "ENGINE_DSN": true}

func (a *app) secretFile(ref, name string) (string, error) {
	f, err := os.Open(a.path(name))
	if err != nil {
		return "", fmt.Errorf("secret %s: %w", ref, err)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("secret %s: %w", ref, err)
	}
	if len(data) > maxSecret {
		return "", fmt.Errorf("secret %s: the file is larger than %d bytes", ref, maxSecret)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r"), nil
}
