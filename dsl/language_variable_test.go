package dsl_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/saga-engine/engine/dsl"
)

// variableOf finds a declaration of a workflow.
func variableOf(t *testing.T, wf *dsl.Workflow, name string) dsl.Variable {
	t.Helper()
	i := slices.IndexFunc(wf.Variables, func(v dsl.Variable) bool { return v.Name == name })
	if i < 0 {
		t.Fatalf("the workflow has no variable %q", name)
	}
	return wf.Variables[i]
}

// given is a list of values by flag.
func given(pairs ...string) []dsl.Assignment {
	var out []dsl.Assignment
	for i := 0; i+1 < len(pairs); i += 2 {
		out = append(out, dsl.Assignment{Name: pairs[i], Text: pairs[i+1], Source: "--var"})
	}
	return out
}

// TestTypesOfVariables: a value is converted to the type that the variable declares; what
// cannot be is refused.
func TestTypesOfVariables(t *testing.T) {
	for _, tt := range []struct{ typ, value, want string }{
		{"string", "hello", `"hello"`}, {"string", "", `""`}, {"string", `"quoted"`, `"\"quoted\""`}, {"string", "5", `"5"`}, {"string", "null", `"null"`}, {"string", "[1]", `"[1]"`}, {"string", "${x}", `"${x}"`},
		{"number", "5", "5"}, {"number", `"5"`, "5"}, {"number", "-2.50", "-2.5"}, {"number", "five", "error: a number is required"}, {"number", "[5]", "error: number required, but have tuple"}, {"number", "null", "null"},
		{"number", "1 + 1", "2"},
		{"bool", "true", "true"}, {"bool", `"false"`, "false"}, {"bool", "1", "error: bool required"}, {"bool", "yes", "error: a bool is required"},
		{"list(string)", `["a", "b"]`, `["a","b"]`}, {"list(string)", `["a", 1, true]`, `["a","1","true"]`}, {"list(string)", "[]", "[]"}, {"list(string)", "a", "error: only plain values"}, {"list(string)", `"a"`, "error: list of string required"},
		{"list(number)", `[1, "2"]`, `[1,2]`}, {"list(number)", `["x"]`, "error: a number is required"}, {"list(number)", "[null]", "[null]"},
		{"set(string)", `["b", "a", "b"]`, `["a","b"]`}, {"set(number)", `[2, 1, 2.0]`, `[1,2]`},
		{"map(string)", `{ b = 1, a = "x" }`, `{"a":"x","b":"1"}`}, {"map(number)", `{ a = "x" }`, "error: a number is required"}, {"map(string)", "{}", "{}"}, {"map(list(number))", `{ a = [1] }`, `{"a":[1]}`},
		{"tuple([string, number])", `["a", 1]`, `["a",1]`}, {"tuple([string, number])", `["a"]`, "error: tuple required"},
		{"object({ a = string })", `{ a = 1 }`, `{"a":"1"}`}, {"object({ a = string })", `{ a = "x", b = 2 }`, `{"a":"x"}`}, {"object({ a = string })", `{}`, `error: attribute "a" is required`},
		{"object({ a = optional(string) })", `{}`, `{"a":null}`}, {"object({ a = optional(string, \"d\") })", `{}`, `{"a":"d"}`}, {"object({ a = optional(string, \"d\") })", `{ a = null }`, `{"a":"d"}`}, {"object({ a = optional(number, 5) })", `{ a = "7" }`, `{"a":7}`},
		{"object({ in = optional(object({ n = optional(number, 1), s = string }), { s = \"x\" }) })", `{}`, `{"in":{"n":1,"s":"x"}}`},
		{"object({ in = optional(object({ n = optional(number, 1), s = string }), { s = \"x\" }) })", `{ in = { s = "y" } }`, `{"in":{"n":1,"s":"y"}}`},
		{"list(object({ a = string, n = optional(number, 3) }))", `[{ a = "x" }, { a = "y", n = 4 }]`, `[{"a":"x","n":3},{"a":"y","n":4}]`},
		{"map(object({ n = optional(number, 3) }))", `{ k = {}, l = { n = null } }`, `{"k":{"n":3},"l":{"n":3}}`},
		{"any", `["a", 1, null]`, `["a",1,null]`}, {"any", `{ a = { b = [] } }`, `{"a":{"b":[]}}`}, {"any", `"a"`, `"a"`}, {"any", "5", "5"}, {"any", "hello", "error: only plain values"},
		{"list(any)", `["a", 1]`, `["a",1]`}, {"map(any)", `{ a = 1, b = "x" }`, `{"a":1,"b":"x"}`}, {"object({ a = any })", `{ a = [1, "b"] }`, `{"a":[1,"b"]}`},
		{"number", "upper(\"x\")", "error: a number is required"}, {"list(string)", `[upper("x")]`, "error: only plain values may stand here"}, {"list(string)", "[var.x]", "error: only plain values may stand here"}, {"list(string)", "[", "error: does not fit its type list(string)"},
	} {
		t.Run(tt.typ+" "+tt.value, func(t *testing.T) {
			wf := linkedWorkflow(t, "variable \"v\" { type = "+tt.typ+" }\n"+step("a", "")+"output \"o\" { value = var.v }\n")
			vars, diags := wf.Bind(given("v", tt.value))
			part, refused := strings.CutPrefix(tt.want, "error: ")
			if refused {
				if !diags.HasErrors() || !strings.Contains(diags.Err().Error(), part) || !strings.Contains(diags.Err().Error(), "--var gives variable \"v\" a value that does not fit its type "+strings.ReplaceAll(tt.typ, " ", "")) {
					t.Errorf("%s, %v; want the error %q", vars.JSON(), diags.Err(), part)
				}
				return
			}
			wantValue(t, vars, diags.Err(), `{"v":`+tt.want+`}`)
			if diags.HasErrors() {
				return
			}
			v, err := wf.Outputs[0].Value(scopeOf(vars)) // and it stays what it is in the run
			wantValue(t, v, err, tt.want)
		})
	}
}

