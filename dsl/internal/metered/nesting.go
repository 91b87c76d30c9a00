package metered

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/saga-engine/engine/dsl/internal/value"
)

// Limits of a text that is parsed as HCL. The parsers of the hcl library call themselves for each
// level of nesting, and a Go program cannot recover from a stack overflow.
const (
	maxTokens   = 300_000 // largest number of tokens in one text
	MaxBrackets = 200     // largest number of nested brackets, templates and directives
	maxChain    = 1_000   // largest number of operators, indexes and calls in one expression
)

// Crowded reports whether a text probably has more than maxTokens tokens, because it has more than
// maxTokens marks (see the function `marks`). The lexer needs approximately 100 bytes of memory for
// each token, so Crowded must run before the lexer.
func Crowded[T string | []byte](src T) bool { return marks(src) > maxTokens }

// marks estimates the number of tokens in a text: it returns the number of brackets, operators,
// words and line ends. A comment or a string may be a single token, but marks also counts the words
// inside of it.
func marks[T string | []byte](src T) int {
	count, word := 0, false
	for i := range len(src) {
		c := src[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c >= 0x80:
			if !word {
				count++
			}
			word = true
			continue
		case strings.IndexByte("[](){},.:?=!<>&|+-*/%\n", c) >= 0:
			count++
		}
		word = false
	}
	return count
}

// TooManyTokens returns the error for a text with more than maxTokens tokens.
func TooManyTokens(at hcl.Range) *hcl.Diagnostic {
	return &hcl.Diagnostic{
		Severity: hcl.DiagError, Subject: &at,
		Summary: "File too large", Detail: "A file may hold at most 300,000 tokens. Split it; all files of a directory form one module.",
	}
}

// TooDeep returns the error for a text that is nested too deep.
func TooDeep(at hcl.Range) *hcl.Diagnostic {
	return &hcl.Diagnostic{
		Severity: hcl.DiagError, Subject: &at,
		Summary: "Nesting too deep",
		Detail:  "Brackets, templates and conditions may be nested at most 200 deep.",
	}
}

// CheckTokens returns an error if a text has more than maxTokens tokens, is nested too deep, has an
// expression with too many operators, or has a number that is too long. It returns nil if it finds
// no error.
func CheckTokens(tokens hclsyntax.Tokens) *hcl.Diagnostic {
	// A frame describes the text inside of one open bracket, or outside of all brackets.
	type frame struct {
		chain int  // number of operators in the current expression inside of this bracket
		lines bool // true = inside of this bracket, a new line ends an expression
	}
	frames := []frame{{lines: true}}
	directives, unary := 0, 0
	for i, t := range tokens {
		if i == maxTokens {
			return TooManyTokens(t.Range)
		}
		top := &frames[len(frames)-1]
		prefix := false
		switch t.Type {
		case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenOQuote,
			hclsyntax.TokenOHeredoc, hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
			// The parser keeps the ${…} and %{…} of a template in a flat list. So they do not count
			// as operators of the expression.
			if t.Type != hclsyntax.TokenTemplateInterp && t.Type != hclsyntax.TokenTemplateControl {
				top.chain++
			}
			frames = append(frames, frame{lines: t.Type == hclsyntax.TokenOBrace})
			if t.Type == hclsyntax.TokenTemplateControl {
				directives += directive(tokens[i+1:])
			}
		case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenCQuote,
			hclsyntax.TokenCHeredoc, hclsyntax.TokenTemplateSeqEnd:
			if len(frames) > 1 {
				frames = frames[:len(frames)-1]
			}
		case hclsyntax.TokenComma:
			top.chain = 0
		case hclsyntax.TokenNewline:
			if top.lines {
				top.chain = 0
			}
		case hclsyntax.TokenMinus, hclsyntax.TokenBang:
			prefix = true
			top.chain++
		case hclsyntax.TokenNumberLit: // parsing a very long number takes much memory
			if len(t.Bytes) > 2*value.MaxDigits {
				return &hcl.Diagnostic{
					Severity: hcl.DiagError, Subject: &t.Range,
					Summary: "Number too long", Detail: fmt.Sprintf("A number may have at most %d digits.", value.MaxDigits),
				}
			}
		case hclsyntax.TokenQuotedLit, hclsyntax.TokenStringLit, hclsyntax.TokenIdent:
		case hclsyntax.TokenComment: // a comment after # or // contains the end of its line
			if top.lines && bytes.HasSuffix(t.Bytes, []byte("\n")) {
				top.chain = 0
			}
		default:
			top.chain++
		}
		if prefix {
			unary++
		} else {
			unary = 0
		}
		if len(frames)+max(directives, 0)+unary > MaxBrackets {
			return TooDeep(t.Range)
		}
		if top.chain > maxChain {
			at := t.Range
			return &hcl.Diagnostic{
				Severity: hcl.DiagError, Subject: &at,
				Summary: "Expression too long",
				Detail:  "One expression may hold at most 1,000 operators, indices and calls. Use locals to name its parts.",
			}
		}
	}
	return nil
}

// directive returns by how many levels a template directive changes the nesting: 1 for %{ if } and
// %{ for }, -1 for %{ endif } and %{ endfor }, and otherwise 0. The parameter `rest` holds the
// tokens after the %{ of the directive.
func directive(rest hclsyntax.Tokens) int {
	if len(rest) == 0 || rest[0].Type != hclsyntax.TokenIdent {
		return 0
	}
	switch string(rest[0].Bytes) {
	case "if", "for":
		return 1
	case "endif", "endfor":
		return -1
	}
	return 0
}
