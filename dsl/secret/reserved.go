package secret

import "strings"

// ReservedEnv reports whether an environment variable belongs to the engine.
// ENGINE_* variables configure the engine and open its state (ENGINE_DSN, the
// key). PG* variables are for PostgreSQL's client library (PGPASSWORD,
// PGPASSFILE, PGSERVICEFILE, …). The author of a workflow is often not the
// person who runs the engine. So a workflow gets none of these variables: not by
// env(), not by secret("env:…"), not by the env list of an agent. A program that
// --on-alert names gets none of these variables either.
//
// No other code decides which variables belong to the engine. ReservedEnv ignores upper and
// lower case in the name of a variable, because some operating systems do so, too.
func ReservedEnv(name string) bool {
	name = strings.ToUpper(name)
	return strings.HasPrefix(name, "ENGINE_") || strings.HasPrefix(name, "PG")
}

// ReservedEnvRule is a text for error messages. It names the variables that ReservedEnv refuses,
// and says how to pass a value in another way.
const ReservedEnvRule = "Variables named ENGINE_* and PG* open the engine's state, so workflows and agents do not get them. Give the value in a variable of another name"
