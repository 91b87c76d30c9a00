package decl

import (
	"strings"

	"github.com/saga-engine/engine/dsl/secret"
)

// reservedEnv refuses a variable of the engine in what is loaded. A definition
// that was stored before this rule is still read: what it holds was recorded
// then, and the engine gives its agents and secrets nothing more.
func (d literalDecoder) reservedEnv(name string) bool { return !d.m.Older && secret.ReservedEnv(name) }

// reservedSecret is reservedEnv for the reference of a secret.
func (d literalDecoder) reservedSecret(ref string) bool {
	name, env := strings.CutPrefix(ref, "env:")
	return env && d.reservedEnv(name)
}
