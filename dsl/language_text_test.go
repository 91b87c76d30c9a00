package dsl_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/lock"
	"github.com/saga-engine/engine/dsl/secret"
)

// TestLayout: the canonical layout of a file. Comments stay where they are, and nothing
// that has a meaning changes.
func TestLayout(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"blanks", "a   =   1\n\n\n\nb= 2\n", "a = 1\n\n\n\nb = 2\n"},
		{"equal signs of neighbours", "a = 1\nlonger = 2\n\nb = 3\n", "a      = 1\nlonger = 2\n\nb = 3\n"},
		{"indentation", "a {\n      b {\n c = 1\n}\n   }\n", "a {\n  b {\n    c = 1\n  }\n}\n"},
		{"a tab", "a {\n\tb = 1\n}\n", "a {\n  b = 1\n}\n"},
		{"comments of all kinds", "# one\n// two\n/* three */\na = 1 # four\nb = 2 // five\n", "# one\n// two\n/* three */\na = 1 # four\nb = 2 // five\n"},
		{"comments inside", "a = [\n  1, # one\n # two\n  2,\n]\n", "a = [\n  1, # one\n  # two\n  2,\n]\n"},
		{"operators", "a=1+2*-3\nb=!c&&d||e\nf=g?h:i\n", "a = 1 + 2 * -3\nb = !c && d || e\nf = g ? h : i\n"},
		{"calls and indices", "a = f( 1,2 )[ 0 ].b\n", "a = f(1, 2)[0].b\n"},
		{"objects", "a = {b=1,c=2}\n", "a = { b = 1, c = 2 }\n"},
		{"loops", "a = [for x in y:x if x>1]\nb = {for k,v in m:k=>v...}\n", "a = [for x in y : x if x > 1]\nb = { for k, v in m : k => v... }\n"},
		{"a needless template", "a = \"${b}\"\nc {\n  d = \"${e.f[0]}\"\n}\n", "a = b\nc {\n  d = e.f[0]\n}\n"},
		{"a template that is needed", "a = \"${b}c\"\nd = \"${e}${f}\"\n", "a = \"${b}c\"\nd = \"${e}${f}\"\n"},
		{"a template with a comment", "a = \"${/* why */ b}\"\n", "a = \"${/* why */ b}\"\n"},
		{"a template inside of an expression", "a = [\"${b}\"]\n", "a = [\"${b}\"]\n"},
		{"a heredoc", "a = <<EOT\n  x\n    ${ y }\nEOT\nb   = 1\n", "a = <<EOT\n  x\n    ${y}\nEOT\nb = 1\n"},
		{"strings", "a = \"x  y   ${ z }\"\n", "a = \"x  y   ${z}\"\n"},
		{"no line break at the end", "a = 1", "a = 1\n"}, {"many line breaks at the end", "a = 1\n\n\n", "a = 1\n"}, {"nothing", "", ""}, {"only blanks", " \n\t\n", ""}, {"only a comment", "# x", "# x\n"},
		{"line breaks of the other kind", "a {\r\nb=1\r\n}\r\n", "a {\r\n  b = 1\r\n}\r\n"},
		{"numbers stay as they are", "a = 1.50\nb = 1e3\nc = 0001\n", "a = 1.50\nb = 1e3\nc = 0001\n"},
		{"letters of all kinds", "a=\"grüße 世界\" # 🎉\n", "a = \"grüße 世界\" # 🎉\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, diags := dsl.Format([]byte(tt.in), "x.hcl")
			if string(got) != tt.want || diags.HasErrors() {
				t.Errorf("got  %q, %v\nwant %q", got, diags.Err(), tt.want)
			}
			again, _ := dsl.Format(got, "x.hcl")
			if !bytes.Equal(again, got) {
				t.Errorf("the second time %q, the first time %q", again, got)
			}
		})
	}
}

