package dsl_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/dsl/diag"
)

func TestDurationFunctions(t *testing.T) {
	const noSpan = `error: Invalid value for "duration" parameter: a duration such as "90s", "36h" or "-2d" is required`
	checkFunctions(t, [][2]string{
		{`timeadd("2030-01-31T18:00:00Z", "2d")`, `"2030-02-02T18:00:00Z"`}, {`timeadd("2030-01-31T18:00:00Z", "-1d")`, `"2030-01-30T18:00:00Z"`}, {`timeadd("2030-01-31T18:00:00Z", "1d12h")`, `"2030-02-02T06:00:00Z"`},
		{`timeadd("2030-01-31T18:00:00+02:00", "1d")`, `"2030-02-01T18:00:00+02:00"`}, {`timeadd("2030-01-31T18:00:00Z", "0s")`, `"2030-01-31T18:00:00Z"`}, {`timeadd("2030-01-31T18:00:00Z", "36501d")`, `"2130-01-08T18:00:00Z"`},
		{`timeadd("2030-01-31T18:00:00Z", "later")`, noSpan}, {`timeadd("2030-01-31T18:00:00Z", "2w")`, noSpan}, {`timeadd("2030-01-31T18:00:00Z", "200000d")`, "error: a duration is at most 292 years"},
		{`timediff("2030-01-31T18:00:00Z", "2030-01-31T17:59:00Z")`, "60"}, {`timediff("2030-01-31T17:59:00Z", "2030-01-31T18:00:00Z")`, "-60"}, {`timediff("2030-01-31T18:00:00Z", "2030-01-31T18:00:00Z")`, "0"},
		{`timediff("2030-01-31T18:00:00.25Z", "2030-01-31T18:00:01Z")`, "-0.75"}, {`timediff("2030-01-31T18:00:01Z", "2030-01-31T18:00:00.25Z")`, "0.75"}, {`timediff("2030-01-31T18:00:00.000000001Z", "2030-01-31T18:00:00Z")`, "0.000000001"},
		{`timediff("2030-01-31T18:00:00Z", "2030-01-31T18:00:00+01:00")`, "3600"}, {`timediff("9999-01-01T00:00:00Z", "0001-01-01T00:00:00Z")`, "315506361600"}, {`timediff("2030-01-31T18:00:02.5Z", "2030-01-31T18:00:00.75Z")`, "1.75"}, {`timediff("2030-01-31T18:00:00.75Z", "2030-01-31T18:00:02.5Z")`, "-1.75"},
		{`timediff("soon", "2030-01-31T18:00:00Z")`, `error: Invalid value for "a" parameter: a point in time as in RFC 3339 is required, such as "2030-01-31T18:00:00Z"`}, {`timediff("2030-01-31T18:00:00Z", "2030-01-31")`, `error: Invalid value for "b" parameter`},
		{`durationseconds("1d12h")`, "129600"}, {`durationseconds("500ms")`, "0.5"}, {`durationseconds("-90s")`, "-90"}, {`durationseconds("-1.5s")`, "-1.5"}, {`durationseconds("-250ms")`, "-0.25"}, {`durationseconds("0")`, "0"}, {`durationseconds("1ns")`, "0.000000001"}, {`durationseconds("36500d1ns")`, "3153600000.000000001"}, {`durationseconds("soon")`, noSpan},
	})
}

