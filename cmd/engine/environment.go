package main

import (
	"os"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
)

// An environment looks up environment variables for the command. The field `held` has the
// variables that takeEnvironment removed from the process's environment.
type environment struct{ held map[string]string }

// credentials lists the environment variables that hold the DSN and the encryption key of the
// state. Only this command reads these variables. The variables of PostgreSQL's client library
// (PG*) stay in the process's environment: the library looks them up for each connection.
var credentials = []string{"ENGINE_DSN", cli.KeyVariable}

// takeEnvironment moves the credentials from the process's environment into the environment that it
// returns. So a program that is started by mistake with the whole environment of the process does
// not get the credentials.
func takeEnvironment() environment {
	e := environment{held: map[string]string{}}
	for _, name := range credentials {
		if v, ok := os.LookupEnv(name); ok {
			e.held[name] = v
			_ = os.Unsetenv(name) // cannot fail: the names are valid
		}
	}
	return e
}

func (e environment) lookup(name string) (string, bool) {
	if v, ok := e.held[name]; ok {
		return v, true
	}
	return os.LookupEnv(name)
}
