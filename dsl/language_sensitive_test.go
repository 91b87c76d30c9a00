package dsl_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/dsl/secret"
)

// TestSensitiveParts: what is sensitive stays so through every kind of expression, and
// nothing else becomes so. The marks are JSON pointers.
func TestSensitiveParts(t *testing.T) {
	const head = `
variable "open" { default = "open" }
variable "pin" {
  type      = string
  sensitive = true
}
variable "row" {
  type      = object({ id = string, tags = list(string) })
  sensitive = true
}
locals {
  derived = "p-${var.pin}"
  both    = { shut = var.pin, open = var.open }
}
`
	for _, tt := range []struct{ name, expr, want, marks string }{
		{"itself", "var.pin", `"4711"`, "/value"},
		{"in a template", `"a ${var.pin} b"`, `"a 4711 b"`, "/value"},
		{"in a directive", `"%{ if var.pin == "4711" }yes%{ endif }"`, `"yes"`, "/value"},
		{"a comparison", "var.pin == var.open", "false", "/value"},
		{"an order", "tonumber(var.pin) > 5", "true", "/value"},
		{"arithmetic", "var.pin + 1", "4712", "/value"},
		{"a negation", "-tonumber(var.pin)", "-4711", "/value"},
		{"a logical operation", "var.pin != \"\" && true", "true", "/value"},
		{"a condition", "var.pin == \"4711\" ? \"a\" : \"b\"", `"a"`, "/value"},
		{"a result of a condition", "var.open == \"open\" ? var.pin : \"b\"", `"4711"`, "/value"},
		{"in parentheses", "(var.pin)", `"4711"`, "/value"},
		{"an element", "[var.open, var.pin]", `["open","4711"]`, "/value/1"},
		{"an attribute", "{ a = var.open, b = { c = var.pin } }", `{"a":"open","b":{"c":"4711"}}`, "/value/b/c"},
		{"a name that needs escapes", "{ \"a/b~c\" = var.pin }", `{"a/b~c":"4711"}`, "/value/a~1b~0c"},
		{"a key", "{ (var.pin) = 1 }", `{"4711":1}`, "/value"},
		{"an element by index", "[var.open, var.pin][1]", `"4711"`, "/value"},
		{"another element by index", "[var.open, var.pin][0]", `"open"`, ""},
		{"an attribute by name", "{ a = var.open, b = var.pin }.b", `"4711"`, "/value"},
		{"another attribute by name", "{ a = var.open, b = var.pin }.a", `"open"`, ""},
		{"a sensitive index", "[\"a\", \"b\"][var.pin == \"4711\" ? 1 : 0]", `"b"`, "/value"},
		{"elements of a loop", "[for x in [var.open, var.pin] : upper(x)]", `["OPEN","4711"]`, "/value/1"},
		{"values of a loop", "{ for k, x in { a = var.open, b = var.pin } : k => x }", `{"a":"open","b":"4711"}`, "/value/b"},
		{"the condition of a loop", "[for x in [1, 2] : x if var.pin == \"4711\"]", "[1,2]", "/value"},
		{"a loop over something sensitive", "[for x in var.row.tags : x]", `["t1","t2"]`, "/value"},
		{"a splat", "[{ v = var.open }, { v = var.pin }][*].v", `["open","4711"]`, "/value/1"},
		{"an object that is sensitive", "var.row", `{"id":"7","tags":["t1","t2"]}`, "/value"},
		{"a part of it", "var.row.tags[1]", `"t2"`, "/value"},
		{"a local value", "local.derived", `"p-4711"`, "/value"},
		{"a part of a local value", "local.both", `{"open":"open","shut":"4711"}`, "/value/shut"},
		{"the other part of a local value", "local.both.open", `"open"`, ""},
		{"a function of it", "upper(var.pin)", `"4711"`, "/value"},
		{"a function of a list that holds it", "join(\",\", [var.open, var.pin])", `"open,4711"`, "/value"},
		{"its length", "length(var.pin)", "4", "/value"},
		{"as JSON", "jsonencode({ a = var.pin })", `"{\"a\":\"4711\"}"`, "/value"},
		{"encoded", "base64encode(var.pin)", `"NDcxMQ=="`, "/value"},
		{"hashed", "substr(sha256(var.pin), 0, 4)", `"de65"`, "/value"},
		{"merged", "merge({ a = 1 }, { b = var.pin })", `{"a":1,"b":"4711"}`, "/value/b"},
		{"concatenated", "concat([1], [var.pin])", `[1,"4711"]`, "/value/1"},
		{"looked up", "lookup({ a = var.pin }, \"a\", \"x\")", `"4711"`, "/value"},
		{"tried", "try(var.pin, \"x\")", `"4711"`, "/value"},
		{"the first that is there", "coalesce(null, var.pin)", `"4711"`, "/value"},
		{"formatted", "format(\"%s!\", var.pin)", `"4711!"`, "/value"},
		{"asked for its mark", "issensitive(var.pin)", "true", ""},
		{"asked for a mark that it has not", "issensitive(var.open)", "false", ""},
		{"marked by hand", "sensitive(var.open)", `"open"`, "/value"},
		{"marked twice", "{ a = sensitive({ b = var.pin }) }", `{"a":{"b":"4711"}}`, "/value/a"},
		{"shown on purpose", "nonsensitive(var.pin)", `"4711"`, ""},
		{"shown on purpose, but for what is inside", "nonsensitive(sensitive({ a = 1, b = var.pin }))", `{"a":1,"b":"4711"}`, "/value/b"},
		{"nothing", "var.open", `"open"`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wf := linkedWorkflow(t, head+step("s", "input { value = "+tt.expr+" }"))
			vars := bound(t, wf, "pin", "4711", "row", `{ id = "7", tags = ["t1", "t2"] }`)
			if got := strings.Join(vars.Sensitive(), " "); got != "/pin /row" {
				t.Errorf("sensitive variables %q", got)
			}
			in, err := wf.Steps[0].Input(scopeOf(vars))
			wantValue(t, in, err, `{"value":`+tt.want+`}`)
			if got := strings.Join(in.Sensitive(), " "); got != tt.marks {
				t.Errorf("sensitive %q, want %q", got, tt.marks)
			}
		})
	}
}