func TestMoreEncodingFunctions(t *testing.T) {
	const encodings = "the encoding is one of ISO-8859-1, US-ASCII, UTF-16, UTF-16BE, UTF-16LE, UTF-8"
	checkFunctions(t, [][2]string{
		{`base64urlencode("a?>é")`, `"YT8-w6k"`}, {`base64urlencode("")`, `""`}, {`base64urldecode("YT8-w6k")`, `"a?>é"`}, {`base64urldecode("YT8-w6k=")`, `"a?>é"`}, {`base64urldecode("YT8+w6k")`, `error: Invalid value for "str" parameter: the text is not valid base64 with - and _`}, {`base64urldecode("_w")`, "error: the decoded bytes are not valid UTF-8 text"},
		{`urldecode("a+b%26c%C3%A9")`, `"a b&cé"`}, {`urldecode(urlencode("100 % = a/b?é")) == "100 % = a/b?é"`, "true"}, {`urldecode("%zz")`, `error: Invalid value for "str" parameter: after each % two hexadecimal digits are required`}, {`urldecode("%")`, "error: two hexadecimal digits"}, {`urldecode("%FF")`, "error: not valid UTF-8"},
		{`base64decode("!")`, `error: Invalid value for "str" parameter: the text is not valid base64`}, {`substr(base64gzip("hello"), 0, 4)`, `"H4sI"`}, {`base64gzip("a") == base64gzip("b")`, "false"},
		{`textencodebase64("Hello", "UTF-16LE")`, `"SABlAGwAbABvAA=="`}, {`textencodebase64("é🤔", "utf-16be")`, `"AOnYPt0U"`}, {`textencodebase64("a", "UTF-16")`, `"/v8AYQ=="`}, {`textencodebase64("é", "ISO-8859-1")`, `"6Q=="`}, {`textencodebase64("é", "UTF-8")`, `"w6k="`}, {`textencodebase64("a", "us-ascii")`, `"YQ=="`},
		{`textencodebase64("é", "US-ASCII")`, `error: Invalid value for "str" parameter: the text has a character that US-ASCII does not have`}, {`textencodebase64("€", "ISO-8859-1")`, "error: the text has a character that ISO-8859-1 does not have"}, {`textencodebase64("a", "UTF-17")`, `error: Invalid value for "encoding" parameter: ` + encodings + `. Did you mean "UTF-16"?`}, {`textencodebase64("a", "bananas")`, "error: " + encodings},
		{`textdecodebase64("SABlAGwAbABvAA==", "UTF-16LE")`, `"Hello"`}, {`textdecodebase64("AOnYPt0U", "UTF-16BE")`, `"é🤔"`}, {`textdecodebase64("//5hAA==", "UTF-16")`, `"a"`}, {`textdecodebase64("/v8AYQ==", "UTF-16")`, `"a"`}, {`textdecodebase64("AGE=", "UTF-16")`, `"a"`}, {`textdecodebase64("6Q==", "ISO-8859-1")`, `"é"`},
		{`textdecodebase64("6Q==", "US-ASCII")`, "error: the decoded bytes are not valid US-ASCII text"}, {`textdecodebase64("6Q==", "UTF-8")`, "error: the decoded bytes are not valid UTF-8 text"}, {`textdecodebase64("YQ==", "UTF-16LE")`, "error: the decoded bytes are not valid UTF-16LE text"}, {`textdecodebase64("PtgA", "UTF-16LE")`, "error: not valid UTF-16LE"}, {`textdecodebase64("Ptg=", "UTF-16LE")`, "error: not valid UTF-16LE"}, {`textdecodebase64("!", "UTF-8")`, `error: Invalid value for "str" parameter: the text is not valid base64`},
	})
}

