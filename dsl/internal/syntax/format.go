package syntax

import (
	"bytes"
	"encoding/json"
	"sort"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	hcljson "github.com/hashicorp/hcl/v2/json"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/report"
)

// Format returns src in the canonical layout; see dsl.Format. If Format cannot parse src, it
// returns src unchanged, and the errors of the parser.
func Format(src []byte, filename string) ([]byte, diag.Diagnostics) {
	r := &report.Reporter{Sources: map[string][]byte{filename: src}}
	if strings.HasSuffix(filename, ".json") {
		return formatJSON(r, src, filename)
	}
	body := formattable(r, src, filename)
	if body == nil {
		return src, r.Finish()
	}
	out := unwrapTemplates(src, body)
	for range maxFormatPasses { // the hcl library may need a second pass before its layout is stable
		next := endWithNewline(hclwrite.Format(out), lineBreak(src))
		if bytes.Equal(next, out) {
			break
		}
		out = next
	}
	if !sameMeaning(src, out) {
		return src, r.Finish() // the new layout would change the meaning: return the source unchanged
	}
	return out, r.Finish()
}

const maxFormatPasses = 8

// formattable parses src and returns its body. If src has errors, formattable adds them to r and
// returns nil.
func formattable(r *report.Reporter, src []byte, filename string) *hclsyntax.Body {
	if d := Prescan(src, filename); d != nil {
		r.HCL(hcl.Diagnostics{d})
		return nil
	}
	f, diags := hclsyntax.ParseConfig(src, filename, hcl.InitialPos)
	r.HCL(diags)
	body, ok := f.Body.(*hclsyntax.Body)
	if !ok || diags.HasErrors() {
		return nil
	}
	return body
}

func formatJSON(r *report.Reporter, src []byte, filename string) ([]byte, diag.Diagnostics) {
	if d := PrescanJSON(src, filename); d != nil {
		r.HCL(hcl.Diagnostics{d})
		return src, r.Finish()
	}
	_, diags := hcljson.Parse(src, filename)
	r.HCL(diags)
	var out bytes.Buffer
	if diags.HasErrors() || json.Indent(&out, bytes.TrimSpace(src), "", "  ") != nil {
		return src, r.Finish()
	}
	out.WriteByte('\n')
	// A JSON string cannot contain a raw line break. So every line break in out is between values.
	return bytes.ReplaceAll(out.Bytes(), []byte("\n"), lineBreak(src)), r.Finish()
}

// unwrapTemplates returns src without superfluous templates: an attribute such as a = "${var.x}"
// becomes a = var.x, which means the same. The parameter `body` is the parsed src.
func unwrapTemplates(src []byte, body *hclsyntax.Body) []byte {
	type cut struct{ from, to, inFrom, inTo int }
	var cuts []cut
	var collect func(*hclsyntax.Body)
	collect = func(b *hclsyntax.Body) {
		for _, a := range b.Attributes {
			w, ok := a.Expr.(*hclsyntax.TemplateWrapExpr)
			if !ok {
				continue
			}
			outer, inner := w.SrcRange, w.Wrapped.Range()
			whole := src[outer.Start.Byte:outer.End.Byte]
			if bytes.ContainsAny(whole, "\r\n") || bytes.HasPrefix(whole, []byte("<<")) || bytes.Contains(whole, []byte("/*")) {
				continue
			}
			cuts = append(cuts, cut{outer.Start.Byte, outer.End.Byte, inner.Start.Byte, inner.End.Byte})
		}
		for _, c := range b.Blocks {
			collect(c.Body)
		}
	}
	collect(body)
	sort.Slice(cuts, func(i, j int) bool { return cuts[i].from > cuts[j].from })
	out := append([]byte(nil), src...)
	for _, c := range cuts {
		inner := append([]byte(nil), src[c.inFrom:c.inTo]...)
		out = append(out[:c.from], append(inner, out[c.to:]...)...)
	}
	return out
}

// lineBreak returns the line break at the end of the first line of a text: "\r\n" or "\n".
func lineBreak(src []byte) []byte {
	if i := bytes.IndexByte(src, '\n'); i > 0 && src[i-1] == '\r' {
		return []byte("\r\n")
	}
	return []byte("\n")
}

func endWithNewline(b, lineBreak []byte) []byte {
	trimmed := bytes.TrimRight(b, " \t\r\n")
	if len(trimmed) == 0 {
		return trimmed
	}
	return append(trimmed[:len(trimmed):len(trimmed)], lineBreak...)
}

// sameMeaning reports whether two texts have the same tokens. It ignores white space, and the
// characters that unwrapTemplates removes.
func sameMeaning(a, b []byte) bool {
	return bytes.Equal(tokenText(a), tokenText(b))
}

func tokenText(src []byte) []byte {
	// Errors do not matter here, because invalid text becomes a token, too.
	tokens, _ := hclsyntax.LexConfig(src, "", hcl.InitialPos)
	var out []byte
	for _, t := range tokens {
		switch t.Type {
		case hclsyntax.TokenNewline, hclsyntax.TokenEOF, hclsyntax.TokenOQuote, hclsyntax.TokenCQuote,
			hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateSeqEnd:
			continue
		case hclsyntax.TokenComment:
			out = append(out, bytes.TrimSpace(t.Bytes)...)
		default:
			out = append(out, t.Bytes...)
		}
		out = append(out, 0)
	}
	return out
}
