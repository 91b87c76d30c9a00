package syntax

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/saga-engine/engine/dsl/internal/metered"
)

// Limits of source text. The parsers of the hcl library are recursive and have no limits. A Go
// program cannot recover from a stack overflow. So Prescan checks each text before it is parsed.
const (
	MaxSource = 1 << 20  // largest size of one file or value, in bytes
	MaxModule = 16 << 20 // largest size of all files of a module together, in bytes
	MaxFiles  = 1_000    // largest number of files in a module
)

// Prescan returns an error if src has too many bytes or tokens, is nested too deep, or has
// expressions, numbers or heredocs that are too long. It returns nil if src is safe to parse.
// Prescan itself is safe for every src, because the lexer that it uses has no recursion.
func Prescan(src []byte, file string) *hcl.Diagnostic {
	if len(src) > MaxSource {
		return TooBig(file)
	}
	if metered.Crowded(src) {
		return metered.TooManyTokens(hcl.Range{Filename: file, Start: hcl.InitialPos, End: hcl.InitialPos})
	}
	tokens, _ := hclsyntax.LexConfig(src, file, hcl.InitialPos) // the parser reports invalid tokens
	return checkTokens(tokens)
}

// prescanTemplate checks a template, which is the text inside of a string, as Prescan checks a
// file. But it does not check the size. The parameter `start` is the position of the template in
// its file.
func prescanTemplate(src []byte, file string, start hcl.Pos) *hcl.Diagnostic {
	tokens, _ := hclsyntax.LexTemplate(src, file, start)
	return checkTokens(tokens)
}

func checkTokens(tokens hclsyntax.Tokens) *hcl.Diagnostic {
	if d := metered.CheckTokens(tokens); d != nil {
		return d
	}
	return metered.CheckHeredocs(tokens)
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
			if depth++; depth > metered.MaxBrackets {
				line := 1
				for _, b := range src[:i] {
					if b == '\n' {
						line++
					}
				}
				pos := hcl.Pos{Line: line, Column: 1, Byte: i}
				return metered.TooDeep(hcl.Range{Filename: file, Start: pos, End: pos})
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}