// TestLayoutOfModules: a file that is laid out means what it meant, and its layout does
// not change any more.
func TestLayoutOfModules(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for _, tt := range twins() {
		want := describeWorkflow(t, linked(t, files{"main.hcl": tt.hcl}).Workflow("w"))
		for range 5 {
			var spoiled strings.Builder // other blanks, same meaning
			for line := range strings.Lines(tt.hcl) {
				spoiled.WriteString(strings.Repeat(" ", r.IntN(9)))
				line = strings.TrimLeft(line, " ")
				if name, value, ok := strings.Cut(line, " = "); ok && !strings.ContainsAny(name, "\"{[(") {
					line = strings.TrimRight(name, " ") + strings.Repeat(" ", r.IntN(5)) + "=" + strings.Repeat(" ", r.IntN(5)) + value
				}
				spoiled.WriteString(line)
			}
			out, diags := dsl.Format([]byte(spoiled.String()), "main.hcl")
			if diags.HasErrors() {
				t.Fatal(diags.Err())
			}
			again, _ := dsl.Format(out, "main.hcl")
			if !bytes.Equal(again, out) {
				t.Error("the layout changes the second time")
			}
			wantSameText(t, string(out), layoutOf(t, tt.hcl))
			wantSameText(t, describeWorkflow(t, linked(t, files{"main.hcl": string(out)}).Workflow("w")), want)
		}
		out, diags := dsl.Format([]byte(tt.json), "main.hcl.json")
		if diags.HasErrors() || !json.Valid(out) {
			t.Fatalf("%v", diags.Err())
		}
		wantSameText(t, describeWorkflow(t, linked(t, files{"main.hcl.json": string(out)}).Workflow("w")), want)
	}
}

func layoutOf(t *testing.T, src string) string {
	t.Helper()
	out, diags := dsl.Format([]byte(src), "main.hcl")
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	return string(out)
}

// TestLayoutOfJSON: JSON is indented by two blanks. Its texts and numbers stay as they are.
func TestLayoutOfJSON(t *testing.T) {
	for in, want := range map[string]string{
		`{"b":1,"a":[1.50,"<&>\u00fc"]}`: "{\n  \"b\": 1,\n  \"a\": [\n    1.50,\n    \"<&>\\u00fc\"\n  ]\n}\n", "{}": "{}\n", "  {}  \n\n": "{}\n", "{\n\n\"a\":\n1}": "{\n  \"a\": 1\n}\n", "{\r\n\"a\":1}": "{\r\n  \"a\": 1\r\n}\r\n",
	} {
		got, diags := dsl.Format([]byte(in), "x.hcl.json")
		if string(got) != want || diags.HasErrors() {
			t.Errorf("%q: %q, %v; want %q", in, got, diags.Err(), want)
		}
		again, _ := dsl.Format(got, "x.hcl.json")
		if !bytes.Equal(again, got) {
			t.Errorf("the second time %q", again)
		}
	}
}

// TestLayoutOfBrokenFiles: what cannot be read comes back as it is, with the reason.
func TestLayoutOfBrokenFiles(t *testing.T) {
	for name, src := range map[string]string{"a.hcl": "a  =\n", "b.hcl": "a {\n", "c.hcl": "a  = 1\na  = \"${\"\n", "d.hcl": strings.Repeat("[", 300), "e.hcl.json": "{ \"a\": }", "f.hcl.json": "[1,", "g.hcl.json": strings.Repeat("[", 300), "h.hcl": "a = 1" + strings.Repeat(" ", 1<<20)} {
		got, diags := dsl.Format([]byte(src), name)
		if string(got) != src || !diags.HasErrors() {
			t.Errorf("%s: %.40q, %v", name, got, diags)
		}
	}
}