// TestDeclarationsOfVariables: what a workflow says of its variables.
func TestDeclarationsOfVariables(t *testing.T) {
	wf := linked(t, files{"main.hcl": "variable \"region\" {\n default = \"eu\"\n description = \"Where.\"\n}\n" + workflow(`
variable "typed" {
  type        = map(object({ n = number }))
  description = upper("all of it")
  sensitive   = true
  nullable    = false
}
variable "plain" {}
variable "null" { default = null }
`+step("a", ""))}).Workflow("w")
	var got []string
	for _, v := range wf.Variables {
		got = append(got, fmt.Sprintf("%s %q %s sensitive=%t nullable=%t default=%t deployment=%t", v.Name, v.Description, v.Type, v.Sensitive, v.Nullable, v.HasDefault, v.Deployment))
	}
	want := []string{
		`null "" any sensitive=false nullable=true default=true deployment=false`,
		`plain "" any sensitive=false nullable=true default=false deployment=false`,
		`region "Where." string sensitive=false nullable=true default=true deployment=true`,
		`typed "ALL OF IT" map(object({n=number})) sensitive=true nullable=false default=false deployment=false`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("variables, by name\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestMistakesInVariables: what a declaration of a variable cannot say.
func TestMistakesInVariables(t *testing.T) {
	checkRules(t, []rule{
		{"an unknown type", "variable \"v\" { type = strin }\n" + step("a", ""), finds(fails("Invalid type specification", "strin", `Did you mean "string"?`))},
		{"a type without its elements", "variable \"v\" { type = list }\n" + step("a", ""), finds(fails("Invalid type specification", "list", "requires one argument specifying the element type"))},
		{"a type in quotes", "variable \"v\" { type = \"string\" }\n" + step("a", ""), finds(fails("Invalid type specification", `"string"`, "type"))},
		{"a default of another type", "variable \"v\" {\n type = number\n default = \"x\"\n}\n" + step("a", ""), finds(
			fails("Invalid default value", `"x"`, `The default of variable "v" does not fit its type number: a number is required.`))},
		{"a default that lacks an attribute", "variable \"v\" {\n type = object({ a = string, b = number })\n default = { a = \"x\" }\n}\n" + step("a", ""), finds(
			fails("Invalid default value", `{ a = "x" }`, `attribute "b" is required`))},
		{"a default that refers to something", "variable \"v\" { default = var.w }\nvariable \"w\" { default = 1 }\n" + step("a", ""), finds(
			fails("Reference not available here", "var.w", "A default cannot refer to anything."))},
		{"a default that is a secret", "variable \"v\" { default = secret(\"env:X\") }\n" + step("a", ""), finds(
			fails("secret() not allowed here", `secret("env:X")`, "secret() may stand only in an agent's config"))},
		{"null, where it is not allowed", "variable \"v\" {\n default = null\n nullable = false\n}\n" + step("a", ""), finds(
			fails("Invalid default value", "null", `Variable "v" is not nullable, so its default cannot be null.`))},
		{"nullable and sensitive are true or false", "variable \"v\" {\n default = 1\n nullable = \"no\"\n sensitive = null\n}\n" + step("a", ""), finds(
			fails("Invalid value for nullable", `"no"`, "nullable is true or false."), fails("Invalid value for sensitive", "null", "sensitive is true or false."))},
		{"a description is a string", "variable \"v\" {\n default = 1\n description = [\"a\"]\n}\nvariable \"w\" {\n default = 1\n description = null\n}\n" + step("a", ""), finds(
			fails("Invalid value for description", `["a"]`, "description is a string."), fails("Invalid value for description", "null", "description is a string."))},
		{"a condition that is none", "variable \"v\" {\n default = 1\n validation {\n  condition = 5\n  error_message = [\"a\"]\n }\n}\n" + step("a", ""), finds(
			fails("Invalid value for condition", "5", "bool required, but have number"), fails("Invalid value for error_message", `["a"]`, "string required, but have tuple"))},
		{"a condition about another variable", "variable \"v\" {\n default = 1\n validation {\n  condition = var.w > 1\n  error_message = \"x\"\n }\n}\nvariable \"w\" { default = 1 }\n" + step("a", ""), nil},
	})
	_, diags := check(files{"main.hcl": "variable \"v\" {\n  default = 1\n  validation {\n    condition     = var.n > 1\n    error_message = \"x\"\n  }\n}\n" + workflow("variable \"n\" { default = 1 }\n"+step("a", ""))})
	wantFindings(t, diags, fails("Reference to undeclared variable", "var.n", `There is no variable named "n". Only variables declared at the top of a file can be used here, not those of a workflow.`))
}

// TestDefaultsMayCallFunctions: a default is a constant, in which functions may stand.
func TestDefaultsMayCallFunctions(t *testing.T) {
	wf := linkedWorkflow(t, "variable \"v\" { default = [upper(\"a\"), env(\"REGION\"), 1 + 1] }\nvariable \"n\" {\n type = number\n default = \"5\"\n}\n"+step("a", ""))
	wantValue(t, bound(t, wf), nil, `{"n":5,"v":["A","eu",2]}`)
}

// TestRequiredVariables: a variable without default needs a value. Null counts as one only
// where the variable may be null.
func TestRequiredVariables(t *testing.T) {
	wf := linkedWorkflow(t, `
variable "must" {
  type        = number
  description = "How many."
}
variable "never_null" {
  type     = number
  nullable = false
  default  = 7
}
variable "must_not_be_null" {
  type     = number
  nullable = false
}
`+step("a", ""))
	for _, tt := range []struct {
		name  string
		given []dsl.Assignment
		want  string // JSON, or parts of messages
	}{
		{"all", given("must", "1", "must_not_be_null", "2"), `{"must":1,"must_not_be_null":2,"never_null":7}`},
		{"null is a value", given("must", "null", "must_not_be_null", "2"), `{"must":null,"must_not_be_null":2,"never_null":7}`},
		{"null is the default", given("must", "1", "must_not_be_null", "2", "never_null", "null"), `{"must":1,"must_not_be_null":2,"never_null":7}`},
		{"a value", given("must", "1", "must_not_be_null", "2", "never_null", "8"), `{"must":1,"must_not_be_null":2,"never_null":8}`},
		{"the last one counts", given("must", "x", "must", "3", "must_not_be_null", "2"), `{"must":3,"must_not_be_null":2,"never_null":7}`},
		{"nothing", nil, `Variable "must" has no default, so it needs a value (How many): --var must=VALUE, a values file, or the environment variable ENGINE_VAR_must.|Variable "must_not_be_null" has no default, so it needs a value: --var`},
		{"null where it is not allowed", given("must", "1", "must_not_be_null", "null"), `--var gives variable "must_not_be_null" the value null, which it does not allow.`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v, diags := wf.Bind(tt.given)
			if strings.HasPrefix(tt.want, "{") {
				wantValue(t, v, diags.Err(), tt.want)
				return
			}
			parts := strings.Split(tt.want, "|")
			if len(diags) != len(parts) {
				t.Fatalf("findings %v, want %d", diags, len(parts))
			}
			for i, part := range parts {
				wantError(t, diags[i], part)
			}
			if !v.IsNull() {
				t.Errorf("value %s beside errors", v.JSON())
			}
		})
	}
}

// TestValidation: the condition of a variable sees its value, those of other variables and
// the local values of its file. Each that is not met is an error with its message.
func TestValidation(t *testing.T) {
	src := files{"main.hcl": "variable \"region\" {\n  default = \"eu\"\n  validation {\n    condition     = contains(local.regions, var.region)\n    error_message = \"not ${var.region}\"\n  }\n}\nlocals { regions = [\"eu\", \"us\"] }\n" + workflow(`
variable "low" {
  default = 1
  validation {
    condition     = var.low > 0
    error_message = "low is not positive"
  }
  validation {
    condition     = var.low < var.high
    error_message = "low ${var.low} is not below high ${var.high}"
  }
}
variable "high" { default = 10 }
variable "pin" {
  default   = "1234"
  sensitive = true
  validation {
    condition     = length(var.pin) == 4
    error_message = "pin ${var.pin} has not four digits"
  }
}
variable "odd" {
  default = "x"
  validation {
    condition     = parseint(var.odd, 36) > 0
    error_message = "odd"
  }
}
variable "silent" {
  default = "a"
  validation {
    condition     = var.silent == "a"
    error_message = var.silent == "null" ? null : upper(var.silent)
  }
}
`+step("a", ""))}
	wf := linked(t, src).Workflow("w")
	for _, tt := range []struct {
		name  string
		given []dsl.Assignment
		want  []string
	}{
		{"all met", given("low", "9"), nil},
		{"of the file", given("region", "cn"), []string{"not cn\nThe value comes from --var."}},
		{"one of two", given("low", "11"), []string{"low 11 is not below high 10"}},
		{"both", given("low", "-1", "high", "-2"), []string{"low is not positive", "low -1 is not below high -2"}},
		{"through another variable", given("high", "1"), []string{"low 1 is not below high 1"}},
		{"a sensitive value is not shown", given("pin", "12345"), []string{"The condition is not met. The message is hidden, because it holds a sensitive value."}},
		{"a condition that cannot be evaluated", given("odd", "?"), []string{"cannot parse"}},
		{"a message that is no string", given("silent", "null"), []string{"The condition is not met, and its error message is not a string."}},
		{"a message of a function", given("silent", "b"), []string{"B\nThe value comes from --var."}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, diags := wf.Bind(tt.given)
			if len(diags) != len(tt.want) {
				t.Fatalf("findings %v, want %q", diags, tt.want)
			}
			for i, part := range tt.want {
				if !strings.Contains(diags[i].Detail, part) {
					t.Errorf("%q, want %q", diags[i].Detail, part)
				}
			}
		})
	}
	assigned, diags := dsl.ParseVars("prod.vars.hcl", []byte("\nlow = 20\n"))
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	_, diags = wf.Bind(assigned)
	if len(diags) != 1 || diags[0].Range.String() != "prod.vars.hcl:2" || marked(diags[0]) != "low" ||
		diags[0].Detail != "low 20 is not below high 10\nThis was checked by the validation rule at main.hcl:18." {
		t.Errorf("a value of a file: %+v", diags)
	}
	_, diags = wf.Bind(given("low", "11"))
	if got := diags[0].Snippet; got == nil || fmt.Sprint(got.Values) != "[{var.high is 10} {var.low is 11}]" {
		t.Errorf("the values that a condition saw: %+v", got)
	}
	_, diags = wf.Bind(given("pin", "12345"))
	if got := diags[0].Snippet; got == nil || fmt.Sprint(got.Values) != "[{var.pin has a sensitive value}]" {
		t.Errorf("the values that a sensitive condition saw: %+v", got)
	}
}

// TestUndeclaredValues: a value for a variable that does not exist is an error, with the
// name that was probably meant. A value from the environment may be for another workflow.
func TestUndeclaredValues(t *testing.T) {
	def := linked(t, files{"main.hcl": workflow("variable \"region\" { default = 1 }\n"+step("a", "")) + strings.Replace(workflow("variable \"other\" { default = 1 }\n"+step("a", "")), `"w"`, `"x"`, 1)})
	wf := def.Workflow("w")
	for _, tt := range []struct {
		assigned dsl.Assignment
		want     string
	}{
		{dsl.Assignment{Name: "regoin", Text: "1", Source: "--var"}, `--var gives a value to "regoin", but there is no such variable. Did you mean "region"?`},
		{dsl.Assignment{Name: "other", Text: "1", Source: "--var"}, `--var gives a value to "other", but there is no such variable.`},
		{dsl.Assignment{Name: "other", Text: "1", Source: "ENGINE_VAR_other"}, ""},
		{dsl.Assignment{Name: "another", Text: "1", Source: "ENGINE_VAR_another"}, `ENGINE_VAR_another gives a value to "another"`},
		{dsl.Assignment{Name: "another", Text: "1"}, `An assignment gives a value to "another"`},
	} {
		_, diags := wf.Bind([]dsl.Assignment{tt.assigned})
		if tt.want == "" {
			wantFindings(t, diags)
			continue
		}
		wantFindings(t, diags, fails("Value for undeclared variable", "", tt.want))
	}
}

// TestValuesFiles: a values file holds attributes with plain values.
func TestValuesFiles(t *testing.T) {
	list, diags := dsl.ParseVars("a.vars.hcl", []byte("b = [1, \"x\"]\na = { k = \"${\"v\"}\" }\nc = <<EOT\ntext\nEOT\n"))
	wantFindings(t, diags)
	var got []string
	for _, a := range list {
		got = append(got, a.Name+" "+a.Source+" "+a.Where.String())
	}
	if text := strings.Join(got, ", "); text != "b a.vars.hcl:1 a.vars.hcl:1, a a.vars.hcl:2 a.vars.hcl:2, c a.vars.hcl:3 a.vars.hcl:3" {
		t.Errorf("values %s", text)
	}
	wf := linkedWorkflow(t, "variable \"a\" {}\nvariable \"b\" {}\nvariable \"c\" {}\n"+step("s", ""))
	v, diags := wf.Bind(list)
	wantValue(t, v, diags.Err(), `{"a":{"k":"v"},"b":[1,"x"],"c":"text\n"}`)

	list, diags = dsl.ParseVars("a.vars.hcl.json", []byte(`{"b": [1, "${\"x\"}", null], "a": {"k": true}, "c": "plain"}`))
	wantFindings(t, diags)
	v, diags = wf.Bind(list)
	wantValue(t, v, diags.Err(), `{"a":{"k":true},"b":[1,"x",null],"c":"plain"}`)

	for _, tt := range []struct {
		name, src string
		want      finding
	}{
		{"a block", "a {\n}\n", fails("Unexpected \"a\" block", "a", "Blocks are not allowed here. For an argument that is an object write NAME = { ... }.")},
		{"a reference", "a = local.x\n", fails("Reference not available here", "local.x", "A values file holds plain values; it cannot refer to anything.")},
		{"a function", "a = [upper(\"x\")]\n", fails("Function not available here", `upper("x")`, "A values file holds plain values; it cannot call functions.")},
		{"an unknown function", "a = upcase(\"x\")\n", fails("Call to unknown function", "upcase", `There is no function named "upcase".`)},
		{"not HCL", "a = \n", fails("Invalid expression", "", "Expected the start of an expression")},
		{"twice", "a = 1\na = 2\n", fails("Attribute redefined", "a", "The argument \"a\" was already set at a.vars.hcl:1,1-2.")},
		{"too deep", "a = " + strings.Repeat("[", 300) + "\n", fails("Nesting too deep", "[", "nested at most 200 deep")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, diags := dsl.ParseVars("a.vars.hcl", []byte(tt.src))
			wantFindings(t, diags, tt.want)
			if tt.name != "twice" && len(got) != 0 {
				t.Errorf("values %+v", got)
			}
		})
	}
	for _, src := range []string{"[1]", `{"a": `, `"x"`, `{"a": "${var.x}"}`, `{"a": "${upper(\"x\")}"}`, strings.Repeat("[", 300)} {
		if got, diags := dsl.ParseVars("a.vars.json", []byte(src)); !diags.HasErrors() || len(got) != 0 {
			t.Errorf("%.40s: %+v, %v", src, got, diags)
		}
	}
}

