package dsl_test

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/dsl/secret"
)

// TestFilesOfModules: the *.hcl and *.hcl.json files of a directory form one module.
// Values and tests are left aside, and what is hidden.
func TestFilesOfModules(t *testing.T) {
	named := func(name string) string { return strings.Replace(workflow(step("a", "")), `"w"`, `"`+name+`"`, 1) }
	f := files{
		"b.hcl": named("b"), "a.hcl": named("a2") + named("a1"), "c.hcl.json": `{"workflow": {"c": {"deadline": "1h"}}}`,
		"x.vars.hcl": "no = \"workflow\"\n", "x.test.hcl": "not hcl {", "x.vars.hcl.json": "{", "x.test.hcl.json": "{", ".hidden.hcl": "not hcl {",
		"readme.md": "not hcl {", "x.json": "{", "x.hcl.txt": "{", "deep/d.hcl": "not hcl {", "dir.hcl/e.txt": "x",
	}
	m, diags := dsl.Parse(f.fs(), dsl.ParseOptions{})
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	if got := strings.Join(m.Workflows(), " "); got != "a2 a1 b c" {
		t.Errorf("workflows %q, want them by file and place", got)
	}
	if got := strings.Join(slices.Sorted(maps.Keys(m.Sources())), " "); got != "a.hcl b.hcl c.hcl.json" {
		t.Errorf("sources %q", got)
	}
	if got := string(m.Sources()["b.hcl"]); got != f["b.hcl"] {
		t.Errorf("source of b.hcl: %q", got)
	}
	def, diags := dsl.Link(m, agents())
	if def == nil {
		t.Fatal(diags.Err())
	}
	if got := strings.Join(def.Names(), " "); got != "a2 a1 b c" || def.Workflow("nope") != nil {
		t.Errorf("names %q", got)
	}
	if got := string(def.Sources()["b.hcl"]); got != f["b.hcl"] || len(def.Sources()) != 3 {
		t.Errorf("sources of the definition: %v", def.Sources())
	}
}

// TestOneFileIsAModule: a file can be a module alone; its neighbours are not read, but
// for values.
func TestOneFileIsAModule(t *testing.T) {
	f := files{
		"dir/a.hcl": workflow("variable \"v\" { default = 1 }\n" + step("a", "")), "dir/b.hcl": "not hcl {",
		"dir/x.auto.vars.hcl": "v = 2\n", "y.auto.vars.hcl": "v = 3\n",
	}
	for _, name := range []string{"dir/a.hcl", "./dir/../dir/a.hcl"} {
		m, diags := dsl.Parse(f.fs(), dsl.ParseOptions{File: name})
		if diags.HasErrors() {
			t.Fatalf("%s: %v", name, diags.Err())
		}
		if auto := m.AutoVars(); len(auto) != 1 || auto[0].Source != "dir/x.auto.vars.hcl:1" {
			t.Errorf("%s: values %+v", name, auto)
		}
	}
	for name, want := range map[string]string{"nope.hcl": "Cannot read file", "dir": "is not a regular file", "../a.hcl": "Cannot read file"} {
		if _, diags := dsl.Parse(f.fs(), dsl.ParseOptions{File: name}); !diags.HasErrors() || !strings.Contains(diags.Err().Error(), want) {
			t.Errorf("%s: %v, want %q", name, diags.Err(), want)
		}
	}
}

// TestNoFiles: a directory without a module is named as the caller calls it.
func TestNoFiles(t *testing.T) {
	for dir, want := range map[string]string{"": "This directory holds no *.hcl file.", "shop": `The directory "shop" holds no *.hcl file.`} {
		m, diags := dsl.Parse(files{"a.txt": "x", "a.test.hcl": "", "a.vars.hcl": ""}.fs(), dsl.ParseOptions{Dir: dir})
		wantFindings(t, diags, fails("No workflow files", "", want))
		if def, _ := dsl.Link(m, nil); def != nil {
			t.Error("nothing became a definition")
		}
	}
	if _, diags := dsl.Parse(brokenDir{}, dsl.ParseOptions{}); !strings.Contains(diags.Err().Error(), "Cannot read the module: disk on fire.") {
		t.Errorf("a directory that cannot be read: %v", diags.Err())
	}
}

