package link

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/argument"
	"github.com/saga-engine/engine/dsl/internal/report"
	"github.com/saga-engine/engine/dsl/internal/syntax"
	"github.com/saga-engine/engine/sdk/schema"
)

// An argument or a key probably contains a secret if its name matches secretName, but not
// noSecret. For example, this is true for password, db_password and X-API-Key. It is false for
// public_key, max_tokens and next_page_token.
var (
	secretName = regexp.MustCompile(`(^|_)(passwords?|passwd|pwd|passphrase|secret|token|bearer|api_?key|private_key|access_key|secret_key|client_secret|credentials?|authorization|cookie)$`)
	noSecret   = regexp.MustCompile(`(^|_)(page|continuation|sync|next|idempotency|csrf)_token$`)
)

// urlPassword and wordPassword find a password inside of a text. urlPassword finds user:password@
// in a URL. wordPassword finds password=… in a connection string.
var (
	urlPassword  = regexp.MustCompile(`[a-zA-Z][a-zA-Z0-9+.-]*://[^\s/:@]*:[^\s/@]+@`)
	wordPassword = regexp.MustCompile(`(^|[\s;])(password|pwd)\s*=\s*[^\s;]`)
)

// plainSecrets warns if an argument contains a secret as plain text. Every person who may read the
// workflow, or the definition in the store, can read such a secret.
func plainSecrets(r *report.Reporter, spec *argument.Spec, a syntax.Arg, title string) {
	if a.Expr.Bad || a.Expr.Syntax == nil {
		return
	}
	var p plainSecret
	whole := spec.Field.Sensitive && spec.Field.Type.Kind == schema.KindString
	p.search(a.Expr.Syntax, a.Name, a.Name, whole && !holdsAddress(a.Name))
	if len(p.found) == 0 {
		return
	}
	rest := ""
	if n := len(p.found) - maxNamedSecrets; n > 0 {
		p.found, rest = p.found[:maxNamedSecrets], fmt.Sprintf(" and %d more", n)
	}
	r.Push(diag.Diagnostic{
		Severity: diag.SeverityWarning, Range: report.Range(a.Where), HideSource: true,
		Summary: "Secret is written out",
		Detail: fmt.Sprintf("%s: this looks like a secret: %s%s. Who can read the workflow or the state can read it. "+
			`Write secret("env:NAME") or secret("file:PATH") instead: only the agent gets the value then.`,
			upperFirst(title), strings.Join(p.found, ", "), rest),
	})
}

// maxNamedSecrets is the largest number of secrets that one warning names.
const maxNamedSecrets = 10

// holdsAddress reports whether an argument with this name usually holds an address, such as a URL.
// Only the password in an address is a secret.
func holdsAddress(name string) bool {
	name = strings.ToLower(name)
	return name == "dsn" || strings.HasSuffix(name, "_dsn") || strings.HasSuffix(name, "url") || strings.HasSuffix(name, "uri")
}

// A plainSecret searches an expression for secrets.
type plainSecret struct{ found []string } // paths of the secrets found so far, such as headers.cookie

// search searches the expression e for secrets, and adds their paths to p.found. The parameter
// `path` is the path of e, and the parameter `name` is the argument or key that holds e. If the
// parameter `secret` is true and e is a literal text, e counts as a secret, even if its name does
// not suggest a secret.
func (p *plainSecret) search(e hclsyntax.Expression, path, name string, secret bool) {
	switch e := e.(type) {
	case *hclsyntax.ParenthesesExpr:
		p.search(e.Expression, path, name, secret)
	case *hclsyntax.TemplateWrapExpr:
		p.search(e.Wrapped, path, name, secret)
	case *hclsyntax.TemplateExpr:
		p.text(e, path, name, secret)
	case *hclsyntax.TupleConsExpr:
		for _, x := range e.Exprs {
			p.search(x, path, name, secret)
		}
	case *hclsyntax.ObjectConsExpr:
		for _, item := range e.Items {
			if key, ok := constantText(item.KeyExpr); ok {
				p.search(item.ValueExpr, path+"."+key, key, false)
			}
		}
	case *hclsyntax.FunctionCallExpr:
		if e.Name == "secret" {
			return
		}
		for _, x := range e.Args {
			p.search(x, path, "", false)
		}
	}
}

// text adds the parameter `path` to p.found if the template e is a secret or contains a password.
// If parts of the template are computed, text searches only the fixed parts for passwords.
func (p *plainSecret) text(e *hclsyntax.TemplateExpr, path, name string, secret bool) {
	name = strings.ToLower(strings.ReplaceAll(name, "-", "_"))
	secret = secret || secretName.MatchString(name) && !noSecret.MatchString(name)
	if text, ok := constantText(e); ok && text != "" && secret {
		p.found = append(p.found, path)
		return
	}
	for _, part := range e.Parts {
		text, ok := constantText(part)
		if ok && (urlPassword.MatchString(text) || holdsAddress(name) && wordPassword.MatchString(text)) {
			p.found = append(p.found, path)
			return
		}
	}
}

// constantText returns the text of an expression that is a literal text. It returns false for any
// other expression. It does not evaluate the expression.
func constantText(e hclsyntax.Expression) (string, bool) {
	switch e := e.(type) {
	case *hclsyntax.LiteralValueExpr:
		if e.Val.IsNull() || e.Val.Type() != cty.String {
			return "", false
		}
		return e.Val.AsString(), true
	case *hclsyntax.TemplateExpr:
		var text strings.Builder
		for _, part := range e.Parts {
			s, ok := constantText(part)
			if !ok {
				return "", false
			}
			text.WriteString(s)
		}
		return text.String(), true
	case *hclsyntax.ObjectConsKeyExpr:
		if word := hcl.ExprAsKeyword(e.Wrapped); word != "" && !e.ForceNonLiteral {
			return word, true
		}
		return constantText(e.Wrapped)
	}
	return "", false
}