// TestVariablesOfDeployments: a variable of a file is seen by every workflow, and by the
// config of agents, which sees nothing else.
func TestVariablesOfDeployments(t *testing.T) {
	src := files{"main.hcl": "variable \"region\" { default = \"eu\" }\nlocals { where = \"${var.region}-1\" }\nagent \"shop\" {\n  config {\n    region = local.where\n    port   = 8443\n  }\n}\n" +
		workflow("step \"s\" {\n action = agent.shop.stock\n input { sku = local.where }\n}\n") +
		strings.Replace(workflow("output \"o\" { value = var.region }\n"+step("s", "")), `"w"`, `"x"`, 1)}
	def := linked(t, src)
	w, x := def.Workflow("w"), def.Workflow("x")
	if v := variableOf(t, w, "region"); !v.Deployment || v.Type != "string" {
		t.Errorf("variable %+v", v)
	}
	scope := scopeOf(bound(t, w, "region", "us"))
	v, err := w.Agents["shop"].Config(scope)
	wantValue(t, v, err, `{"port":8443,"region":"us-1"}`)
	v, err = w.Steps[0].Input(scope)
	wantValue(t, v, err, `{"sku":"us-1"}`)
	v, err = x.Outputs[0].Value(scopeOf(bound(t, x)))
	wantValue(t, v, err, `"eu"`)
	if _, used := x.Agents["shop"]; used {
		t.Error("a workflow knows agents that it does not use")
	}
}