// brokenDir is a file system in which nothing can be read.
type brokenDir struct{}

func (brokenDir) Open(string) (fs.File, error) { return nil, fmt.Errorf("disk on fire") }

// TestValuesBesideModules: *.auto.vars.hcl files are read in order of name, and their
// order is that in which they count.
func TestValuesBesideModules(t *testing.T) {
	f := files{
		"main.hcl":        workflow("variable \"v\" { default = 1 }\nvariable \"w\" { default = 1 }\n" + step("a", "")),
		"b.auto.vars.hcl": "v = 20\n", "a.auto.vars.hcl": "v = 10\nw = 11\n", "c.auto.vars.hcl.json": `{"w": 31}`,
		"plain.vars.hcl": "v = 99\n", ".d.auto.vars.hcl": "v = 99\n", "e.auto.vars.hcl/x": "v = 99\n",
	}
	m, diags := dsl.Parse(f.fs(), dsl.ParseOptions{})
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	var got []string
	for _, a := range m.AutoVars() {
		got = append(got, a.Name+" "+a.Source)
	}
	want := "v a.auto.vars.hcl:1, w a.auto.vars.hcl:2, v b.auto.vars.hcl:1, w c.auto.vars.hcl.json:1"
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("values\n%s, want\n%s", text, want)
	}
	def, _ := dsl.Link(m, agents())
	v, diags := def.Workflow("w").Bind(m.AutoVars())
	wantValue(t, v, diags.Err(), `{"v":20,"w":31}`)

	f["bad.auto.vars.hcl"] = "v = var.x\n"
	_, diags = dsl.Parse(f.fs(), dsl.ParseOptions{})
	wantFindings(t, diags, fails("Reference not available here", "var.x", "A values file holds plain values; it cannot refer to anything."))
}

// TestSizesOfFiles: a file holds at most 1 MiB, a module 16 MiB in at most 1,000 files.
func TestSizesOfFiles(t *testing.T) {
	padded := func(text string, size int) []byte { return []byte(text + strings.Repeat(" ", size-len(text))) }
	src := `{"workflow": {"w": {"deadline": "1h", "step": {"a": {"action": "agent.echo.look"}}}}}`
	for size, want := range map[int]string{1 << 20: "", 1<<20 + 1: "A file may hold at most 1 MiB. Split it; all files of a directory form one module."} {
		m, diags := dsl.Parse(fstest.MapFS{"a.hcl.json": {Data: padded(src, size)}}, dsl.ParseOptions{})
		if want == "" {
			wantFindings(t, diags)
			continue
		}
		wantFindings(t, diags, fails("File too large", "", want))
		if text, known := m.Sources()["a.hcl.json"]; !known || text != nil {
			t.Errorf("of a file that is too large %d bytes are kept, known %t", len(text), known)
		}
	}
	many := fstest.MapFS{}
	for i := range 16 {
		many[fmt.Sprintf("f%02d.hcl.json", i)] = &fstest.MapFile{Data: padded("{}", 1<<20)}
	}
	many["f00.hcl.json"].Data = padded(src, 1<<20)
	if _, diags := dsl.Parse(many, dsl.ParseOptions{}); diags.HasErrors() {
		t.Errorf("16 MiB: %v", diags.Err())
	}
	many["g.hcl"] = &fstest.MapFile{Data: []byte("\n")}
	_, diags := dsl.Parse(many, dsl.ParseOptions{})
	if got := about(diags, "Module too large"); len(got) != 1 || got[0].Detail != "The files of a module may hold at most 16 MiB." {
		t.Errorf("16 MiB and a byte: %v", diags.Err())
	}
	many = fstest.MapFS{"a.hcl.json": {Data: []byte(src)}}
	for i := range 999 {
		many[fmt.Sprintf("f%d.hcl", i)] = &fstest.MapFile{Data: []byte("\n")}
	}
	if _, diags := dsl.Parse(many, dsl.ParseOptions{}); diags.HasErrors() {
		t.Errorf("1,000 files: %v", diags.Err())
	}
	many["z.hcl"] = &fstest.MapFile{Data: []byte("\n")}
	_, diags = dsl.Parse(many, dsl.ParseOptions{})
	wantFindings(t, diags, fails("Too many files", "", "A module may hold at most 1000 files."))
}