// TestLockFiles: a lock that is written reads back as it was, agents by name.
func TestLockFiles(t *testing.T) {
	sum := func(digit string) string { return strings.Repeat(digit, 64) }
	l := lock.Lock{Agents: []lock.Agent{
		{Name: "stripe", Version: "1.2.3", Constraint: "~> 1.2, != 1.2.1", Hashes: map[string]string{"linux_amd64": sum("a"), "darwin_arm64": sum("0"), "windows_386": sum("f")}},
		{Name: "http", Version: "0.1.0-rc.1+build", Hashes: map[string]string{}}, {Name: "a-b_c9", Version: `odd "${x} %{y}`, Hashes: map[string]string{"linux_arm64": sum("9")}},
	}}
	text := lock.Format(l)
	back, diags := lock.Read(text, lock.File)
	if diags.HasErrors() {
		t.Fatalf("%v\n%s", diags.Err(), text)
	}
	var names []string
	for _, a := range back.Agents {
		names = append(names, a.Name)
		want, _ := l.Agent(a.Name)
		if !reflect.DeepEqual(a, want) {
			t.Errorf("%+v, want %+v", a, want)
		}
	}
	if !slices.Equal(names, []string{"a-b_c9", "http", "stripe"}) || !bytes.Equal(lock.Format(back), text) || l.Agents[0].Name != "stripe" {
		t.Errorf("agents %q", names)
	}
	formatted, diags := dsl.Format(text, "x.hcl")
	if diags.HasErrors() || !bytes.Equal(formatted, text) {
		t.Errorf("a lock file is not in the canonical layout: %v\n%s", diags.Err(), text)
	}
	if _, ok := back.Agent("nope"); ok {
		t.Error("a lock knows an agent that it does not hold")
	}
	if empty, diags := lock.Read(lock.Format(lock.Lock{}), lock.File); diags.HasErrors() || len(empty.Agents) != 0 {
		t.Errorf("an empty lock: %v, %v", empty, diags)
	}
}

// TestMistakesInLockFiles: a lock that is half understood protects nothing.
func TestMistakesInLockFiles(t *testing.T) {
	hash := `"linux_amd64:sha256:` + strings.Repeat("a", 64) + `"`
	agent := func(name, body string) string { return "agent \"" + name + "\" {\n" + body + "\n}\n" }
	for _, tt := range []struct{ name, src, want string }{
		{"a name with capitals", agent("Http", "version = \"1\"\nhashes = []"), `"Http" cannot be the name of an agent`}, {"a name of 64 letters", agent(strings.Repeat("a", 64), "version = \"1\"\nhashes = []"), "cannot be the name"}, {"a path", agent("../a", "version = \"1\"\nhashes = []"), "cannot be the name"},
		{"no name", "agent {\n version = \"1\"\n hashes = []\n}\n", "Missing name for agent"}, {"twice", agent("a", "version = \"1\"\nhashes = []") + agent("a", "version = \"2\"\nhashes = []"), `Agent "a" is locked twice`}, {"no version", agent("a", "hashes = []"), `The argument "version" is required`},
		{"an empty version", agent("a", "version = \"\"\nhashes = []"), `Agent "a" is locked to no version`}, {"no hashes", agent("a", "version = \"1\""), `The argument "hashes" is required`}, {"a version that is a list", agent("a", "version = [\"1\"]\nhashes = []"), "string required"},
		{"another hash", agent("a", "version = \"1\"\nhashes = [\"linux_amd64:sha512:"+strings.Repeat("a", 64)+"\"]"), "is not a hash such as linux_amd64:sha256:…"}, {"a short hash", agent("a", "version = \"1\"\nhashes = [\"linux_amd64:sha256:"+strings.Repeat("a", 62)+"\"]"), "is not a hash"},
		{"letters that are no digits", agent("a", "version = \"1\"\nhashes = [\"linux_amd64:sha256:"+strings.Repeat("g", 64)+"\"]"), "is not a hash"}, {"no platform", agent("a", "version = \"1\"\nhashes = [\"sha256:"+strings.Repeat("a", 64)+"\"]"), "is not a hash"}, {"a platform that is none", agent("a", "version = \"1\"\nhashes = [\"Linux:sha256:"+strings.Repeat("a", 64)+"\"]"), "is not a hash"},
		{"two hashes of a platform", agent("a", "version = \"1\"\nhashes = ["+hash+", "+hash+"]"), `Agent "a" has two hashes for linux_amd64`}, {"an unknown argument", agent("a", "version = \"1\"\nhashes = []\nsize = 1"), "Unsupported argument"}, {"an unknown block", "plugin \"a\" {}\n", "Unsupported block type"},
		{"a reference", agent("a", "version = x\nhashes = []"), "Variables not allowed"}, {"something that computes", agent("a", "version = \"${1}\"\nhashes = []"), "This file holds plain values; it cannot compute any."}, {"a template", agent("a", "version = \"a${\"b\"}\"\nhashes = []"), "it cannot compute any"}, {"an operation", agent("a", "version = 1 + 1\nhashes = []"), "it cannot compute any"},
		{"a condition", agent("a", "version = true ? \"1\" : \"2\"\nhashes = []"), "it cannot compute any"}, {"a loop", agent("a", "version = \"1\"\nhashes = [for x in [] : x]"), "it cannot compute any"}, {"not HCL", "agent \"a\" {", "Unclosed configuration block"}, {"nested too deep", "x = " + strings.Repeat("(", 300), "Nesting too deep"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, diags := lock.Read([]byte(tt.src), "lock.hcl")
			if err := diags.Err(); err == nil || !strings.Contains(err.Error(), tt.want) || len(l.Agents) != 0 || diags[0].Range.File != "lock.hcl" {
				t.Errorf("%+v, %v; want %q", l, diags, tt.want)
			}
		})
	}
	l, diags := lock.Read([]byte(agent("z", "version = \"1\"\nhashes = ["+strings.ToUpper(hash[:21])+hash[21:]+"]")), "lock.hcl")
	if !diags.HasErrors() {
		t.Errorf("a platform in capitals: %+v", l)
	}
	l, diags = lock.Read([]byte(agent("z", "version = \"1\"\nhashes = []")+agent(strings.Repeat("a", 63), "version = \"1\"\nhashes = []")), "lock.hcl")
	if diags.HasErrors() || len(l.Agents) != 2 || l.Agents[1].Name != "z" {
		t.Errorf("%+v, %v", l, diags.Err())
	}
}

