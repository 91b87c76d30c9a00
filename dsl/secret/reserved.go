package secret

import "strings"

// ReservedEnv reports whether an environment variable belongs to the engine.
// ENGINE_* variables configure the engine and open its state (ENGINE_DSN, the
// key). PG* variables are for PostgreSQL's client library (PGPASSWORD,
// PGPASSFILE, PGSERVICEFILE, …). The author of a workflow is often not the
// person who runs the engine. So a workflow gets none of these variables: not by
// env(), not by secret("env:…"), not by the env list of an agent. The programs
// of --on-alert get none of them either.
//
// There is no other list of such variables. Upper and lower case do not matter,
// because some systems do not distinguish them.
func ReservedEnv(name string) bool {
	name = strings.ToUpper(name)
	return strings.HasPrefix(name, "ENGINE_") || strings.HasPrefix(name, "PG")
}

// ReservedEnvRule says which variables ReservedEnv refuses, and what to do.
const ReservedEnvRule = "Variables named ENGINE_* and PG* open the engine's state, so workflows and agents do not get them. Give the value in a variable of another name"