// TestSizesOfSource: nesting, long expressions and long numbers are refused before
// anything is parsed.
func TestSizesOfSource(t *testing.T) {
	rep := strings.Repeat
	for _, tt := range []struct{ name, expr, want string }{
		{"199 brackets", rep("[", 196) + rep("]", 196), ""},
		{"201 brackets", rep("[", 201) + rep("]", 201), "Nesting too deep"},
		{"parentheses", rep("(", 201) + "1" + rep(")", 201), "Nesting too deep"},
		{"objects", rep("{ a = ", 201) + "1" + rep("}", 201), "Nesting too deep"},
		{"templates", rep(`"${`, 101) + "1" + rep(`}"`, 101), "Nesting too deep"},
		{"negations", rep("!", 201) + "true", "Nesting too deep"},
		{"directives", `"` + rep("%{ if true }", 201) + rep("%{ endif }", 201) + `"`, "Nesting too deep"},
		{"directives one after the other", `"` + rep("%{ if true }a%{ endif }", 201) + `"`, ""},
		{"900 operators", "1" + rep(" + 1", 900), ""},
		{"1,001 operators", "1" + rep(" + 1", 1001), "Expression too long"},
		{"1,001 indices", "[1]" + rep("[0]", 1001), "Expression too long"},
		{"many elements", "[" + rep("1, ", 5000) + "1]", ""},
		{"many parts of a template", `"` + rep("${1}", 1500) + `"`, ""},
		{"1,000 digits", rep("9", 1000), ""},
		{"1,001 digits", rep("9", 1001), "Number too long"},
		{"2,001 digits", rep("9", 2001), "Number too long"},
		{"1,001 digits behind the point", "0." + rep("1", 1001), "Number too long"},
		{"a huge exponent", "1e1001", "Number too long"},
		{"a small exponent", "1e-1010", "Number too long"},
		{"exponents that fit", "[1e999, 1e-500]", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, diags := dsl.Parse(files{"a.hcl": "locals {\n  x = " + tt.expr + "\n}\n"}.fs(), dsl.ParseOptions{})
			if tt.want == "" {
				wantFindings(t, diags)
				return
			}
			if got := about(diags, tt.want); len(got) != 1 || len(diags) != 1 || got[0].Range.Start.Line != 2 {
				t.Errorf("%v, want %q in line 2", diags, tt.want)
			}
		})
	}
	many := "workflow \"w\" {\n deadline = \"1h\"\n" + step("a", "") + "}\nlocals {\n x = [" + rep("1,", 150_000) + "]\n}\n"
	_, diags := check(files{"a.hcl": many})
	if len(about(diags, "File too large")) != 1 {
		t.Errorf("more than 300,000 tokens: %v", diags.Err())
	}
}

// TestEncodingOfSource: files are UTF-8, with line breaks of either kind.
func TestEncodingOfSource(t *testing.T) {
	src := workflow("output \"o\" { value = \"grüße, 世界 🎉\" }\n" + step("a", ""))
	for name, text := range map[string]string{"line feeds": src, "carriage returns": strings.ReplaceAll(src, "\n", "\r\n")} {
		v, err := linked(t, files{"a.hcl": text}).Workflow("w").Outputs[0].Value(&dsl.Scope{})
		if err != nil || string(v.JSON()) != `"grüße, 世界 🎉"` {
			t.Errorf("%s: %s, %v", name, v.JSON(), err)
		}
	}
	for name, text := range map[string]string{"not UTF-8": "locals { x = \"\xff\" }\n", "a byte order mark inside": "locals { x = 1 \ufeff}\n", "a zero byte": "locals { x = \x00 }\n"} {
		if _, diags := check(files{"a.hcl": text}); !diags.HasErrors() {
			t.Errorf("%s is not refused", name)
		}
	}
}

