package syntax

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	hcljson "github.com/hashicorp/hcl/v2/json"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/metered"
	"github.com/saga-engine/engine/dsl/internal/report"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// read reads a file as package decl does, and returns its blocks and the findings.
func read(t *testing.T, name, src string) (*Block, diag.Diagnostics) {
	t.Helper()
	r := &report.Reporter{Sources: map[string][]byte{name: []byte(src)}}
	var f *hcl.File
	var diags hcl.Diagnostics
	if strings.HasSuffix(name, ".json") {
		f, diags = hcljson.Parse([]byte(src), name)
	} else {
		f, diags = hclsyntax.ParseConfig([]byte(src), name, hcl.InitialPos)
	}
	if diags.HasErrors() {
		t.Fatal(src, diags)
	}
	return Reader{Reporter: r}.Read(f.Body, ModuleSpec, "", f.Body.MissingItemRange()), r.Finish()
}

// pointed returns each finding with the source text to which it points.
func pointed(src string, diags diag.Diagnostics) (out []string) {
	for _, d := range diags {
		out = append(out, d.Summary+": "+src[d.Range.Start.Byte:d.Range.End.Byte])
	}
	return out
}

// A finding points to the text that is wrong, in both forms of a file.
func TestFindingsPointToTheText(t *testing.T) {
	for _, c := range []struct{ name, src, want string }{
		{"a.hcl", `workflow "w" { deadline = upperr("x") }`, "Call to unknown function: upperr"},
		{"a.hcl.json", `{"workflow": {"w": {"deadline": "${upperr(1)}"}}}`, "Call to unknown function: upperr"},
		{"a.hcl.json", "{\n \"workflow\": {\"w\": {\n  \"deadline\": \"é ${now()}\"}}}", "Call to unknown function: now"},
		{"a.hcl.json", `{"workflow": {"w": {"step": {"a": {"input": {"x": [1, {"y": "${f(2)}"}]}}}}}}`, "Call to unknown function: f"},
		{"a.hcl", `workflow "9w" {}`, `Invalid name: "9w"`},
		{"a.hcl", "workflow \"w\" {\n  step \"a\" {\n    retry {}\n    retry {}\n  }\n}", "Duplicate retry block: retry"},
		{"a.hcl", "workflow \"w\" {\n  output \"o\" {}\n}", `Missing required argument: output "o"`},
		{"a.hcl", `workflow "w" { deadlin = 1 }`, "Unsupported argument: deadlin"},
		{"a.hcl", "locals {\n  x {}\n}", `Unexpected "x" block: x`},
		{"a.hcl", "locals { n = 1" + strings.Repeat("0", value.MaxDigits) + " }", "Number too long: 1" + strings.Repeat("0", value.MaxDigits)},
		{"a.hcl", "locals { n = -1e2000 }", "Number too long: 1e2000"},
	} {
		_, diags := read(t, c.name, c.src)
		if got := strings.Join(pointed(c.src, diags), "; "); got != c.want {
			t.Errorf("%s: %s, want %s", c.src, got, c.want)
		}
	}
}

// The line and the column of an error in a JSON string are those of the character in the file.
func TestColumnsInJSON(t *testing.T) {
	src := "{\"locals\": {\n  \"x\": \"ab ${now()}\"}}"
	_, diags := read(t, "a.hcl.json", src)
	if len(diags) != 1 {
		t.Fatalf("%d findings", len(diags))
	}
	line := strings.Split(src, "\n")[1]
	if got := diags[0].Range.Start; got.Line != 2 || got.Column != strings.Index(line, "now")+1 || got.Byte != strings.Index(src, "now") {
		t.Errorf("the error is at %+v", got)
	}
}

// Attributes with free names keep the order of the source, and so do blocks.
func TestOrderOfTheSource(t *testing.T) {
	names := []string{"z", "a", "m", "b", "y", "c"}
	var attrs, blocks strings.Builder
	for i, n := range names {
		fmt.Fprintf(&attrs, "    %s = %d\n", n, i)
		fmt.Fprintf(&blocks, "step \"%s\" {}\n", n)
	}
	b, _ := read(t, "a.hcl", "locals {\n"+attrs.String()+"}\nworkflow \"w\" {\n"+blocks.String()+"}\n")
	var got []string
	for _, a := range b.One("locals").Args {
		got = append(got, a.Name)
	}
	for _, s := range b.One("workflow").All("step") {
		got = append(got, s.Label)
	}
	if want := slices.Concat(names, names); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	var none *Block
	if none.One("step") != nil || none.All("step") != nil || none.Attr("x") != nil || b.One("agent") != nil || b.All("agent") != nil {
		t.Error("a block that does not exist has parts")
	}
}

