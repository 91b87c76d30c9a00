package secret

import "strings"

// ReservedEnv reports whether an environment variable belongs to the engine:
// ENGINE_* configures it and opens its state (ENGINE_DSN, the key), and PG* is
// what PostgreSQL's client library reads (PGPASSWORD, PGPASSFILE, PGSERVICEFILE,
// …). A workflow is often written by another person than the one who runs the
// engine, so it gets none of them: not by env(), not by secret("env:…"), not by
// the env list of an agent. The programs of --on-alert get none of them either.
//
// This is the only list. Case does not count, because some systems do not tell
// cases apart.
func ReservedEnv(name string) bool {
	name = strings.ToUpper(name)
	return strings.HasPrefix(name, "ENGINE_") || strings.HasPrefix(name, "PG")
}

// ReservedEnvRule says which variables ReservedEnv refuses, and what to do.
const ReservedEnvRule = "Variables named ENGINE_* and PG* open the engine's state, so workflows and agents do not get them. Give the value in a variable of another name"