// TestRequiredVersion: the engine's version is compared without what follows a hyphen.
func TestRequiredVersion(t *testing.T) {
	for _, tt := range []struct{ constraint, engine, want string }{
		{">= 0.3", "0.3.0", ""}, {">= 0.3", "0.3.0-dev", ""}, {"~> 0.3.0", "0.3.9", ""}, {">= 0.2, < 0.4", "0.3.0", ""}, {"0.3.0", "0.3.0", ""}, {"!= 0.3.1", "0.3.0", ""},
		{"~> 0.3.0", "0.4.0", "Unsupported engine version: This module needs engine ~> 0.3.0; this is 0.4.0."},
		{"< 0.3", "0.3.0-dev", "Unsupported engine version: This module needs engine < 0.3; this is 0.3.0-dev."},
		{"", "0.3.0", `Invalid version constraint: Write a constraint such as ">= 0.3" or "~> 1.2".`}, {"new", "0.3.0", "Invalid version constraint"}, {">= 1.2.x", "", "Invalid version constraint"},
		{">= 9", "", ""}, {">= 9", "devel", "warning: Engine version not checked: This engine calls itself \"devel\", which is not a version."},
	} {
		t.Run(tt.constraint+" and "+tt.engine, func(t *testing.T) {
			src := fmt.Sprintf("engine {\n  required_version = %q\n}\n%s", tt.constraint, workflow(step("a", "")))
			_, diags := checkWith(files{"a.hcl": src}, dsl.ParseOptions{EngineVersion: tt.engine}, agents())
			if tt.want == "" {
				wantFindings(t, diags)
				return
			}
			if len(diags) != 1 || !strings.Contains(diags[0].Severity.String()+": "+diags[0].Summary+": "+diags[0].Detail, tt.want) || marked(diags[0]) != fmt.Sprintf("%q", tt.constraint) {
				t.Errorf("%v, want %q", diags, tt.want)
			}
		})
	}
	if _, diags := check(files{"a.hcl": "engine {\n required_version = 3\n}\nengine {\n required_version = \">= 9\"\n}\n" + workflow(step("a", ""))}); len(diags) != 2 {
		t.Errorf("two engine blocks: %v", diags)
	}
}

// TestFilesAndVariablesOfTheSystem: file() and env() are read once, when the definition is
// loaded, and are part of it.
func TestFilesAndVariablesOfTheSystem(t *testing.T) {
	asked := map[string]int{}
	env := func(name string) (string, bool) {
		asked[name]++
		return environment(name)
	}
	body := workflow("locals { two = [env(\"REGION\"), env(\"REGION\")] }\n" + step("a", "") +
		"output \"text\" { value = file(\"notes/a.txt\") }\noutput \"same\" { value = file(\"./notes/../notes/a.txt\") }\noutput \"env\" { value = [local.two, env(\"EMPTY\"), env(\"NOT_SET\")] }\n")
	def, diags := checkWith(files{"main.hcl": body, "notes/a.txt": "grüße\n"}, dsl.ParseOptions{Env: env}, agents())
	if def == nil {
		t.Fatal(diags.Err())
	}
	if asked["REGION"] != 1 || asked["NOT_SET"] != 1 {
		t.Errorf("the environment was asked %v times", asked)
	}
	for i, want := range []string{`"grüße\n"`, `"grüße\n"`, `[["eu","eu"],"",null]`} {
		v, err := def.Workflow("w").Outputs[i].Value(&dsl.Scope{})
		wantValue(t, v, err, want)
	}
	if _, diags = checkWith(files{"main.hcl": body, "notes/a.txt": "x"}, dsl.ParseOptions{}, agents()); diags.HasErrors() {
		t.Errorf("without an environment: %v", diags.Err())
	}
	checkRules(t, []rule{
		{"a file that is missing", "output \"o\" { value = file(\"nope.txt\") }\n" + step("a", ""), finds(
			fails("Cannot read file", `file("nope.txt")`, "file does not exist."))},
		{"a file outside of the module", "output \"o\" { value = [file(\"../x\"), file(\"/etc/x\"), file(\"\"), file(\"a\\\\b\")] }\n" + step("a", ""), finds(
			fails("Cannot read file", `file("../x")`, "the path must be relative and stay inside the module's directory"),
			fails("Cannot read file", `file("/etc/x")`, "the path must be relative and stay inside the module's directory"),
			fails("Cannot read file", `file("")`, "the path must be relative and stay inside the module's directory"),
			fails("Cannot read file", `file("a\\b")`, "the path must be relative and stay inside the module's directory"))},
		{"a directory", "output \"o\" { value = file(\".\") }\n" + step("a", ""), finds(
			fails("Cannot read file", `file(".")`, ". is not a regular file"))},
		{"a name that is computed", "variable \"n\" { default = \"x\" }\noutput \"o\" { value = [file(var.n), env(upper(\"x\")), env(1), file(\"a\", \"b\")] }\n" + step("a", ""), finds(
			fails("Not a literal argument", "file(var.n)", "file() is read once, when the definition is loaded, so its argument must be a plain string."),
			fails("Not a literal argument", `env(upper("x"))`, "env() is read once"),
			fails("Not a literal argument", "env(1)", "env() is read once"),
			fails("Not a literal argument", `file("a", "b")`, "file() is read once"))},
		{"variables of the engine", "output \"o\" { value = [env(\"ENGINE_DSN\"), env(\"engine_x\"), env(\"PGPASSWORD\"), env(\"pg\"), env(\"ENGINES\"), env(\"XPG\")] }\n" + step("a", ""), finds(
			fails("Reserved variable", `env("ENGINE_DSN")`, secret.ReservedEnvRule), fails("Reserved variable", `env("engine_x")`, secret.ReservedEnvRule),
			fails("Reserved variable", `env("PGPASSWORD")`, secret.ReservedEnvRule), fails("Reserved variable", `env("pg")`, secret.ReservedEnvRule))},
	})
	f := files{"main.hcl": workflow("output \"o\" { value = [file(\".engine/key\"), file(\"a/.ENGINE/key\"), file(\".engines\")] }\n" + step("a", "")), ".engine/key": "x", "a/.ENGINE/key": "x", ".engines": "x"}
	_, diags = check(f)
	wantFindings(t, diags,
		fails("Cannot read file", `file(".engine/key")`, "the directory .engine holds the engine's state and key, which workflows do not get"),
		fails("Cannot read file", `file("a/.ENGINE/key")`, "the directory .engine holds the engine's state and key"))
	f = files{"main.hcl": workflow("output \"o\" { value = [file(\"latin\"), file(\"big\")] }\n" + step("a", "")), "latin": "gr\xfc\xdfe", "big": strings.Repeat("x", 1<<20+1)}
	_, diags = check(f)
	wantFindings(t, diags, fails("Cannot read file", `file("latin")`, "the file is not valid UTF-8 text"), fails("Cannot read file", `file("big")`, "larger than 1 MiB"))
	f["latin"], f["big"] = "", strings.Repeat("x", 1<<20)
	if _, diags = check(f); diags.HasErrors() {
		t.Errorf("a file of 1 MiB: %v", diags.Err())
	}
}

