package metered

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// maxJoined limits the work of the parser for heredocs. For each line of a heredoc the parser
// copies all text of the heredoc before this line. So 100,000 short lines take half a minute. The
// limit is the number of bytes that the parser copies for one file: 256 MiB.
const maxJoined = 256 << 20

// CheckHeredocs adds up the bytes that the parser would copy for the heredocs of a file. If the sum
// exceeds maxJoined, CheckHeredocs returns an error at the heredoc where this happens. If not, it
// returns nil.
func CheckHeredocs(tokens hclsyntax.Tokens) *hcl.Diagnostic {
	joined, length, inside := 0, 0, 0
	var at hcl.Range
	for _, t := range tokens {
		switch t.Type {
		case hclsyntax.TokenOHeredoc:
			inside++
			length, at = 0, t.Range
		case hclsyntax.TokenCHeredoc:
			inside--
		case hclsyntax.TokenStringLit:
			if inside == 0 {
				continue
			}
			length += len(t.Bytes)
			if joined += length; joined > maxJoined {
				return &hcl.Diagnostic{
					Severity: hcl.DiagError, Subject: &at,
					Summary: "Heredoc too long",
					Detail: fmt.Sprintf("The heredocs up to this one have too many lines: their bytes, multiplied by their lines, may be about %d million. "+
						"Put the text into a file next to this one, and read it with file().", 2*maxJoined/1_000_000),
				}
			}
		}
	}
	return nil
}