func TestOrderAndMergeFunctions(t *testing.T) {
	checkFunctions(t, [][2]string{
		{`sort_by([{ n = "b" }, { n = "a" }], "n")`, `[{"n":"a"},{"n":"b"}]`}, {`[for x in sort_by([{ p = 10 }, { p = 9 }, { p = -1 }], "p") : x.p]`, "[-1,9,10]"}, {`sort_by([{ a = true }, { a = false }, { a = true }], "a")[0].a`, "false"},
		{`[for x in sort_by([{ a = 1, b = "y" }, { a = 0, b = "z" }, { a = 1, b = "x" }], "a", "b") : x.b]`, `["z","x","y"]`}, {`[for x in sort_by([{ a = 1, b = "y" }, { a = 0, b = "z" }, { a = 1, b = "x" }], "a") : x.b]`, `["z","y","x"]`},
		{`sort_by(["pear", "fig", "apple"], [for s in ["pear", "fig", "apple"] : length(s)])`, `["fig","pear","apple"]`}, {`sort_by(tolist([3, 1, 2]), [1, 1, 0])`, "[2,3,1]"}, {`sort_by(toset(["b", "a"]), [2, 1])`, `["b","a"]`}, {`sort_by([], "n")`, "[]"}, {`sort_by(tolist([]), [])`, "[]"}, {`sort_by([{ a = tomap({ k = 2 }) }, { a = tomap({ k = 1 }) }][*].a, "k")[0].k`, "1"},
		{`sort_by([{ name = 1 }, { nmae = 1 }], "name")`, `error: Invalid value for "key" parameter: element 1 has no attribute "name"; did you mean "nmae"?`}, {`sort_by([1], "n")`, `error: element 0 has no attribute "n": it is number`}, {`sort_by([null], "n")`, `error: element 0 is null, so it has no attribute "n"`}, {`sort_by([{ n = null }], "n")`, "error: the key of element 0 is null; write coalesce() around it, or leave the element out"}, {`sort_by([{ n = [1] }], "n")`, "error: the key of element 0 is tuple; a key is a number, a string or a bool"}, {`sort_by([{ n = 1 }, { n = "1" }], "n")`, "error: the key of element 1 is a string, and that of element 0 is a number; all keys have one type"},
		{`sort_by([1, 2], [1])`, "error: the list of keys has 1 values, and the list to sort has 2 elements"}, {`sort_by("a", "n")`, `error: Invalid value for "list" parameter: a list is required, this is string`}, {`sort_by([1], 5)`, "error: a key is the name of an attribute, or a list with a value for each element; this is number"},
		{`deepmerge({ a = { x = 1, y = 2 }, b = 1 }, { a = { y = 3, z = 4 } })`, `{"a":{"x":1,"y":3,"z":4},"b":1}`}, {`deepmerge()`, "{}"}, {`deepmerge({ a = [1] }, { a = [2] })`, `{"a":[2]}`}, {`deepmerge({ a = { b = 1 } }, { a = 5 })`, `{"a":5}`}, {`deepmerge({ a = 5 }, { a = { b = 1 } })`, `{"a":{"b":1}}`}, {`deepmerge({ a = { b = 1 } }, { a = null })`, `{"a":null}`}, {`deepmerge({ a = 1 }, null, { b = 2 })`, `{"a":1,"b":2}`}, {`deepmerge(tomap({ a = { b = 1 } }), { a = { c = 2 } })`, `{"a":{"b":1,"c":2}}`}, {`deepmerge({ a = { b = { c = { d = 1 } } } }, { a = { b = { c = { e = 2 } } } })`, `{"a":{"b":{"c":{"d":1,"e":2}}}}`},
		{`deepmerge({}, [1])`, `error: Invalid value for "maps" parameter: an object or a map is required, this is tuple`}, {`deepmerge("a")`, "error: an object or a map is required, this is string"},
		{`cidrcontains("10.0.0.0/8", "10.1.2.3")`, "true"}, {`cidrcontains("10.0.0.0/8", "11.0.0.0")`, "false"}, {`cidrcontains("10.0.0.0/8", "10.255.0.0/16")`, "true"}, {`cidrcontains("10.0.0.0/16", "10.0.0.0/8")`, "false"}, {`cidrcontains("fd00::/8", "fd12::1")`, "true"}, {`cidrcontains("fd00::/8", "10.0.0.1")`, "false"}, {`cidrcontains("10.0.0.0", "10.0.0.1")`, `error: Invalid value for "prefix" parameter: prefix is an address range`}, {`cidrcontains("10.0.0.0/8", "ten")`, `error: Invalid value for "address" parameter: address is an address such as "10.0.1.5", or a range`},
		{`type("a")`, `"string"`}, {`type(1)`, `"number"`}, {`type(true)`, `"bool"`}, {`type(null)`, `"null"`}, {`type(tostring(null))`, `"string"`}, {`type(tolist(["a"]))`, `"list(string)"`}, {`type([1, "a"])`, `"tuple([number,string])"`}, {`type({ b = 1, a = tomap({ k = true }) })`, `"object({a=map(bool),b=number})"`}, {`type(toset([1]))`, `"set(number)"`}, {`type([null])`, `"tuple([any])"`},
	})
}

