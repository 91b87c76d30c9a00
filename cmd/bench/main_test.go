package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// envServer names the variable that holds a PostgreSQL server to test on.
const envServer = "ENGINE_TEST_DSN"

// TestMain sees to a server: without one it runs this binary again under one.
func TestMain(m *testing.M) {
	if os.Getenv(envServer) != "" {
		os.Exit(m.Run())
	}
	cmd := exec.Command("go", append([]string{"run", "github.com/saga-engine/engine/engine/internal/pgtest/cmd/pgtest", "run", "--", os.Args[0]}, os.Args[1:]...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		os.Exit(0)
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		os.Exit(exit.ExitCode())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