// TestMistakesOfAllFiles: the mistakes of every file are reported at once, in order of
// file and place, each with its file, its line and the blocks around it.
func TestMistakesOfAllFiles(t *testing.T) {
	_, diags := check(files{
		"b.hcl": workflow(step("a", "timeout = 1\ndeadline = 2")), "a.hcl": "variable \"v\" {\n  default = nope\n}\n",
		"c.hcl.json": `{"workflow": {"x": {"deadline": 5}}}`,
	})
	var got []string
	for _, d := range diags {
		got = append(got, d.Range.String()+" "+d.Summary+" "+d.Context)
	}
	want := []string{
		`a.hcl:2 Reference not available here in variable "v"`,
		`b.hcl:6 Invalid value for timeout in workflow "w", step "a"`,
		`b.hcl:7 Invalid value for deadline in workflow "w", step "a"`,
		`c.hcl.json:1 No step changes anything `, `c.hcl.json:1 Invalid value for deadline `,
	}
	slices.Sort(got[3:])
	slices.Sort(want[3:])
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestBrokenFileHidesNames: where a file cannot be parsed its names are missing, so that
// names of other files are not called unknown.
func TestBrokenFileHidesNames(t *testing.T) {
	f := files{"a.hcl": "variable \"v\" { default = 1 \n", "b.hcl": workflow(step("a", "input { value = var.v }\ntimeoutt = 1"))}
	m, diags := dsl.Parse(f.fs(), dsl.ParseOptions{})
	if len(about(diags, "Unsupported argument")) != 1 || len(about(diags, "Reference to undeclared variable")) != 0 || len(diags) != 2 {
		t.Errorf("findings %v", diags)
	}
	if def, more := dsl.Link(m, agents()); def != nil || len(more) != 0 {
		t.Errorf("linked to %v, with %v", def, more)
	}
}
