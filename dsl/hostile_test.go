package dsl

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/saga-engine/engine/dsl/internal/report"
)

// TestHostileSource (T19): what would overflow the parser's stack or fill the memory
// is refused with a clean message, and quickly.
func TestHostileSource(t *testing.T) {
	rep := strings.Repeat
	wrap := func(expr string) string { return "locals {\n  x = " + expr + "\n}\n" }
	for _, tt := range []struct{ name, file, src, want string }{
		{"two MiB", "a.hcl", "# " + rep("x", 2<<20), "File too large"},
		{"two MiB of JSON", "a.hcl.json", `{"locals":{"x":"` + rep("x", 2<<20) + `"}}`, "File too large"},
		{"a million brackets", "a.hcl", wrap(rep("[", 1_000_000)), "File too large"},
		{"brackets and parentheses", "a.hcl", wrap(rep("[(", 20_000)), "Nesting too deep"},
		{"objects", "a.hcl", wrap(rep("{a=", 20_000)), "Nesting too deep"},
		{"blocks", "a.hcl", rep("a {\n", 20_000), "Nesting too deep"},
		{"templates", "a.hcl", wrap(rep(`"${`, 20_000)), "Nesting too deep"},
		{"negations", "a.hcl", wrap(rep("!", 20_000) + "true"), "Nesting too deep"},
		{"directives", "a.hcl", wrap(`"` + rep("%{if true}", 20_000) + `"`), "Nesting too deep"},
		{"fewer directives", "a.hcl", wrap(`"` + rep("%{if true}", 1_000) + `"`), "Nesting too deep"},
		{"a long sum", "a.hcl", wrap("1" + rep("+1", 20_000)), "Expression too long"},
		{"conditions", "a.hcl", wrap(rep("true?1:", 20_000) + "1"), "Expression too long"},
		{"indices", "a.hcl", wrap("x" + rep("[0]", 20_000)), "Expression too long"},
		{"attributes", "a.hcl", wrap("x" + rep(".a", 20_000)), "Expression too long"},
		{"splats", "a.hcl", wrap("x" + rep("[*]", 20_000)), "Expression too long"},
		{"many tokens", "a.hcl", wrap("[" + rep("1,", 400_000) + "1]"), "File too large"},
		{"JSON arrays", "a.hcl.json", `{"locals":{"x":` + rep("[", 900_000), "Nesting too deep"},
		{"JSON objects", "a.hcl.json", rep(`{"a":`, 20_000), "Nesting too deep"},
		{"a template in JSON", "a.hcl.json", `{"locals":{"x":"` + rep("${[", 20_000) + `"}}`, "Nesting too deep"},
		{"a type in JSON", "a.hcl.json", `{"variable":{"x":{"type":"` + rep("list(", 20_000) + `"}}}`, "Nesting too deep"},
		{"a huge exponent", "a.hcl", wrap("1e999999999999"), "Invalid number literal"},
		{"a huge text of a huge number", "a.hcl", wrap(`"${1e999999999}"`), "Number too long"},
		{"a huge width", "a.hcl", wrap(`format("%999999999d", 1)`), "Error in function call"},
		{"nested loops", "a.hcl", wrap("[for a in range(1000) : [for b in range(1000) : [for c in range(1000) : a]]]"), "Expression too expensive"},
		{"two loops, one in the other", "a.hcl", wrap("[for a in range(1000) : [for b in range(1000) : b]]"), "Expression too expensive"},
		{"nested loops with errors", "a.hcl", wrap("[for a in range(1000) : [for b in range(1000) : [for c in range(1000) : a.x] if true] if true]"), "Expression too expensive"},
		{"nested loops that keep nothing", "a.hcl", wrap("[for a in range(1000) : [for b in range(1000) : b if false]]"), "Expression too expensive"},
		{"a costly condition", "a.hcl", wrap("[for a in range(1000) : a if [for b in range(1000) : b] == [a]]"), "Expression too expensive"},
		{"a product", "a.hcl", wrap("setproduct(range(1000), range(1000), range(1000))"), "Expression too expensive"},
		{"an indentation", "a.hcl", wrap(`indent(999999999, "a\nb")`), "Expression too expensive"},
		{"a replacement", "a.hcl", wrap(`replace(format("%-999s", "a"), "", join("", [for x in range(1000) : format("%-99s", "a")]))`), "Expression too expensive"},
		{"a replaced pattern", "a.hcl", wrap(`replace(format("%-999s", "a"), "/x*/", join("", [for x in range(1000) : format("%-99s", "a")]))`), "Expression too expensive"},
		{"doubling", "a.hcl", doubling(40), "Value too large"},
		{"squaring", "a.hcl", squaring(40), "Value too large"},
		{"not UTF-8", "a.hcl", "locals {\n  x = \"\xff\xfe\"\n}\n", "Invalid character encoding"},
		{"NUL", "a.hcl", "locals {\n  x = \x00\n}\n", "Invalid character"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, diags := parseAndLink(fstest.MapFS{tt.file: {Data: []byte(tt.src)}})
			if !diags.HasErrors() || !strings.Contains(fmt.Sprint(diags.Err()), tt.want) {
				t.Errorf("diagnostics %.300v, want %q", diags.Err(), tt.want)
			}
		})
	}
}

