package decl

import (
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/secret"
)

// secretCalls reports an error for each call of secret() in a position that is not allowed, and for
// each invalid argument of secret(). It returns false after an error.
func (d referenceDecoder) secretCalls(c *eval.Compiled, a allow) bool {
	all := eval.Calls(c.Syntax, "secret")
	if len(all) == 0 {
		return true
	}
	c.Secrets = true
	allowed := map[*hclsyntax.FunctionCallExpr]bool{}
	if a&allowSecret != 0 {
		allowedSecrets(c.Syntax, allowed)
	}
	ok := true
	for _, call := range all {
		ref, literal := eval.LiteralString(call)
		switch {
		case !allowed[call]:
			d.Errorf(call.Range(), "secret() not allowed here", "%s", eval.SecretRule)
		case !literal || !validSecretRef(ref):
			d.Errorf(call.Range(), "Invalid secret reference", "Write secret(\"env:NAME\") or secret(\"file:PATH\") with a plain string.")
		case d.lit.reservedSecret(ref):
			d.Errorf(call.Range(), "Reserved variable", "secret(%q): %s.", ref, secret.ReservedEnvRule)
		default:
			continue
		}
		ok = false
	}
	return ok
}

func validSecretRef(ref string) bool {
	kind, rest, found := strings.Cut(ref, ":")
	return found && rest != "" && (kind == "env" || kind == "file")
}

// allowedSecrets finds the calls of secret() that are in an allowed position of the expression e,
// and adds them to the map `out`. Such a call may be the whole expression, a part of a template, or
// a value in an object or a tuple.
func allowedSecrets(e hclsyntax.Expression, out map[*hclsyntax.FunctionCallExpr]bool) {
	switch e := e.(type) {
	case *hclsyntax.FunctionCallExpr:
		if e.Name == "secret" {
			out[e] = true
		}
	case *hclsyntax.TemplateExpr:
		for _, p := range e.Parts {
			if call, ok := p.(*hclsyntax.FunctionCallExpr); ok {
				allowedSecrets(call, out)
			}
		}
	case *hclsyntax.TemplateWrapExpr:
		allowedSecrets(e.Wrapped, out)
	case *hclsyntax.ParenthesesExpr:
		allowedSecrets(e.Expression, out)
	case *hclsyntax.ObjectConsExpr:
		for _, item := range e.Items {
			allowedSecrets(item.ValueExpr, out)
		}
	case *hclsyntax.TupleConsExpr:
		for _, x := range e.Exprs {
			allowedSecrets(x, out)
		}
	}
}
