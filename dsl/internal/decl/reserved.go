package decl

import (
	"strings"

	"github.com/saga-engine/engine/dsl/secret"
)

// reservedEnv reports whether a definition must not read an environment variable, because the
// variable belongs to the engine. An older definition, stored before this rule existed, may name
// such a variable. In this definition env() still has its stored result, but agents and secrets
// do not get the variable.
func (d literalDecoder) reservedEnv(name string) bool { return !d.m.Older && secret.ReservedEnv(name) }

// reservedSecret reports whether ref, a reference to a secret such as env:NAME, names a variable
// that reservedEnv refuses. It returns false for a reference such as file:PATH.
func (d literalDecoder) reservedSecret(ref string) bool {
	name, env := strings.CutPrefix(ref, "env:")
	return env && d.reservedEnv(name)
}