// TestNewFunctionsWithArgumentsOfRuns: a value that only a run knows gives the same.
func TestNewFunctionsWithArgumentsOfRuns(t *testing.T) {
	for _, tt := range []struct{ expr, v, want string }{
		{`sort_by(var.v, "n")`, `[{"n":2},{"n":1}]`, `[{"n":1},{"n":2}]`}, {`deepmerge({ a = { b = 1 } }, var.v)`, `{"a":{"c":2}}`, `{"a":{"b":1,"c":2}}`}, {"type(var.v)", `{"a":[1]}`, `"object({a=tuple([number])})"`}, {"type(var.v)", "null", `"null"`}, {`type(var.v) == "string"`, `"x"`, "true"},
		{`timeadd("2030-01-31T18:00:00Z", var.v)`, `"1d"`, `"2030-02-01T18:00:00Z"`}, {"durationseconds(var.v)", `"2d"`, "172800"}, {`cidrcontains("10.0.0.0/8", var.v)`, `"10.0.0.1"`, "true"}, {"base64urldecode(var.v)", `"YQ"`, `"a"`},
		{`templatestring("Hi $${name}, $${upper(name)}", { name = var.v })`, `"ann"`, `"Hi ann, ANN"`}, {`templatestring(var.v, { n = 2 })`, `"$${n} of %%{ for i in [1, 2] }<$${i}>%%{ endfor }"`, `"2 of <1><2>"`}, {`templatestring(var.v, {})`, `"plain"`, `"plain"`}, {`templatestring(var.v, { n = 5 })`, `"$${n}"`, `"5"`},
		{`templatestring(var.v, {})`, `"a\n$${1 +}"`, "error: line 2 of the template: "}, {`templatestring(var.v, { name = 1 })`, `"$${nme}"`, `error: line 1 of the template: there is no value for the name "nme"; did you mean "name"?`}, {`templatestring(var.v, {})`, `"$${[1]}"`, "error: "}, {`templatestring(var.v, {})`, `"$${file(\"x\")}"`, "error: a template cannot call file()"}, {`templatestring(var.v, {})`, `"$${templatestring(\"x\", {})}"`, "error: a template cannot call templatestring()"}, {`templatestring(var.v, {})`, `"$${uper(\"x\")}"`, `error: there is no function named "uper"; did you mean "upper"?`},
		{`templatestring(var.v, [1])`, `"x"`, `error: Invalid value for "vars" parameter: an object or a map with the values for the template is required, this is tuple`}, {`templatestring(var.v, { a = 1 }, 2)`, `"x"`, "error: at most two arguments are allowed"}, {`templatestring([var.v, { a = 1 }]...)`, `"$${a}"`, `"1"`}, {`templatestring(var.v)`, `"x"`, "error: Not enough function arguments"}, {`templatestring(var.v, {})`, "null", "error: must not be null"},
		{`templatestring(var.v, { a = null })`, `"x$${a}"`, "error: Cannot include a null value"}, {`templatestring(var.v, { a = null })`, `"$${a}"`, "error: a value is required, this is null"}, {`templatestring("` + strings.Repeat("$${x}", 3) + `", var.v)`, `{"x":"a"}`, `"aaa"`},
	} {
		v, err := evaluatedInRun(t, "variable \"v\" {\n type = any\n default = null\n}\noutput \"o\" { value = "+tt.expr+" }\n"+step("s", ""), "v", tt.v)
		if part, fails := strings.CutPrefix(tt.want, "error: "); fails {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s with %s = %s, %v; want the error %q", tt.expr, tt.v, v.JSON(), err, part)
			}
			continue
		}
		if err != nil || string(v.JSON()) != tt.want {
			t.Errorf("%s with %s = %s, %v; want %s", tt.expr, tt.v, v.JSON(), err, tt.want)
		}
	}
}

// TestTemplatesKeepSecrets: a template with a sensitive value gives a sensitive text, and its
// errors do not show the value.
func TestTemplatesKeepSecrets(t *testing.T) {
	const body = "variable \"p\" {\n type = string\n sensitive = true\n}\noutput \"o\" {\n sensitive = true\n value = templatestring(\"%s\", { p = var.p })\n}\n"
	wf := linkedWorkflow(t, strings.Replace(body, "%s", "pw=$${p}", 1)+step("s", ""))
	v, err := wf.Outputs[0].Value(scopeOf(bound(t, wf, "p", "hunter22")))
	if err != nil || len(v.Sensitive()) == 0 || string(v.JSON()) != `"pw=hunter22"` {
		t.Errorf("%s, %v, sensitive %v", v.JSON(), err, v.Sensitive())
	}
	wf = linkedWorkflow(t, strings.Replace(body, "%s", "$${tonumber(p)}", 1)+step("s", ""))
	if _, err = wf.Outputs[0].Value(scopeOf(bound(t, wf, "p", "hunter22"))); err == nil || strings.Contains(err.Error(), "hunter22") {
		t.Errorf("the error is %v", err)
	}
	_, diags := check(files{"main.hcl": workflow(strings.Replace(strings.Replace(body, " sensitive = true\n value", " value", 1), "%s", "$${p}", 1) + step("s", ""))})
	if len(about(diags, "Sensitive output")) == 0 && !diags.HasErrors() {
		t.Error("an output with a sensitive template may be plain")
	}
}