// TestUserConfigs: the file in which a user names binaries of their own.
func TestUserConfigs(t *testing.T) {
	conf, diags := lock.ReadUserConfig([]byte("dev_overrides {\n  http = \"/bin/a\"\n  my-agent = \"rel\"\n}\ndev_overrides {\n  sql = \"x\"\n}\n"), "config.hcl")
	if want := map[string]string{"http": "/bin/a", "my-agent": "rel", "sql": "x"}; diags.HasErrors() || !reflect.DeepEqual(conf.DevOverrides, want) {
		t.Errorf("%v, %v", conf.DevOverrides, diags.Err())
	}
	if conf, diags := lock.ReadUserConfig(nil, "config.hcl"); diags.HasErrors() || conf.DevOverrides == nil || len(conf.DevOverrides) != 0 {
		t.Errorf("an empty file: %v, %v", conf, diags)
	}
	for src, want := range map[string]string{
		"dev_overrides { http = null }": "must be the path of a binary", "dev_overrides { http = [\"x\"] }": "must be the path", "dev_overrides { http = true }": "must be the path", "dev_overrides { Http = \"x\" }": `"Http" cannot be the name of an agent`,
		"dev_overrides { http = upper(\"x\") }": "Function calls not allowed", "dev_overrides { http = \"${1}\" }": "it cannot compute any", "dev_overrides {\n http {\n }\n}": "Unexpected \"http\" block", "http = \"x\"": "Unsupported argument", "dev_overrides \"x\" {}": "Extraneous label",
	} {
		conf, diags := lock.ReadUserConfig([]byte(src), "config.hcl")
		if err := diags.Err(); err == nil || !strings.Contains(err.Error(), want) || conf.DevOverrides != nil {
			t.Errorf("%s: %v, %v; want %q", src, conf, err, want)
		}
	}
}

