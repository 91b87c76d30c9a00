package main

import (
	"os"
	"testing"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
)

// The command finds its credentials, and what it starts does not inherit them.
func TestTakeEnvironment(t *testing.T) {
	t.Setenv("ENGINE_DSN", "sqlite:x")
	t.Setenv(cli.KeyVariable, "k3y")
	t.Setenv("ENGINE_LOG", "warn")
	env := takeEnvironment()
	for name, want := range map[string]string{"ENGINE_DSN": "sqlite:x", cli.KeyVariable: "k3y", "ENGINE_LOG": "warn"} {
		if got, ok := env.lookup(name); !ok || got != want {
			t.Errorf("lookup(%s) = %q, %t", name, got, ok)
		}
	}
	for _, name := range credentials {
		if _, ok := os.LookupEnv(name); ok {
			t.Errorf("%s is still in the environment of the process", name)
		}
	}
	if _, ok := env.lookup("ENGINE_NONE"); ok {
		t.Error("found a variable that is not set")
	}
}
