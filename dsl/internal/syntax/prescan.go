package syntax

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/saga-engine/engine/dsl/internal/value"
)

// Limits of source text. The parsers of the hcl library are recursive and have no limits. A Go
// program cannot recover from a stack overflow. So Prescan checks each text before it is parsed.
const (
	MaxSource = 1 << 20  // largest size of one file or value, in bytes
	maxTokens = 300_000  // largest number of tokens in one file
	maxDepth  = 200      // largest number of nested brackets, templates and directives
	maxChain  = 1_000    // largest number of operators, indexes and calls in one expression
	MaxModule = 16 << 20 // largest size of all files of a module together, in bytes
	MaxFiles  = 1_000    // largest number of files in a module
)

// Prescan returns an error if src exceeds a limit of size, tokens, nesting or length of an
// expression. It returns nil if src is safe to parse. The lexer that Prescan uses is a state
// machine without recursion.
func Prescan(src []byte, file string) *hcl.Diagnostic {
	if len(src) > MaxSource {
		return TooBig(file)
	}
	if crowded(src) {
		return tooMany(hcl.Range{Filename: file, Start: hcl.InitialPos, End: hcl.InitialPos})
	}
	tokens, _ := hclsyntax.LexConfig(src, file, hcl.InitialPos) // the parser reports invalid tokens
	return scanTokens(tokens)
}

// prescanTemplate does the same as Prescan for a template, which is the text inside of a string.
// It does not check the size. start is the place of the template in its file.
func prescanTemplate(src []byte, file string, start hcl.Pos) *hcl.Diagnostic {
	tokens, _ := hclsyntax.LexTemplate(src, file, start)
	return scanTokens(tokens)
}

// TooBig returns the error for a file that is larger than MaxSource.
func TooBig(file string) *hcl.Diagnostic {
	at := hcl.Range{Filename: file, Start: hcl.InitialPos, End: hcl.InitialPos}
	return &hcl.Diagnostic{
		Severity: hcl.DiagError, Subject: &at,
		Summary: "File too large",
		Detail:  "A file may hold at most 1 MiB. Split it; all files of a directory form one module.",
	}
}

// crowded reports whether a file certainly has more than maxTokens tokens. It counts brackets,
// operators, words and line ends. Prescan calls crowded before the lexer, because the lexer needs
// approximately 100 bytes of memory for each token.
func crowded(src []byte) bool {
	marks, word := 0, false
	for _, c := range src {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c >= 0x80:
			if !word {
				marks++
			}
			word = true
			continue
		case strings.IndexByte("[](){},.:?=!<>&|+-*/%\n", c) >= 0:
			marks++
		}
		word = false
	}
	return marks > maxTokens
}

func tooMany(at hcl.Range) *hcl.Diagnostic {
	return &hcl.Diagnostic{
		Severity: hcl.DiagError, Subject: &at,
		Summary: "File too large", Detail: "A file may hold at most 300,000 tokens. Split it; all files of a directory form one module.",
	}
}

func tooDeep(at hcl.Range) *hcl.Diagnostic {
	return &hcl.Diagnostic{
		Severity: hcl.DiagError, Subject: &at,
		Summary: "Nesting too deep",
		Detail:  "Brackets, templates and conditions may be nested at most 200 deep.",
	}
}

// scanTokens returns an error if a text is nested too deep, or has an expression with too many
// operators. It has one frame for each open bracket. It returns nil if it finds no error.
func scanTokens(tokens hclsyntax.Tokens) *hcl.Diagnostic {
	type frame struct {
		chain int  // number of operators in the current expression inside of this bracket
		lines bool // true = inside of this bracket, a new line ends an expression
	}
	frames := []frame{{lines: true}}
	directives, unary := 0, 0
	for i, t := range tokens {
		if i == maxTokens {
			return tooMany(t.Range)
		}
		top := &frames[len(frames)-1]
		prefix := false
		switch t.Type {
		case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenOQuote,
			hclsyntax.TokenOHeredoc, hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
			// The parts of a template are a flat list, so they do not make the chain longer.
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
		if len(frames)+max(directives, 0)+unary > maxDepth {
			return tooDeep(t.Range)
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

// directive returns by how many levels the template directive at the start of rest changes the
// nesting: 1 for %{ if } and %{ for }, -1 for %{ endif } and %{ endfor }, and 0 otherwise.
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

// PrescanJSON returns an error if a JSON text is too large or nested too deep; nil if the text is
// safe to parse. It counts only the brackets outside of strings.
func PrescanJSON(src []byte, file string) *hcl.Diagnostic {
	if len(src) > MaxSource {
		return TooBig(file)
	}
	depth, inString := 0, false
	for i := 0; i < len(src); i++ {
		switch c := src[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				line := 1
				for _, b := range src[:i] {
					if b == '\n' {
						line++
					}
				}
				pos := hcl.Pos{Line: line, Column: 1, Byte: i}
				return tooDeep(hcl.Range{Filename: file, Start: pos, End: pos})
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}