// TestRedaction: sensitive texts are replaced as they are, as JSON writes them and as Go
// quotes them. The longest come first, so that nothing of a longer one is left.
func TestRedaction(t *testing.T) {
	for _, tt := range []struct {
		name      string
		sensitive []string
		in, want  string
	}{
		{"nothing sensitive", nil, "hunter2", "hunter2"}, {"nothing to find", []string{"hunter2"}, "hunter3", "hunter3"}, {"an empty text", []string{"hunter2"}, "", ""},
		{"twice", []string{"hunter2"}, "hunter2,hunter2", "(sensitive),(sensitive)"}, {"inside of a word", []string{"hunter2"}, "xhunter2y", "x(sensitive)y"}, {"four bytes", []string{"abcd"}, "xabcdx", "x(sensitive)x"}, {"three bytes", []string{"abc"}, "abc", "abc"}, {"two letters of four bytes", []string{"éé"}, "éé", "(sensitive)"},
		{"one contains the other", []string{"abcd", "abcdefgh"}, "abcdefgh abcd", "(sensitive) (sensitive)"}, {"one contains the other at its end", []string{"efgh", "abcdefgh"}, "abcdefgh efgh", "(sensitive) (sensitive)"}, {"one contains the other inside", []string{"cdef", "abcdefgh"}, "abcdefgh", "(sensitive)"},
		{"one ends as the other begins", []string{"abcdef", "efghij"}, "abcdefghij", "(sensitive)ghij"}, {"line breaks as JSON", []string{"ab\ncd"}, `{"x":"ab\ncd"}`, `{"x":"(sensitive)"}`}, {"line breaks as they are", []string{"ab\ncd"}, "ab\ncd", "(sensitive)"},
		{"signs of HTML as JSON", []string{"a<b&c>"}, `"a\u003cb\u0026c\u003e"`, `"(sensitive)"`}, {"quotes as Go writes them", []string{"ab\"cd"}, fmt.Sprintf("%q", "ab\"cd"), `"(sensitive)"`}, {"a zero byte as Go writes it", []string{"ab\x00cd"}, fmt.Sprintf("%q", "ab\x00cd"), `"(sensitive)"`},
		{"cut at the end", []string{"hunter2secret"}, "it is hunter2", "it is (sensitive)"}, {"cut to three bytes", []string{"hunter2secret"}, "it is hun", "it is hun"}, {"cut to four bytes", []string{"hunter2secret"}, "it is hunt", "it is (sensitive)"}, {"cut with a mark", []string{"hunter2secret"}, "hunter2s… and more", "(sensitive)… and more"},
		{"cut in a quoted text", []string{"hunter2secret"}, `"hunter2s"`, `"(sensitive)"`}, {"cut inside of a letter", []string{"geheimä"}, "geheim\ufffd", "(sensitive)\ufffd"}, {"begun, and not cut", []string{"hunter2secret"}, "hunter2 or so", "hunter2 or so"}, {"the longest end of several", []string{"abcdefgh", "efghijkl"}, "abcdefgh abcdefg efgh", "(sensitive) abcdefg (sensitive)"},
	} {
		if got := secret.Redactor(tt.sensitive)(tt.in); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	sensitive := []string{"short", "a much longer one"}
	redact := secret.Redactor(sensitive)
	sensitive[0] = "changed"
	if got := redact("short changed"); got != "(sensitive) changed" {
		t.Errorf("a list that was changed afterwards: %q", got)
	}
}

// TestRedactionOfChunks: wherever a text is cut into two parts, no part shows four bytes
// or more of the beginning of a secret.
func TestRedactionOfChunks(t *testing.T) {
	const hidden = "tr0ub4dor&3"
	redact := secret.Redactor([]string{hidden})
	whole := "the password is " + hidden + " and that is all"
	for i := range len(whole) {
		head := redact(whole[:i])
		for n := 4; n <= len(hidden); n++ {
			if strings.Contains(head, hidden[:n]) {
				t.Errorf("cut after %d bytes it shows %q: %q", i, hidden[:n], head)
			}
		}
		if !strings.HasPrefix(head, whole[:min(i, 16)]) {
			t.Errorf("cut after %d bytes it loses what is not sensitive: %q", i, head)
		}
	}
}

// TestNearestNames: the suggestion for a name is the one with the fewest letters to
// change, at most three; for a short name fewer.
func TestNearestNames(t *testing.T) {
	for _, tt := range []struct {
		name       string
		candidates []string
		want       string
	}{
		{"regoin", []string{"region", "regions"}, "region"}, {"timeot", []string{"timeout", "deadline"}, "timeout"}, {"region", []string{"region"}, ""}, {"region", []string{"region", "regions"}, "regions"}, {"bananas", []string{"region"}, ""}, {"x", []string{"a", "b"}, ""}, {"ab", []string{"ac", "xy"}, "ac"},
		{"abc", []string{"xyz"}, ""}, {"abcd", []string{"abxyz"}, "abxyz"}, {"abcd", []string{"wxyz"}, ""}, {"key", []string{"api_key", "region"}, "api_key"}, {"cool", []string{"cool_down_for_long"}, "cool_down_for_long"}, {"id", []string{"customer_id"}, ""}, {"bat", []string{"cat", "hat"}, "cat"}, {"", []string{"a"}, ""}, {"a", nil, ""},
	} {
		if got := diag.Nearest(tt.name, tt.candidates); got != tt.want {
			t.Errorf("%q among %q: %q, want %q", tt.name, tt.candidates, got, tt.want)
		}
		hint := ""
		if tt.want != "" {
			hint = fmt.Sprintf(" Did you mean %q?", tt.want)
		}
		if got := diag.DidYouMean(tt.name, tt.candidates); got != hint {
			t.Errorf("%q among %q: %q, want %q", tt.name, tt.candidates, got, hint)
		}
	}
}

// TestListsOfFindings: findings are sorted by file and place, each once.
func TestListsOfFindings(t *testing.T) {
	at := func(file string, pos int, s diag.Severity, summary string) diag.Diagnostic {
		return diag.Diagnostic{Severity: s, Summary: summary, Range: diag.Range{File: file, Start: diag.Pos{Line: pos, Byte: pos}}}
	}
	list := diag.Diagnostics{
		at("b", 1, diag.SeverityError, "x"), at("a", 9, diag.SeverityWarning, "y"), at("a", 2, diag.SeverityInfo, "z"), at("a", 2, diag.SeverityError, "z"), at("a", 9, diag.SeverityWarning, "y"), at("a", 9, diag.SeverityWarning, "w"), {Severity: diag.SeverityError, Summary: "nowhere"},
	}
	var got []string
	for _, d := range list.Sorted() {
		got = append(got, fmt.Sprint(d.Range, " ", d.Severity, " ", d.Summary))
	}
	if want := []string{" error nowhere", "a:2 error z", "a:9 warning w", "a:9 warning y", "b:1 error x"}; !slices.Equal(got, want) {
		t.Errorf("sorted\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(list.Errors()) != 3 || len(list.Warnings()) != 3 || !list.HasErrors() || diag.Diagnostics(list.Warnings()).HasErrors() || list.Warnings().Err() != nil {
		t.Errorf("errors %v, warnings %v", list.Errors(), list.Warnings())
	}
	err := list.Err()
	var asList *diag.DiagnosticsError
	if !errors.As(err, &asList) || len(asList.Diagnostics) != 3 || err.Error() != "b:1: x\na:2: z\nnowhere" {
		t.Errorf("error %v", err)
	}
	one := diag.Diagnostic{Severity: diag.SeverityError, Summary: "S", Detail: "one\ntwo", Range: diag.Range{File: "f", Start: diag.Pos{Line: 3}}}
	if got := one.Error(); got != "f:3: S: one two" {
		t.Errorf("one line: %q", got)
	}
	for s, want := range map[diag.Severity]string{diag.SeverityError: "error", diag.SeverityWarning: "warning", diag.SeverityInfo: "info", diag.SeverityInvalid: "invalid"} {
		if s.String() != want {
			t.Errorf("severity %d is %q", s, s)
		}
	}
}

// TestFindingsForPeople: how a finding is shown: its place, its line, what the expression
// saw, and its detail.
func TestFindingsForPeople(t *testing.T) {
	show := func(f files, o diag.RenderOptions) string {
		_, diags := check(f)
		var b bytes.Buffer
		if err := diag.Render(&b, diags.Errors(), o); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	src := files{"main.hcl": workflow("locals { n = { a = 5, b = [1, 2], c = \"" + strings.Repeat("x", 70) + "\", d = null, e = true } }\n" + step("s", "input { value = [local.n.a, local.n.b, local.n.c, local.n.d, local.n.e, sensitive(local.n.a)] == local.n.b[7] }"))}
	want := `Error: Invalid index
  on main.hcl line 7, in workflow "w", step "s":
   7: ` + "input { value = [local.n.a, local.n.b, local.n.c, local.n.d, local.n.e, sensitive(local.n.a)] == local.n.b[7] }"
	if got := show(src, diag.RenderOptions{}); !strings.HasPrefix(got, want) || !strings.Contains(got, "The given key does not identify an element in this collection value") {
		t.Errorf("got\n%s", got)
	}
	both := show(files{"main.hcl": workflow(step("s", "timeout = 5") + step("t", "timeout = 6"))}, diag.RenderOptions{})
	if strings.Count(both, "Error: Invalid value for timeout") != 2 || !strings.Contains(both, "\n\nError: ") {
		t.Errorf("two findings\n%s", both)
	}
	long := show(files{"main.hcl": workflow(step("s", "input { value = [\""+strings.Repeat("a", 300)+"\", bananas, \""+strings.Repeat("b", 300)+"\"] }"))}, diag.RenderOptions{})
	for line := range strings.Lines(long) {
		if len(line) > 240 {
			t.Errorf("a line of %d bytes: %s", len(line), line)
		}
	}
	if !strings.Contains(long, "...") || !strings.Contains(long, "bananas, \"bbb") {
		t.Errorf("a long line\n%s", long)
	}
	narrow := show(files{"main.hcl": workflow(step("s", "timeout = 5"))}, diag.RenderOptions{Width: 20})
	if !strings.Contains(narrow, "\ntimeout: a duration\nis a string such as\n") {
		t.Errorf("wrapped\n%s", narrow)
	}
	failing := errors.New("pipe closed")
	if err := diag.Render(brokenWriter{failing}, diag.Diagnostics{{Summary: "x"}}, diag.RenderOptions{}); !errors.Is(err, failing) {
		t.Errorf("error %v", err)
	}
}

type brokenWriter struct{ err error }

func (w brokenWriter) Write([]byte) (int, error) { return 0, w.err }

// TestValuesInFindings: a finding says what the references of an expression were, as far
// as they are known and not sensitive.
func TestValuesInFindings(t *testing.T) {
	wf := linkedWorkflow(t, `
variable "v" {
  type    = any
  default = null
  validation {
    condition     = var.v == "never" || var.v == [for x in [1] : x] || var.s == "never"
    error_message = "no"
  }
}
variable "s" {
  default   = "shut"
  sensitive = true
}
`+step("a", ""))
	for value, want := range map[string]string{
		`"x"`: `var.v is "x"`, "5": "var.v is 5", "2.50": "var.v is 2.5", "true": "var.v is true", "null": "var.v is null", "[1, 2]": "var.v is tuple with 2 elements", "{ a = 1 }": "var.v is object with 1 elements",
		`"` + strings.Repeat("é", 40) + `"`: `var.v is "` + strings.Repeat("é", 28) + `..."`, `"` + strings.Repeat("x", 60) + `"`: `var.v is "` + strings.Repeat("x", 60) + `"`,
	} {
		_, diags := wf.Bind(given("v", value))
		if len(diags) != 1 || diags[0].Snippet == nil {
			t.Errorf("%s: %v", value, diags)
			continue
		}
		var got []string
		for _, v := range diags[0].Snippet.Values {
			got = append(got, v.Traversal+" "+v.Statement)
		}
		if text := strings.Join(got, ", "); text != "var.s has a sensitive value, "+want {
			t.Errorf("%s: %s, want %s", value, text, want)
		}
	}
}
