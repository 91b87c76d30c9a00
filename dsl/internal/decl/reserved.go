package decl

import (
	"strings"

	"github.com/saga-engine/engine/dsl/secret"
)

// reservedEnv reports whether a definition must not read an environment variable, because the
// variable belongs to the engine. A definition that was stored before this rule existed may name
// such a variable. It has the value that env() returned then, but its agents and secrets do not
// get the variable.
func (d literalDecoder) reservedEnv(name string) bool { return !d.m.Older && secret.ReservedEnv(name) }

// reservedSecret is reservedEnv for the reference of a secret, such as env:NAME.
func (d literalDecoder) reservedSecret(ref string) bool {
	name, env := strings.CutPrefix(ref, "env:")
	return env && d.reservedEnv(name)
}
