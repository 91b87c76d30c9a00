package decl

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/functions"
)

// ReadsFiles reports whether an expression calls a function that reads a file or the environment.
func ReadsFiles(e *eval.Expr) bool {
	return slices.ContainsFunc(eval.Calls(e.Syntax), func(c *hclsyntax.FunctionCallExpr) bool {
		_, reads := functions.Literal[c.Name]
		return reads
	})
}

// ReadsSum returns a checksum of everything that file() and similar functions have read for the
// module.
func ReadsSum(m *Module) string {
	r := functions.Reads{Files: m.Reads.Files, Env: m.Reads.Env, Sets: m.Reads.Sets, Exists: m.Reads.Exists}
	data, err := json.Marshal(r)
	if err != nil { // maps of texts can always be encoded
		return err.Error()
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