// A block is broken if a part of it was refused. A missing argument alone does not break it.
func TestBrokenBlocks(t *testing.T) {
	for src, want := range map[string]bool{
		`output "o" { value = 1 }`: false, `output "o" {}`: false, `output "o" { valu = 1 }`: true, "output \"o\" {\n value = 1\n x {}\n }": true, `output "1" { value = 1 }`: true, `locals { a = 1 }`: false, "locals {\n a {}\n }": true,
	} {
		b, _ := read(t, "a.hcl", "workflow \"w\" {\n"+src+"\n}")
		if got := b.Blocks[0].Blocks[0].Broken; got != want {
			t.Errorf("%s: broken %t, want %t", src, got, want)
		}
	}
}

// A value has the same meaning in both forms of a file.
func TestFormsOfValues(t *testing.T) {
	for hclText, jsonText := range map[string]string{
		`"a"`: `"a"`, `1.50`: `1.50`, `true`: `true`, `null`: `null`, `[1, "b", []]`: `[1, "b", []]`, `{ a = 1, "b c" = { d = null } }`: `{"a": 1, "b c": {"d": null}}`,
		`"x${1 + 1}y"`: `"x${1 + 1}y"`, `[for i in [1, 2] : i * 2]`: `"${[for i in [1, 2] : i * 2]}"`, `"$${x}"`: `"$${x}"`, `"a\"b\n"`: `"a\"b\n"`, `{ ("a${1}") = 1 }`: `{"a${1}": 1}`,
		"1234567890123456789012345": "1234567890123456789012345", "1e3": "1e3", "0.1": "0.1",
	} {
		var vals [2]cty.Value
		for i, f := range []struct{ name, src string }{{"a.hcl", "locals {\n x = " + hclText + "\n}"}, {"a.hcl.json", `{"locals": {"x": ` + jsonText + `}}`}} {
			b, diags := read(t, f.name, f.src)
			if len(diags) > 0 {
				t.Fatal(f.src, diags)
			}
			v, hclDiags := metered.EvaluateOnce(b.Blocks[0].Args[0].Expr.Syntax, nil, nil)
			if hclDiags.HasErrors() {
				t.Fatal(f.src, hclDiags)
			}
			vals[i] = v
		}
		if !vals[0].RawEquals(vals[1]) {
			t.Errorf("%s is %#v, and %s in JSON is %#v", hclText, vals[0], jsonText, vals[1])
		}
	}
}

// A name has at most 100 characters, and begins with a letter or an underscore.
func TestValidNames(t *testing.T) {
	for name, want := range map[string]bool{
		"a": true, "_": true, "Z9": true, "a-b_c": true, strings.Repeat("a", 100): true, strings.Repeat("a", 101): false,
		"": false, "9a": false, "-a": false, "a b": false, "a.b": false, "é": false, "aé": false, "a\n": false, "{": false, "@": false, "[": false, "`": false, "a/": false, "a:": false,
	} {
		if got := ValidName(name); got != want {
			t.Errorf("%.20q: %t, want %t", name, got, want)
		}
	}
}

// Formatting keeps the line breaks of the first line, and never changes what a file says.
func TestFormatKeepsTheMeaning(t *testing.T) {
	for _, c := range []struct{ rule, name, src, want string }{
		{"a reference without quotes", "a.hcl", `a = "${b.c}"`, "a = b.c\n"},
		{"in a block", "a.hcl", "x {\n a = \"${b}\"\n bb = \"${c}\"\n}", "x {\n  a  = b\n  bb = c\n}\n"},
		{"a text around the reference stays", "a.hcl", `a = "x${b}"`, "a = \"x${b}\"\n"},
		{"a comment inside stays", "a.hcl", `a = "${b /* why */}"`, "a = \"${b /* why */}\"\n"},
		{"a template over two lines stays", "a.hcl", "a = \"${\n  b}\"\n", "a = \"${\nb}\"\n"},
		{"a heredoc stays", "a.hcl", "a = <<X\n${b}\nX\n", "a = <<X\n${b}\nX\n"},
		{"line breaks of Windows", "a.hcl", "a=1\r\nb=2\n", "a = 1\r\nb = 2\r\n"},
		{"line breaks of the first line", "a.hcl", "a = 1\nb = 2\r\n", "a = 1\nb = 2\n"},
		{"an empty file", "a.hcl", "\n\n", ""},
		{"blank lines at the end", "a.hcl", "a = 1\n\n\n", "a = 1\n"},
		{"JSON", "a.hcl.json", `{"a":[1,{"b":null}]}`, "{\n  \"a\": [\n    1,\n    {\n      \"b\": null\n    }\n  ]\n}\n"},
		{"JSON with line breaks of Windows", "a.hcl.json", "{\r\n\"a\":1}", "{\r\n  \"a\": 1\r\n}\r\n"},
	} {
		out, diags := Format([]byte(c.src), c.name)
		if len(diags) > 0 || string(out) != c.want {
			t.Errorf("%s: %q, %v, want %q", c.rule, out, diags, c.want)
		}
		if again, _ := Format(out, c.name); string(again) != string(out) {
			t.Errorf("%s: formatted again it is %q", c.rule, again)
		}
	}
}