// doubling makes locals each of which is twice as long as the one before.
func doubling(n int) string {
	var b strings.Builder
	b.WriteString("locals {\n  x0 = env(\"REGION\")\n")
	for i := range n {
		fmt.Fprintf(&b, "  x%d = \"${local.x%d}${local.x%d}\"\n", i+1, i, i)
	}
	return b.String() + "}\nworkflow \"w\" {\n  deadline = local.x40\n}\n"
}

// squaring makes numbers each of which has twice the digits of the one before.
func squaring(n int) string {
	var b strings.Builder
	b.WriteString("locals {\n  x0 = 1e900\n")
	for i := range n {
		fmt.Fprintf(&b, "  x%d = local.x%d * local.x%d\n", i+1, i, i)
	}
	return b.String() + "}\nworkflow \"w\" {\n  deadline = \"${local.x40}\"\n}\n"
}

// TestManyBlocks: 10,000 small blocks work.
func TestManyBlocks(t *testing.T) {
	var b strings.Builder
	b.WriteString("workflow \"w\" {\n  deadline = \"1h\"\n")
	for i := range 10_000 {
		fmt.Fprintf(&b, "  step \"s%d\" {\n    action       = agent.mock.call\n    compensation = \"none\"\n  }\n", i)
	}
	b.WriteString("}\n")
	def, diags := parseAndLink(fstest.MapFS{"a.hcl": {Data: []byte(b.String())}})
	if def == nil {
		t.Fatalf("diagnostics %.300v", diags.Err())
	}
}