// TestTemplatesPay: a template costs what an expression of its kind costs, in each call.
func TestTemplatesPay(t *testing.T) {
	loop := "%{ for a in range(1000) }%{ for b in range(1000) }x%{ endfor }%{ endfor }"
	for name, expr := range map[string]string{
		"a loop in a template":       "length(templatestring(var.v, {}))",
		"a large text, often parsed": "[for i in range(1000) : length(templatestring(\"" + strings.Repeat("$${x}", 500) + "\", { x = var.v }))]",
		"many lines":                 "length(templatestring(join(\"\\n\", [for i in range(1000) : \"${i}${var.v}\"]), {}))",
		"one argument for both":      "length(templatestring([var.v, {}]...))",
	} {
		def, diags := check(files{"main.hcl": workflow("variable \"v\" { default = \"\" }\noutput \"o\" { value = " + expr + " }\n" + step("s", ""))})
		if def == nil { // the loops of the expression are too long even without the value
			wantError(t, diags.Err(), "Expression too expensive")
			continue
		}
		wf := def.Workflow("w")
		scope := scopeOf(bound(t, wf, "v", loop))
		scope.Allowance = dsl.NewAllowance(1 << 40)
		_, err := wf.Outputs[0].Value(scope)
		if err == nil || !strings.Contains(err.Error(), "Expression too expensive") {
			t.Errorf("%s: %v", name, err)
		}
	}
	deep := strings.Repeat("%{ if true }", 300) + strings.Repeat("%{ endif }", 300)
	wf := linkedWorkflow(t, "variable \"v\" { default = \"\" }\noutput \"o\" { value = templatestring(var.v, {}) }\n"+step("s", ""))
	_, err := wf.Outputs[0].Value(scopeOf(bound(t, wf, "v", deep)))
	wantError(t, err, "Nesting too deep")
	_, err = wf.Outputs[0].Value(scopeOf(document(`{"v":"` + strings.Repeat("x", 1<<20+1) + `"}`)))
	wantError(t, err, "a template may hold at most 1 MiB")
}

// filesOf is a module with files that expressions read.
func filesOf(outputs string) files {
	return files{
		"main.hcl": workflow(outputs + step("s", "")), "conf/a.json": "{}", "conf/b.json": "[]", "conf/b.yaml": "a", "conf/deep/c.json": "1", "conf/deep/er/d.json": "2",
		"binary": "\xff\x00", "hello.txt": "hello", "greet.tpl": "Hi ${name}!\n%{ for x in list ~}\n- ${x}\n%{ endfor ~}\n",
	}
}

