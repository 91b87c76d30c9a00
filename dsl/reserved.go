package dsl

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

// reservedEnv refuses a variable of the engine in what is loaded. A definition
// that was stored before this rule is still read: what it holds was recorded
// then, and the engine gives its agents and secrets nothing more.
func (d literalDecoder) reservedEnv(name string) bool { return !d.m.older && ReservedEnv(name) }

// reservedSecret is reservedEnv for the reference of a secret.
func (d literalDecoder) reservedSecret(ref string) bool {
	name, env := strings.CutPrefix(ref, "env:")
	return env && d.reservedEnv(name)
}
