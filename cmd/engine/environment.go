package main

import (
	"os"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
)

// An environment gives the command its environment variables. The field held has those
// variables that open the state. They are no longer in the process's environment.
type environment struct{ held map[string]string }

// credentials are the variables that open the state and that only this command reads. The
// variables of PostgreSQL's client library (PG*) stay in the process, because the library
// looks them up for each connection.
var credentials = []string{"ENGINE_DSN", cli.KeyVariable}

// takeEnvironment moves the credentials out of the process's environment. So a program that is
// started by mistake with the whole environment does not get them.
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