// TestSensitiveFieldsOfSchemas: what an agent's schema calls sensitive is so in replies, in
// inputs, and wherever it goes from there.
func TestSensitiveFieldsOfSchemas(t *testing.T) {
	wf := linkedWorkflow(t, "step \"s\" {\n action = agent.kinds.call\n}\n"+step("next", "input { value = [step.s.output.hidden, step.s.output.text, step.s.output.hiding, step.s.output.hidings] }"))
	for reply, want := range map[string]string{
		`{"hidden":"abcd"}`: "/hidden /hidings", `{"hidden":null,"text":"x"}`: "/hidden /hidings",
		`{"hiding":{"name":"n","key":"k"}}`: "/hidden /hiding/key /hidings", `{"hidings":[{"name":"n","key":"k"}]}`: "/hidden /hidings",
	} {
		v, err := wf.Steps[0].Do.Output([]byte(reply))
		if got := strings.Join(v.Sensitive(), " "); err != nil || got != want {
			t.Errorf("%s: sensitive %q, %v; want %q", reply, got, err, want)
		}
	}
	out, err := wf.Steps[0].Do.Output([]byte(`{"hidden":"abcd","text":"efgh","hiding":{"name":"n","key":"ijkl"},"hidings":[{"name":"mnop","key":"qrst"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(out.Sensitive(), " "); got != "/hidden /hiding/key /hidings" {
		t.Errorf("a reply: sensitive %q", got)
	}
	if got := strings.Join(out.SensitiveStrings(), " "); got != "abcd ijkl mnop qrst" {
		t.Errorf("a reply: sensitive texts %q", got)
	}
	in, err := wf.Steps[1].Input(&dsl.Scope{Step: func(int) dsl.StepResult {
		return dsl.StepResult{One: dsl.InstanceResult{Status: "succeeded", Output: out}}
	}})
	if got := strings.Join(in.Sensitive(), " "); err != nil || got != "/value/0 /value/2/key /value/3" {
		t.Errorf("an input made of it: sensitive %q, %v", got, err)
	}
}

// TestErrorsHideSensitiveValues: the message of an expression that fails shows no
// sensitive value, whatever fails.
func TestErrorsHideSensitiveValues(t *testing.T) {
	for _, expr := range []string{
		"parseint(var.pin, 10)", "tonumber(var.pin)", "var.pin + 1", "jsondecode(var.pin)", "{ a = 1 }[var.pin]", "[1][var.pin]", "regex(\"^x$\", var.pin)", "formatdate(var.pin, \"2030-01-31T18:00:00Z\")",
		"cidrhost(var.pin, 1)", "base64decode(\"${var.pin}!\")", "lookup({ a = 1 }, var.pin)", "index([\"a\"], var.pin)", "timeadd(var.pin, \"1h\")", "uuidv5(var.pin, \"x\")", "format(\"%d\", var.pin)", "yamldecode(\"[${var.pin}\")",
		"csvdecode(\"a,b\\n${var.pin}\")", "tobool(var.pin)", "element([], length(var.pin))", "{ (var.pin) = 1 }.a", "var.row.nope", "zipmap([var.pin], [])", "var.row[var.pin]", "step.s.output.value[var.pin]", "[local.l]",
	} {
		wf := linkedWorkflow(t, "variable \"pin\" {\n type = string\n sensitive = true\n}\nvariable \"row\" {\n type = any\n sensitive = true\n}\nlocals { l = parseint(var.pin, 10) }\n"+
			step("s", "")+"output \"o\" {\n value = "+expr+"\n sensitive = true\n}\n")
		scope := scopeOf(bound(t, wf, "pin", "hunter2xyz", "row", `{ hunter3abc = "hunter4def" }`))
		scope.Step = func(int) dsl.StepResult { return succeeded(`{"value":{}}`) }
		_, err := wf.Outputs[0].Value(scope)
		if err == nil {
			t.Errorf("%s has a value", expr)
			continue
		}
		for _, secret := range []string{"hunter2xyz", "hunter4def"} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%s: the error shows the value: %v", expr, err)
			}
		}
		if !strings.Contains(err.Error(), "main.hcl:") {
			t.Errorf("%s: the error has no place: %v", expr, err)
		}
	}
}

// TestConfidentialWorkflows: a workflow whose runs may come to hold sensitive values is
// known before it starts.
func TestConfidentialWorkflows(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		want       bool
	}{
		{"nothing", step("s", ""), false},
		{"a sensitive variable alone", "variable \"v\" {\n default = 1\n sensitive = true\n}\n" + step("s", ""), false},
		{"secret()", step("s", `input { value = secret("env:X") }`), true},
		{"sensitive() deep inside", step("s", `input { value = [{ a = upper(sensitive("x")) }] }`), true},
		{"sensitive() in a condition", step("s", "precondition {\n condition = true\n error_message = sensitive(\"x\")\n}"), true},
		{"sensitive() in a local value", "locals { l = sensitive(1) }\n" + step("s", ""), true},
		{"an output that is sensitive", step("s", "") + "output \"o\" {\n value = 1\n sensitive = true\n}\n", true},
		{"an output that is not", step("s", "") + "output \"o\" { value = 1 }\n", false},
		{"an action with a sensitive output", "step \"s\" {\n action = agent.shop.reserve\n input { sku = \"a\" }\n}\n", true},
		{"an action whose sensitive argument is not given", "step \"s\" {\n action = agent.shop.ship\n compensation = \"none\"\n input { to = \"a\" }\n}\n", false},
		{"a sensitive output below a list", "step \"s\" {\n action = agent.kinds.call\n}\n", true},
	} {
		if got := linkedWorkflow(t, tt.body).Confidential; got != tt.want {
			t.Errorf("%s: %t, want %t", tt.name, got, tt.want)
		}
	}
}

// TestPlacesOfSecrets: secret() may stand in an input and in config, alone, inside a
// string, or there inside of objects and lists; it names a variable or a file.
func TestPlacesOfSecrets(t *testing.T) {
	refused := func(at string) []finding {
		return finds(fails("secret() not allowed here", at, "secret() may stand only in an agent's config and in the input of a step or of its undo, alone or inside a string."))
	}
	invalid := func(at string) []finding {
		return finds(fails("Invalid secret reference", at, `Write secret("env:NAME") or secret("file:PATH") with a plain string.`))
	}
	in := func(expr string) string { return step("s", "input { value = "+expr+" }") }
	const call = `secret("env:X")`
	checkRules(t, []rule{
		{"alone", in(call), nil}, {"a file", in(`secret("file:/run/secrets/a:b")`), nil}, {"in parentheses", in("(" + call + ")"), nil}, {"inside a string", in(`"Bearer ${secret("env:X")}"`), nil},
		{"in a list", in("[1, " + call + "]"), nil}, {"in an object", in("{ a = { b = " + call + " } }"), nil}, {"in an undo", "step \"s\" {\n action = agent.echo.call\n compensate {\n  action = agent.echo.call\n  input { value = " + call + " }\n }\n}\n", nil},
		{"in a function", in("upper(" + call + ")"), refused(call)}, {"in a condition", in("true ? " + call + " : 1"), refused(call)}, {"in an operation", in(call + " == \"x\""), refused(call)},
		{"in a loop", in("[for x in [1] : " + call + "]"), refused(call)}, {"as a key", in("{ (" + call + ") = 1 }"), refused(call)}, {"as an index", in("[1][" + call + "]"), refused(call)},
		{"in try", in("try(" + call + ", 1)"), refused(call)}, {"in a function in a string", in(`"${upper(secret("env:X"))}"`), refused(call)}, {"in a directive", in(`"%{ if true }${secret("env:X")}%{ endif }"`), refused(call)},
		{"in a description", "variable \"v\" {\n default = 1\n description = " + call + "\n}\n" + step("s", ""), refused(call)},
		{"in a literal argument", step("s", "pivot = "+call), finds(fails("Not a literal value", call, ""))},
		{"no kind", in(`secret("X")`), invalid(`secret("X")`)}, {"an unknown kind", in(`secret("vault:X")`), invalid(`secret("vault:X")`)}, {"no name", in(`secret("env:")`), invalid(`secret("env:")`)},
		{"a name that is computed", in(`secret("env:${run.id}")`), invalid(`secret("env:${run.id}")`)}, {"no string", in(`secret(5)`), invalid(`secret(5)`)}, {"two names", in(`secret("env:A", "env:B")`), invalid(`secret("env:A", "env:B")`)},
		{"a variable of the engine", in(`secret("env:ENGINE_DSN")`), finds(fails("Reserved variable", `secret("env:ENGINE_DSN")`, secret.ReservedEnvRule))},
		{"a file with the name of a variable of the engine", in(`secret("file:ENGINE_DSN")`), nil},
		{"for a number", "step \"s\" {\n action = agent.shop.charge\n compensation = \"none\"\n input { amount = " + call + " }\n}\n", finds(fails("Invalid value for argument", call, "a number is required"))},
		{"for an argument with few values", "step \"s\" {\n action = agent.kinds.call\n input { level = " + call + " }\n}\n", nil},
	})
}

// TestSecretsInInputs: a secret is a reference beside the JSON, in which null stands. It is
// put in its place right before the call.
func TestSecretsInInputs(t *testing.T) {
	wf := linkedWorkflow(t, `
variable "id" { type = string }
step "s" {
  action       = agent.echo.call
  compensation = "none"
  input {
    value = {
      alone = secret("env:A")
      text  = "<${secret("env:A")}|${var.id}|${secret("file:/b c")}>"
      list  = ["x", [secret("env:C")]]
      "~/"  = secret("env:D")
      open  = var.id
    }
  }
}`)
	in, err := wf.Steps[0].Input(scopeOf(bound(t, wf, "id", "7&<")))
	wantValue(t, in, err, `{"value":{"alone":null,"list":["x",[null]],"open":"7&<","text":null,"~/":null}}`)
	want := "[{/value/alone [{ env:A}]} {/value/list/1/0 [{ env:C}]} {/value/text [{< } { env:A} {|7&<| } { file:/b c} {> }]} {/value/~0~1 [{ env:D}]}]"
	if got := fmt.Sprint(in.Secrets()); got != want {
		t.Errorf("secrets\n%s, want\n%s", got, want)
	}
	var asked []string
	full, err := secret.Resolve(in, func(ref string) (string, error) {
		asked = append(asked, ref)
		return strings.ToLower(ref) + "\"\n", nil
	})
	if want := `{"value":{"alone":"env:a\"\n","list":["x",["env:c\"\n"]],"open":"7&<","text":"<env:a\"\n|7&<|file:/b c\"\n>","~/":"env:d\"\n"}}`; err != nil || string(full) != want {
		t.Errorf("resolved %s, %v; want %s", full, err, want)
	}
	if got := strings.Join(asked, " "); got != "env:A env:C env:A file:/b c env:D" {
		t.Errorf("asked for %q", got)
	}
	if !strings.Contains(string(in.JSON()), `"alone":null`) {
		t.Error("to resolve secrets changed the stored value")
	}
	boom := errors.New("not set")
	_, err = secret.Resolve(in, func(ref string) (string, error) { return "", boom })
	if !errors.Is(err, boom) || err.Error() != `secret "env:A": not set` {
		t.Errorf("error %v", err)
	}
	if plain, err := secret.Resolve(document(`{"a":1}`), nil); err != nil || string(plain) != `{"a":1}` {
		t.Errorf("without secrets: %s, %v", plain, err)
	}
	whole := dsl.NewValue([]byte("null"), nil, []dsl.Secret{{Parts: []dsl.SecretPart{{Text: "a"}, {Ref: "env:B"}}}})
	if full, err := secret.Resolve(whole, func(string) (string, error) { return "b", nil }); err != nil || string(full) != `"ab"` {
		t.Errorf("a value that is a secret: %s, %v", full, err)
	}
	for _, bad := range []dsl.Value{
		dsl.NewValue([]byte(`{"a":1}`), nil, []dsl.Secret{{Path: "/b", Parts: []dsl.SecretPart{{Text: "x"}}}}), dsl.NewValue([]byte(`[1]`), nil, []dsl.Secret{{Path: "/1"}}), dsl.NewValue([]byte(`[1]`), nil, []dsl.Secret{{Path: "/-1"}}),
		dsl.NewValue([]byte(`[1]`), nil, []dsl.Secret{{Path: "/x"}}), dsl.NewValue([]byte(`5`), nil, []dsl.Secret{{Path: "/a"}}), dsl.NewValue([]byte(`{`), nil, []dsl.Secret{{Path: "/a"}}),
	} {
		if full, err := secret.Resolve(bad, nil); err == nil {
			t.Errorf("%s with %v became %s", bad.JSON(), bad.Secrets(), full)
		}
	}
}

// TestSecretsArePassedOn: an undo can use the secrets of the input as they are. It cannot
// compute with them, and no output can hold one.
func TestSecretsArePassedOn(t *testing.T) {
	wf := linkedWorkflow(t, `
step "s" {
  action = agent.echo.call
  input { value = { token = secret("env:A"), open = "x" } }
  compensate {
    action = agent.echo.call
    input { value = [self.input.value.token, self.input.value.open] }
  }
}
step "t" {
  action = agent.echo.call
  input { value = secret("env:A") }
  compensate {
    action = agent.echo.call
    input { value = "t ${self.input.value}" }
  }
}
step "u" {
  action = agent.echo.call
  input { value = secret("env:A") }
  compensate {
    action = agent.echo.call
    input { value = { copy = self.input.value, more = "${secret("env:B")} ${self.input.value}" } }
  }
}`)
	in, err := wf.Steps[0].Input(&dsl.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	undo, err := wf.Steps[0].Undo.Input(&dsl.Scope{Self: &dsl.Self{Input: in}})
	wantValue(t, undo, err, `{"value":[null,"x"]}`)
	if got := fmt.Sprint(undo.Secrets()); got != "[{/value/0 [{ env:A}]}]" {
		t.Errorf("secrets %s", got)
	}
	in, err = wf.Steps[1].Input(&dsl.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	if undo, err := wf.Steps[1].Undo.Input(&dsl.Scope{Self: &dsl.Self{Input: in}}); err == nil {
		t.Errorf("a text was made of a secret: %s", undo.JSON())
	}
	_, err = wf.Steps[2].Undo.Input(&dsl.Scope{Self: &dsl.Self{Input: in}})
	wantError(t, err, "A secret of another value can only be passed on as it is")
}

// TestSecretsWrittenOut: a secret that is written into a workflow is a warning, which does
// not repeat it.
func TestSecretsWrittenOut(t *testing.T) {
	const hint = `Who can read the workflow or the state can read it. Write secret("env:NAME") or secret("file:PATH") instead: only the agent gets the value then.`
	in := func(value string) string { return step("s", "input { value = "+value+" }") }
	warned := func(paths string) []finding {
		return finds(warns("Secret is written out", "value", "Action echo.call (echo 1.0.0): this looks like a secret: "+paths+". "+hint))
	}
	var rules []rule
	for _, name := range []string{"password", "passwords", "db_password", "PASSWORD", "DB-Password", "passwd", "pwd", "passphrase", "secret", "client_secret", "token", "access_token", "bearer", "api_key", "apikey", "X-API-Key", "private_key", "access_key", "secret_key", "credentials", "credential", "Authorization", "cookie"} {
		rules = append(rules, rule{name, in("{ \"" + name + "\" = \"abc\" }"), warned("value." + name)})
	}
	for _, name := range []string{"public_key", "key", "max_tokens", "next_page_token", "page_token", "idempotency_token", "csrf_token", "password_hint", "tokens", "secretary", "name"} {
		rules = append(rules, rule{name, in("{ \"" + name + "\" = \"abc\" }"), nil})
	}
	rules = append(rules, []rule{
		{"in a list", in("[{ token = \"abc\" }]"), warned("value.token")},
		{"in parentheses", in("({ token = (\"abc\") })"), warned("value.token")},
		{"in a template of one", in("{ token = \"${\"abc\"}\" }"), warned("value.token")},
		{"in a function", in("merge({ token = \"abc\" })"), warned("value.token")},
		{"two of them", in("{ token = \"abc\", password = \"x\" }"), warned("value.token, value.password")},
		{"an empty text", in("{ token = \"\" }"), nil},
		{"a secret as it should be", in("{ token = secret(\"env:X\"), password = \"a ${secret(\"env:Y\")}\" }"), nil},
		{"a reference", "variable \"v\" { type = string }\n" + in("{ token = var.v, password = \"a-${var.v}\" }"), nil},
		{"a number", in("{ token = 5 }"), nil},
		{"an address with a password", in("{ url = \"https://ann:hunter2@example.com/\" }"), warned("value.url")},
		{"an address with a password under any name", in("\"postgres://ann:hunter2@db\""), warned("value")},
		{"an address in a text", in("\"see https://ann:hunter2@example.com/ for ${run.id}\""), warned("value")},
		{"an address without a password", in("{ url = \"https://ann@example.com:80/\", dsn = \"postgres://db:5432/x@y\" }"), nil},
		{"a connection string", in("{ dsn = \"host=db password=hunter2\" }"), warned("value.dsn")},
		{"a connection string under another name", in("{ text = \"host=db password=hunter2\" }"), nil},
		{"a connection string without a password", in("{ dsn = \"host=db user=ann\" }"), nil},
		{"more than ten", in("[" + strings.Repeat("{ token = \"abc\" }, ", 12) + "]"), warned(strings.TrimSuffix(strings.Repeat("value.token, ", 10), ", ") + " and 2 more")},
		{"an argument that its agent calls sensitive", "step \"s\" {\n action = agent.kinds.call\n input { hidden = \"abc\" }\n}\n", finds(warns("Secret is written out", "hidden", "this looks like a secret: hidden."))},
	}...)
	checkRules(t, rules)
	_, diags := check(files{"main.hcl": workflow(in("{ token = \"hunter2\" }"))})
	d := about(diags, "Secret is written out")[0]
	if strings.Contains(fmt.Sprintf("%+v %+v", d, *d.Snippet), "hunter2") || d.Snippet.Code != "input { value …" {
		t.Errorf("the warning shows the secret: %+v", d.Snippet)
	}
}

// TestSensitiveTexts: the texts that must not be shown, longest first, from four
// characters on.
func TestSensitiveTexts(t *testing.T) {
	v := dsl.NewValue([]byte(`{"a":"hunter2","b":{"c":["abc","äöüß",12345,true,null,"hunter2hunter2"]},"d":"open text","e/f":"slash","n":1.5,"k":{"keyname":"abcde"}}`), []string{"/a", "/b", "/e~1f", "/n", "/k", "/nope", "/b/c/9"}, nil)
	if got := strings.Join(v.SensitiveStrings(), " "); got != "hunter2hunter2 äöüß hunter2 12345 abcde slash" {
		t.Errorf("texts %q", got)
	}
	for _, v := range []dsl.Value{document(`{"a":"hunter2"}`), {}, dsl.NewValue([]byte(`{`), []string{""}, nil)} {
		if got := v.SensitiveStrings(); len(got) != 0 {
			t.Errorf("%s: texts %q", v.JSON(), got)
		}
	}
	if got := dsl.NewValue([]byte(`"whole"`), []string{""}, nil).SensitiveStrings(); len(got) != 1 || got[0] != "whole" {
		t.Errorf("texts %q", got)
	}
}

// TestSensitiveBehindBrackets: a name in brackets is the same reference as a name after a dot, also
// when the engine decides what is sensitive.
func TestSensitiveBehindBrackets(t *testing.T) {
	for _, ref := range []string{`args.t`, `args["t"]`, `"Bearer ${args["t"]}"`, `(args["t"])`} {
		src := `agent "trip" {
  plugin = "rest"
  action "peek" {
    uses      = "get"
    arguments = object({ t = string, u = string })
    input {
      url     = args["u"]
      headers = { Authorization = ` + ref + ` }
    }
  }
}
`
		m, diags := dsl.Parse(files{"main.hcl": src}.fs(), dsl.ParseOptions{})
		wantFindings(t, diags)
		hidden := map[string]bool{}
		for _, f := range m.DeclaredActions(map[string]dsl.AgentBinary{"trip": restAgents()["rest"]})["trip"]["peek"].Inputs {
			hidden[f.Name] = f.Sensitive
		}
		if len(hidden) != 2 || !hidden["t"] || hidden["u"] {
			t.Errorf("%s: sensitive arguments = %v, want only t", ref, hidden)
		}
	}
	reserve := "step \"a\" {\n action = agent.shop.reserve\n for_each = { k = 1 }\n input { sku = \"x\" }\n}\n"
	for _, ref := range []string{
		`step.a["k"].output.token`, `step.a["k"]["output"]["token"]`, `step.a["k"].output["token"]`, `step["a"]["k"]["output"].token`,
		`[for s in step.a : s["output"]["token"]]`,
	} {
		_, diags := check(files{"main.hcl": workflow(reserve + "output \"o\" { value = " + ref + " }")})
		wantFindings(t, diags, fails("Output holds a sensitive value", ref, ""))
	}
	// The key of an instance is no attribute, so this is the status of the step, and no output.
	bins := agents()
	action := bins["shop"].Schema.Actions["reserve"]
	action.Outputs = append(action.Outputs, text("status", sensitive, optional))
	bins["shop"].Schema.Actions["reserve"] = action
	_, diags := checkWith(files{"main.hcl": workflow(reserve + "output \"o\" { value = step.a[\"output\"].status }")}, dsl.ParseOptions{}, bins)
	wantFindings(t, diags)
}