// TestFileStaysInside: file() cannot leave the module, not even through a
// symbolic link.
func TestFileStaysInside(t *testing.T) {
	root := t.TempDir()
	module := filepath.Join(root, "module")
	for path, text := range map[string]string{
		filepath.Join(root, "outside.txt"):          "outside",
		filepath.Join(module, "notes", "hello.txt"): "hello",
		filepath.Join(module, "binary"):             "\xff",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{
		"escape": "../outside.txt", "absolute": filepath.Join(root, "outside.txt"),
		"up": "..", "inside": "notes/hello.txt", "loop": "loop",
	} {
		if err := os.Symlink(target, filepath.Join(module, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		path string
		ok   bool
	}{
		{"notes/hello.txt", true}, {"inside", true}, {"./notes/../notes/hello.txt", true},
		{"../outside.txt", false}, {"/etc/hostname", false}, {"escape", false}, {"absolute", false},
		{"up/outside.txt", false}, {"loop", false}, {"notes", false}, {"binary", false}, {"", false}, {`..\outside.txt`, false},
	} {
		src := fmt.Sprintf("locals {\n  x = file(%q)\n}\n", tt.path)
		if err := os.WriteFile(filepath.Join(module, "main.hcl"), []byte(src), 0o644); err != nil {
			t.Fatal(err)
		}
		m, diags := Parse(os.DirFS(module), ParseOptions{})
		if diags.HasErrors() == tt.ok {
			t.Errorf("file(%q): %v", tt.path, diags.Err())
		}
		if tt.ok && m.m.Reads.Files[tt.path] != "hello" {
			t.Errorf("file(%q) = %q", tt.path, m.m.Reads.Files[tt.path])
		}
	}
}

// TestSingleFile: one file can be a module.
func TestSingleFile(t *testing.T) {
	fsys := fstest.MapFS{
		"a.hcl":           {Data: []byte("locals {\n  x = 1\n}\n")},
		"b.hcl":           {Data: []byte("nonsense {")},
		"v.auto.vars.hcl": {Data: []byte("x = 1\n")},
	}
	m, diags := Parse(fsys, ParseOptions{File: "a.hcl"})
	if diags.HasErrors() || len(m.Sources()) != 2 || len(m.AutoVars()) != 1 {
		t.Errorf("%v, sources %d, values %d", diags.Err(), len(m.Sources()), len(m.AutoVars()))
	}
	if _, diags = Parse(fsys, ParseOptions{File: "c.hcl"}); !diags.HasErrors() {
		t.Error("a missing file is no error")
	}
}

// TestManyMistakes: a check ends after some errors, cites no more of a line
// than is read, and is not slower for what it looks at again and again.
func TestManyMistakes(t *testing.T) {
	repeat := func(n int, line string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, line, i)
		}
		return b.String()
	}
	step := "workflow \"w\" {\n  step \"s\" {\n    action = agent.mock.call\n    input {\n%s    }\n  }\n}\n"
	for _, tt := range []struct{ name, src, want string }{
		{"empty workflows", repeat(40_000, "workflow \"w%d\" {}\n"), "Too many workflows"},
		{"workflows with what they share", repeat(3_000, "variable \"v%d\" {}\n") + repeat(3_000, "workflow \"w%d\" {}\n"), "Too many workflows"},
		{"wrong arguments", fmt.Sprintf(step, repeat(70_000, "a%d=1\n")), "Too many errors"},
		{"wrong references in one line", "locals {\n  x = [" + repeat(70_000, "a%d,") + "]\n}\n", "Too many errors"},
		{"names that are nearly right", repeat(10_000, "variable \"variable%d\" {}\n") + "locals {\n" + repeat(10_000, "x%[1]d=var.variabel%[1]d\n") + "}\n", "Too many errors"},
		{"outputs of one name", "workflow \"w\" {\n" + repeat(20_000, "output \"o\" { value = %d }\n") + "}\n", "Too many errors"},
		{"expressions that are nearly too expensive", "locals {\n" + repeat(50, "x%d = length([for i in range(1000) : [for j in range(100) : i]])\n") + "}\n", "of this decision need too much"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, diags := parseAndLink(fstest.MapFS{"a.hcl": {Data: []byte(tt.src)}})
			if !diags.HasErrors() || !strings.Contains(fmt.Sprint(diags.Err()), tt.want) {
				t.Errorf("diagnostics %.300v, want %q", diags.Err(), tt.want)
			}
			if len(diags) > report.MaxErrors+report.MaxFindings {
				t.Errorf("%d findings", len(diags))
			}
			for _, d := range diags {
				if s := d.Snippet; s != nil && (len(s.Code) > 2*report.MaxLine+10 || s.HighlightStart > len(s.Code) || s.HighlightEnd > len(s.Code)) {
					t.Fatalf("%d bytes of a line are shown, %d to %d", len(s.Code), s.HighlightStart, s.HighlightEnd)
				}
			}
		})
	}
}
