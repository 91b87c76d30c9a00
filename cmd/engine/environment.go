package main

import (
	"os"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
)

// An environment is what the command takes from its process. Variables that
// open the state are held here and no longer in the process.
type environment struct{ held map[string]string }

// credentials are the variables that open the state and that only this command
// reads. What PostgreSQL's client library reads (PG*) stays in the process, where
// it is looked up for each connection.
var credentials = []string{"ENGINE_DSN", cli.KeyVariable}

// takeEnvironment moves the credentials out of the process's environment, so that
// no program that is started by mistake with all of it gets them.
func takeEnvironment() environment {
	e := environment{held: map[string]string{}}
	for _, name := range credentials {
		if v, ok := os.LookupEnv(name); ok {
			e.held[name] = v
			_ = os.Unsetenv(name) // fails for impossible names only
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