func TestFileFunctions(t *testing.T) {
	for _, tt := range [][2]string{
		{`fileset("conf", "*.json")`, `["a.json","b.json"]`}, {`fileset("conf", "**/*.json")`, `["a.json","b.json","deep/c.json","deep/er/d.json"]`}, {`fileset("conf", "**")`, `["a.json","b.json","b.yaml","deep/c.json","deep/er/d.json"]`}, {`fileset(".", "conf/?.{json,yaml}")`, `["conf/a.json","conf/b.json","conf/b.yaml"]`}, {`fileset("conf/", "[ab].json")`, `["a.json","b.json"]`}, {`fileset("conf", "deep")`, "[]"}, {`fileset("conf", "deep/*.json")`, `["deep/c.json"]`}, {`fileset("conf", "**/er/**/*.json")`, `["deep/er/d.json"]`}, {`fileset("conf", "nothing")`, "[]"}, {`fileset("conf", "b.json")`, `["b.json"]`},
		{`fileset("conf", "../*")`, "error: the pattern must be relative"}, {`fileset("conf", "/a")`, "error: the pattern must be relative"}, {`fileset("conf", "")`, "error: the pattern must be relative"}, {`fileset("conf", "[a")`, "error: each bracket with its end"}, {`fileset("conf", "{a")`, "error: a { without its }"}, {`fileset("conf", "{a,{b}}")`, "error: braces in braces"}, {`fileset("nope", "*")`, "error: file does not exist"}, {`fileset("hello.txt", "*")`, "error: hello.txt is not a directory"}, {`fileset("..", "*")`, "error: stay inside the module's directory"}, {`fileset("conf", "` + strings.Repeat("{a,b}", 8) + `")`, "error: at most 100 patterns"},
		{`fileset("conf", env("REGION"))`, "error: fileset() is read once, when the definition is loaded, so each argument must be a plain string."}, {`fileset("conf")`, "error: each argument must be a plain string"},
		{`fileexists("hello.txt")`, "true"}, {`fileexists("./conf/../hello.txt")`, "true"}, {`fileexists("nope/x.txt")`, "false"}, {`fileexists("conf")`, "error: conf is not a regular file"}, {`fileexists("../x")`, "error: stay inside"}, {`fileexists(".engine/key")`, "error: the directory .engine"}, {`fileexists("")`, "error: stay inside"}, {`fileexists("a", "b")`, "error: its argument must be a plain string"},
		{`filebase64("binary")`, `"/wA="`}, {`filebase64("hello.txt") == base64encode(file("hello.txt"))`, "true"}, {`file("binary")`, "error: the file is not valid UTF-8 text"}, {`[filebase64("binary"), file("binary")]`, "error: the file is not valid UTF-8 text"}, {`filebase64("nope")`, "error: file does not exist"},
		{`[filemd5("hello.txt"), filesha1("hello.txt"), filesha256("hello.txt"), filesha512("hello.txt"), filebase64sha256("hello.txt"), filebase64sha512("hello.txt")] == [md5("hello"), sha1("hello"), sha256("hello"), sha512("hello"), base64sha256("hello"), base64sha512("hello")]`, "true"}, {`filemd5("binary")`, `"e0e8bfafbb0689563b2fba789c97b3cc"`}, {`filesha256("nope")`, "error: file does not exist"}, {`filemd5("../x")`, "error: stay inside"},
		{`templatefile("greet.tpl", { name = "Ann", list = [1, 2] })`, `"Hi Ann!\n- 1\n- 2\n"`}, {`templatefile("hello.txt", {})`, `"hello"`}, {`templatefile("greet.tpl", { nam = "Ann", list = [] })`, `error: line 1 of the template: there is no value for the name "name"; did you mean "nam"?`}, {`templatefile("binary", {})`, "error: not valid UTF-8"}, {`templatefile("nope", {})`, "error: file does not exist"}, {`templatefile(lower("hello.txt"), {})`, "error: templatefile() is read once, when the definition is loaded, so its first argument must be a plain string."}, {`templatefile("greet.tpl")`, "error: Not enough function arguments"},
	} {
		def, diags := check(filesOf("output \"o\" { value = " + tt[0] + " }\n"))
		part, fails := strings.CutPrefix(tt[1], "error: ")
		switch {
		case fails && (def != nil || !strings.Contains(diags.Err().Error(), part)):
			t.Errorf("%s: %v; want the error %q", tt[0], diags.Err(), part)
		case !fails && def == nil:
			t.Errorf("%s: %v", tt[0], diags.Err())
		case !fails:
			back, err := dsl.Decode(def.Encode()) // a stored definition does not look at the disk
			if err != nil || back.Digest() != def.Digest() {
				t.Fatalf("%s: decoded %v", tt[0], err)
			}
			for _, d := range []*dsl.Definition{def, back} {
				v, err := d.Workflow("w").Outputs[0].Value(&dsl.Scope{})
				wantValue(t, v, err, tt[1])
			}
		}
	}
}

// TestInvalidTemplates: a template whose text is known is checked when the definition is loaded,
// even if its values are known only in a run.
func TestInvalidTemplates(t *testing.T) {
	for expr, want := range map[string]finding{
		`templatefile("greet.tpl", { name = var.v })`:            fails("Invalid template", `"greet.tpl"`, `line 2 of the template: there is no value for the name "list".`),
		`templatestring("$${uper(x)}", var.v)`:                   fails("Invalid template", `"$${uper(x)}"`, `there is no function named "uper"; did you mean "upper"?`),
		`templatestring("$${", { x = var.v })`:                   fails("Invalid template", `"$${"`, "line 1 of the template: "),
		`templatestring("$${secret(\"env:X\")}", { x = var.v })`: fails("Invalid template", `"$${secret(\"env:X\")}"`, "a template cannot call secret(). Call it outside, and give the value to the template by a name."),
	} {
		f := filesOf("variable \"v\" { type = any }\noutput \"o\" { value = " + expr + " }\n")
		_, diags := check(f)
		wantFindings(t, slices.DeleteFunc(diags, func(d diag.Diagnostic) bool { return d.Severity != diag.SeverityError }), want)
	}
	_, diags := check(filesOf("variable \"v\" { type = any }\noutput \"o\" { value = templatefile(\"greet.tpl\", merge(var.v, { name = 1 })) }\n"))
	if diags.HasErrors() {
		t.Errorf("names that only a run knows: %v", diags.Err())
	}
}

// TestStoredAnswers: what fileset and fileexists said is part of the definition and of its digest,
// and a stored definition without it is refused.
func TestStoredAnswers(t *testing.T) {
	outputs := "output \"o\" { value = [fileset(\"conf\", \"*.json\"), fileexists(\"new.txt\")] }\n"
	one := filesOf(outputs)
	def := linked(t, one)
	for name, change := range map[string]func(files){"a file more": func(f files) { f["conf/z.json"] = "" }, "a file that is there now": func(f files) { f["new.txt"] = "" }} {
		two := filesOf(outputs)
		change(two)
		if linked(t, two).Digest() == def.Digest() {
			t.Errorf("%s: the digest is the same", name)
		}
	}
	two := filesOf(outputs)
	two["conf/other.txt"] = ""
	if linked(t, two).Digest() != def.Digest() {
		t.Error("a file that does not match changes the digest")
	}
	for _, field := range []string{"file_sets", "files_exist"} {
		var m map[string]any
		if err := json.Unmarshal(def.Encode(), &m); err != nil {
			t.Fatal(err)
		}
		delete(m["manifest"].(map[string]any), field)
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := dsl.Decode(data); err == nil || !strings.Contains(err.Error(), "the definition does not hold") {
			t.Errorf("without %s: %v", field, err)
		}
	}
}

// TestFilesetStaysInside: fileset and fileexists do not follow a link out of the module, do not
// show the engine's own directory, and end in a directory with too many files.
func TestFilesetStaysInside(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "module")
	for _, name := range []string{"outside/x.txt", "module/in/a.txt", "module/.engine/key.txt", "module/in/.Engine/key.txt"} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"out.txt": "../outside/x.txt", "b.txt": "in/a.txt", "dir": "../outside", "loop": ".", "key.txt": ".engine/key.txt"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	load := func(expr string) (*dsl.Definition, diag.Diagnostics) {
		if err := os.WriteFile(filepath.Join(dir, "main.hcl"), []byte(workflow("output \"o\" { value = "+expr+" }\n"+step("s", ""))), 0o644); err != nil {
			t.Fatal(err)
		}
		m, diags := dsl.Parse(os.DirFS(dir), dsl.ParseOptions{})
		def, more := dsl.Link(m, agents())
		return def, append(diags, more...)
	}
	def, diags := load(`[fileset(".", "**/*.txt"), fileexists("b.txt")]`)
	if def == nil {
		t.Fatal(diags.Err())
	}
	v, err := def.Workflow("w").Outputs[0].Value(&dsl.Scope{})
	wantValue(t, v, err, `[["b.txt","in/a.txt"],true]`)
	for _, expr := range []string{`fileset("dir", "*")`, `fileexists("out.txt")`, `fileexists("dir/x.txt")`} {
		if _, diags := load(expr); !strings.Contains(fmt.Sprint(diags.Err()), "a symbolic link leads out of the module's directory") {
			t.Errorf("%s: %v", expr, diags.Err())
		}
	}
	for _, expr := range []string{`fileset(".engine", "*")`, `fileexists("key.txt")`} {
		if _, diags := load(expr); !strings.Contains(fmt.Sprint(diags.Err()), "the directory .engine") {
			t.Errorf("%s: %v", expr, diags.Err())
		}
	}
	many := filesOf("output \"o\" { value = fileset(\".\", \"many/*\") }\n")
	for i := range 10_001 {
		many[fmt.Sprintf("many/%d", i)] = ""
	}
	_, diags = check(many)
	wantFindings(t, diags, fails("Cannot read file", `fileset(".", "many/*")`, "more than 10000 files match the pattern"))
}
