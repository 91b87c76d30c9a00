package dsl_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/saga-engine/engine/dsl/diag"
)

// A blockRule is one row of the table of blocks in docs/language.md.
type blockRule struct {
	name     string
	file     string            // with %s for the body
	args     map[string]string // each argument with a value that it takes
	required []string
	literal  []string // arguments that must be known when the file is read
	once     []string // blocks that may stand in it once
	many     []string // blocks that may be repeated
}

// body writes the block's required arguments, without some, and more lines.
func (b blockRule) body(lines string, without ...string) string {
	var out strings.Builder
	for _, name := range b.required {
		if !slices.Contains(without, name) {
			fmt.Fprintf(&out, "%s = %s\n", name, b.args[name])
		}
	}
	return strings.Replace(b.file, "%s", out.String()+lines, 1)
}

func blocks() []blockRule {
	condition := map[string]string{"condition": "true", "error_message": `"x"`}
	withCode := map[string]string{"condition": "true", "error_message": `"x"`, "error_code": `"x"`}
	variable := map[string]string{"type": "string", "default": `"a"`, "description": `"d"`, "sensitive": "true", "nullable": "false"}
	undoRetry := map[string]string{
		"max_attempts": "3", "strategy": `"linear"`, "initial_interval": `"1s"`, "multiplier": "2", "max_interval": `"9s"`,
		"jitter": `"none"`, "on": `["timeout"]`, "not_on": `["aborted"]`,
	}
	retry := maps.Clone(undoRetry)
	maps.Copy(retry, map[string]string{"on_exhausted": `"park"`, "cool_down": `"1m"`, "cool_downs": "2"})
	inWorkflow := func(block string) string { return workflow(block + step("a", "")) }
	inStep := func(block string) string { return workflow(step("a", block)) }
	undo := "  step \"s\" {\n    action = agent.echo.call\n    compensate {\n%s\n}\n}\n"
	return []blockRule{
		{name: "engine", file: "engine {\n%s\n}\n" + inWorkflow(""), args: map[string]string{"required_version": `">= 0.1"`}, literal: []string{"required_version"}},
		{
			name: "agent", file: "agent \"echo\" {\n%s\n}\n" + inWorkflow(""), literal: []string{"plugin", "version", "env"},
			args: map[string]string{"plugin": `"echo"`, "version": `"~> 1.0"`, "instances": "2", "max_concurrency": "4", "env": `["HOME"]`},
			once: []string{"config", "circuit_breaker"},
		},
		{
			name: "circuit_breaker", file: "agent \"echo\" {\ncircuit_breaker {\n%s\n}\n}\n" + inWorkflow(""),
			args: map[string]string{"trip_after": "5", "failure_ratio": "0.5", "min_calls": "10", "window": `"1m"`, "cool_down": `"30s"`, "probes": "1"},
		},
		{name: "variable of a file", file: "variable \"v\" {\n%s\n}\n" + inWorkflow(""), args: variable, literal: []string{"type", "sensitive", "nullable"}, many: []string{"validation"}},
		{name: "variable of a workflow", file: inWorkflow("variable \"v\" {\n%s\n}\n"), args: variable, literal: []string{"type", "sensitive", "nullable"}, many: []string{"validation"}},
		{name: "validation", file: "variable \"v\" {\ndefault = 1\nvalidation {\n%s\n}\n}\n" + inWorkflow(""), args: condition, required: []string{"condition", "error_message"}},
		{
			name: "workflow", file: "workflow \"w\" {\n%s\n" + step("a", "") + "}\n", args: map[string]string{"description": `"d"`, "deadline": `"1h"`},
			once: []string{"retry", "unique", "compensation"}, many: []string{"locals"},
		},
		{name: "admit", file: inWorkflow("admit \"order\" {\n%s\n}\n"), args: map[string]string{"sql": `"SELECT true FROM public.orders"`, "error_message": `"x"`, "args": "[]", "lock": `"share"`}, required: []string{"sql", "error_message"}, literal: []string{"sql", "lock"}},
		{name: "unique", file: inWorkflow("unique {\n%s\n}\n"), args: map[string]string{"key": `"k"`}, required: []string{"key"}},
		{name: "compensation", file: inWorkflow("compensation {\n%s\n}\n"), args: map[string]string{"mode": `"manual"`, "deadline": `"1h"`}},
		{name: "retry of a workflow", file: inWorkflow("retry {\n%s\n}\n"), args: retry},
		{name: "retry of a step", file: inStep("retry {\n%s\n}\n"), args: retry},
		{name: "output", file: inWorkflow("output \"o\" {\n%s\n}\n"), args: map[string]string{"value": "1", "description": `"d"`, "sensitive": "true"}, required: []string{"value"}, literal: []string{"sensitive"}},
		{
			name: "step", file: workflow("step \"s\" {\n%s\n}\n"), required: []string{"action"},
			args: map[string]string{
				"action": "agent.shop.fill", "when": "true", "for_each": `toset(["a"])`, "max_parallel": "2", "max_failures": "1", "depends_on": "[]",
				"timeout": `"1s"`, "deadline": `"1h"`, "heartbeat_timeout": `"1s"`, "idempotency_key": `"k"`, "priority": "10", "output_type": "object({ items = number })",
				"compensation": `"none"`, "pivot": "false", "idempotent": "true", "read_only": "false", "on_rerun": `"continue"`,
			},
			literal: []string{"output_type", "compensation", "pivot", "idempotent", "read_only", "on_rerun"},
			once:    []string{"input", "retry", "catch", "compensate"}, many: []string{"precondition", "postcondition"},
		},
		{name: "catch", file: inStep("catch {\n%s\n}\n"), args: map[string]string{"errors": `["*"]`, "output": "{}"}, required: []string{"errors"}},
		{name: "precondition", file: inStep("precondition {\n%s\n}\n"), args: withCode, required: []string{"condition", "error_message"}},
		{name: "postcondition", file: inStep("postcondition {\n%s\n}\n"), args: withCode, required: []string{"condition", "error_message"}},
		{
			name: "compensate", file: workflow(undo), required: []string{"action"}, literal: []string{"idempotent", "by_key"},
			args: map[string]string{"action": "agent.echo.call", "timeout": `"1s"`, "deadline": `"1h"`, "idempotent": "true", "by_key": "true"},
			once: []string{"input", "retry"},
		},
		{name: "retry of an undo", file: workflow(strings.Replace(undo, "%s", "action = agent.echo.call\nretry {\n%s\n}", 1)), args: undoRetry},
	}
}

// about returns the findings with a summary.
func about(diags diag.Diagnostics, summary string) diag.Diagnostics {
	return slices.DeleteFunc(slices.Clone(diags), func(d diag.Diagnostic) bool { return d.Summary != summary })
}

// TestArgumentsOfBlocks: a block takes the arguments of its row, each once, and no other.
// A name that is close to one of them gets a suggestion.
func TestArgumentsOfBlocks(t *testing.T) {
	for _, b := range blocks() {
		t.Run(b.name, func(t *testing.T) {
			for _, name := range slices.Sorted(maps.Keys(b.args)) {
				line := name + " = " + b.args[name] + "\n"
				if _, diags := check(files{"main.hcl": b.body(line, name)}); len(about(diags, "Unsupported argument")) > 0 || len(about(diags, "Invalid value for "+name)) > 0 {
					t.Errorf("%s is refused: %v", name, diags.Err())
				}
				if _, diags := check(files{"main.hcl": b.body(line+line, name)}); len(about(diags, "Attribute redefined")) != 1 {
					t.Errorf("%s may be written twice: %v", name, diags.Err())
				}
				_, diags := check(files{"main.hcl": b.body(name+"x = 1\n", name)})
				got := about(diags, "Unsupported argument")
				if len(got) != 1 || marked(got[0]) != name+"x" || !strings.Contains(got[0].Detail, "Did you mean \""+strings.TrimSuffix(name, "s")) {
					t.Errorf("%sx: %v, want the suggestion %q", name, diags.Err(), name)
				}
			}
			_, diags := check(files{"main.hcl": b.body("bananas = 1\n")})
			if got := about(diags, "Unsupported argument"); len(got) != 1 || got[0].Detail != `An argument named "bananas" is not expected here.` {
				t.Errorf("bananas: %v", diags.Err())
			}
		})
	}
}

// TestRequiredArguments: a block without a required argument is an error, at the block.
func TestRequiredArguments(t *testing.T) {
	for _, b := range blocks() {
		for _, name := range b.required {
			t.Run(b.name+"/"+name, func(t *testing.T) {
				_, diags := check(files{"main.hcl": b.body("", name)})
				got := about(diags, "Missing required argument")
				if len(got) != 1 || !strings.HasPrefix(marked(got[0]), strings.Fields(b.name)[0]) {
					t.Errorf("%v, want one missing argument, at the block", diags)
				}
				if _, diags := check(files{"main.hcl": b.body("")}); len(about(diags, "Missing required argument")) > 0 {
					t.Errorf("with all arguments: %v", diags.Err())
				}
			})
		}
	}
}

// TestLiteralArguments: an argument that must be known when the file is read takes no
// reference and no function. All others take expressions.
func TestLiteralArguments(t *testing.T) {
	for _, b := range blocks() {
		t.Run(b.name, func(t *testing.T) {
			for _, name := range slices.Sorted(maps.Keys(b.args)) {
				value := b.args[name]
				if name == "type" || name == "output_type" { // a type is written out, it is no value
					_, diags := check(files{"main.hcl": b.body(name+" = upper(\"string\")\n", name)})
					if !diags.HasErrors() {
						t.Errorf("%s takes a function", name)
					}
					continue
				}
				if name == "action" || name == "depends_on" || b.name == "variable of a file" && name == "default" {
					continue
				}
				_, diags := check(files{"main.hcl": b.body(name+" = try("+value+", null)\n", name)})
				refused := len(about(diags, "Not a literal value")) == 1
				if want := slices.Contains(b.literal, name); refused != want {
					t.Errorf("%s with a function: refused %t, want %t: %v", name, refused, want, diags.Err())
				}
				if refused {
					continue
				}
				if got := about(diags, "Invalid value for "+name); len(got) > 0 {
					t.Errorf("%s: %v", name, got)
				}
			}
		})
	}
}

// TestBlocksInBlocks: a block that may stand once is an error the second time, which
// names the first. Unknown blocks are refused, with a suggestion.
func TestBlocksInBlocks(t *testing.T) {
	bodies := map[string]string{
		"unique": "key = 1", "catch": `errors = ["*"]`, "compensate": "action = agent.echo.call", "validation": "condition = true\nerror_message = \"x\"",
		"precondition": "condition = true\nerror_message = \"x\"", "postcondition": "condition = true\nerror_message = \"x\"",
	}
	for _, b := range blocks() {
		t.Run(b.name, func(t *testing.T) {
			for _, name := range slices.Concat(b.once, b.many) {
				block := name + " {\n" + bodies[name] + "\n}\n"
				_, diags := check(files{"main.hcl": b.body(block + block)})
				got := about(diags, "Duplicate "+name+" block")
				if slices.Contains(b.many, name) {
					if len(got) > 0 || len(about(diags, "Unsupported block type")) > 0 {
						t.Errorf("%s cannot be repeated: %v", name, diags.Err())
					}
					continue
				}
				if len(got) != 1 || marked(got[0]) != name || !strings.Contains(got[0].Detail, "Only one "+name+" block is allowed here; the first is at main.hcl:") {
					t.Errorf("two %s blocks: %v", name, diags.Err())
				}
				_, diags = check(files{"main.hcl": b.body(name + "s {\n}\n")})
				if got := about(diags, "Unsupported block type"); len(got) != 1 || !strings.Contains(got[0].Detail, "Did you mean \""+name+"\"?") {
					t.Errorf("block %ss: %v", name, diags.Err())
				}
			}
			_, diags := check(files{"main.hcl": b.body("bananas {}\n")})
			if len(about(diags, "Unsupported block type")) != 1 {
				t.Errorf("block bananas: %v", diags.Err())
			}
		})
	}
}

// TestNames: a name begins with a letter or _ and holds letters, digits, _ and -, at most
// 100 of them. It is the same for everything that has a name.
func TestNames(t *testing.T) {
	long := strings.Repeat("a", 100)
	kinds := map[string]string{
		"workflow": "workflow \"%s\" {\n deadline = \"1h\"\n" + step("a", "") + "}\n",
		"step":     workflow("step \"%s\" {\n action = agent.echo.call\n}\n"),
		"variable": workflow("variable \"%s\" { default = 1 }\n" + step("a", "")),
		"output":   workflow("output \"%s\" { value = 1 }\n" + step("a", "")),
		"agent":    "agent \"%s\" { plugin = \"echo\" }\n" + workflow(step("a", "")),
		"library":  "library \"%s\" { source = \"./lib\" }\n" + workflow(step("a", "")),
	}
	for _, name := range []string{"a", "_", "_a", "A", "Z9", "a-b", "a_b", "a1", long} {
		for kind, file := range kinds {
			if _, diags := check(files{"main.hcl": strings.Replace(file, "%s", name, 1), "lib/a.hcl": "locals { x = 1 }\n"}); diags.HasErrors() {
				t.Errorf("%s %q: %v", kind, name, diags.Err())
			}
		}
	}
	for _, name := range []string{"", "1a", "-a", "a b", "a.b", "ä", "a/b", "a:", "[", "`", "{", "@", long + "a"} {
		for kind, file := range kinds {
			_, diags := check(files{"main.hcl": strings.Replace(file, "%s", name, 1), "lib/a.hcl": "locals { x = 1 }\n"})
			got := about(diags, "Invalid name")
			want := "The name of a " + kind + " begins with a letter or _ and holds only letters, digits, _ and -, at most 100 of them."
			if len(got) != 1 || got[0].Detail != want {
				t.Errorf("%s %q: %v", kind, name, diags.Err())
			}
		}
	}
	if _, diags := check(files{"main.hcl": workflow("locals { größe = 1 }\n" + step("a", ""))}); len(about(diags, "Invalid name")) != 1 {
		t.Errorf("a local value with letters that are not ASCII: %v", diags.Err())
	}
}

// TestLabels: a block that has a name has exactly one label, all others have none.
func TestLabels(t *testing.T) {
	for _, tt := range []struct{ name, file string }{
		{"a workflow without name", "workflow {\n}\n"},
		{"a step without name", workflow("step {\n action = agent.echo.call\n}\n")},
		{"a step with two names", workflow("step \"a\" \"b\" {\n action = agent.echo.call\n}\n")},
		{"an input with a name", workflow("step \"a\" {\n action = agent.echo.call\n input \"x\" {}\n}\n")},
		{"an engine with a name", "engine \"x\" {}\n" + workflow(step("a", ""))},
		{"locals with a name", "locals \"x\" {}\n" + workflow(step("a", ""))},
	} {
		if _, diags := check(files{"main.hcl": tt.file}); !diags.HasErrors() {
			t.Errorf("%s is not refused", tt.name)
		}
	}
}

// TestDuplicates: two things of one kind cannot have one name. The second is the error,
// and its own mistakes are found as well.
func TestDuplicates(t *testing.T) {
	for _, tt := range []struct {
		name string
		f    files
		want []finding
	}{
		{"agents", files{"a.hcl": "agent \"echo\" {}\nagent \"echo\" { instances = 0 }\n" + workflow(step("a", ""))}, finds(
			fails(`Duplicate agent "echo"`, `agent "echo"`, "The first one is at a.hcl:1."),
			fails("Invalid value for instances", "0", "a whole number from 1 to 1000 is required"))},
		{"variables of files", files{"a.hcl": "variable \"v\" { default = 1 }\n" + workflow(step("a", "")), "b.hcl": "variable \"v\" { type = strin }\n"}, finds(
			fails(`Duplicate variable "v"`, `variable "v"`, "The first one is at a.hcl:1."),
			fails("Invalid type specification", "strin", `Did you mean "string"?`))},
		{"a variable of a workflow and one of the file", files{"a.hcl": "variable \"v\" { default = 1 }\n" + workflow("variable \"v\" { default = 1 }\n"+step("a", ""))}, finds(
			fails("Variable shadows another", `variable "v"`, `Variable "v" is declared for the whole module at a.hcl:1. There is one namespace var; use another name.`))},
		{"variables of a workflow", files{"a.hcl": workflow("variable \"v\" { default = 1 }\nvariable \"v\" { default = 1 }\n" + step("a", ""))}, finds(
			fails(`Duplicate variable "v"`, `variable "v"`, "The first one is at a.hcl:3."))},
		{"local values", files{"a.hcl": workflow("locals { x = 1 }\nlocals {\n y = 1\n x = var.nope\n}\n" + step("a", ""))}, finds(
			fails(`Duplicate local value "x"`, "x", "The first one is at a.hcl:3."),
			fails("Reference to undeclared variable", "var.nope", `There is no variable named "nope".`))},
		{"steps", files{"a.hcl": workflow(step("a", "") + step("a", "timeout = 1"))}, finds(
			fails(`Duplicate step "a"`, `step "a"`, "The first one is at a.hcl:3."),
			fails("Invalid value for timeout", "1", "a duration is a string"))},
		{"outputs", files{"a.hcl": workflow(step("a", "") + "output \"o\" { value = 1 }\noutput \"o\" { value = var.nope }\n")}, finds(
			fails(`Duplicate output "o"`, `output "o"`, "The first one is at a.hcl:8."),
			fails("Reference to undeclared variable", "var.nope", ""))},
		{"workflows", files{"a.hcl": workflow(step("a", "")), "b.hcl": workflow(step("b", "when = 3"))}, finds(
			fails(`Duplicate workflow "w"`, `workflow "w"`, "The first one is at a.hcl:1."),
			fails("Invalid value for when", "3", "bool required"))},
		{"a local value of a workflow and one of the file", files{"a.hcl": "locals { x = 1 }\n" + workflow("locals { x = 2 }\n"+step("a", ""))}, finds(
			fails(`Duplicate local value "x"`, "x", "The first one is at a.hcl:1."))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, diags := check(tt.f)
			wantFindings(t, diags, tt.want...)
		})
	}
}

// TestNamesOfWorkflowsAreApart: two workflows may use the same names inside.
func TestNamesOfWorkflowsAreApart(t *testing.T) {
	one := "  deadline = \"1h\"\n  variable \"v\" { default = %d }\n  locals { l = var.v * 10 }\n" + step("s", "") + "  output \"o\" { value = local.l }\n}\n"
	def := linked(t, files{"a.hcl": "workflow \"one\" {\n" + fmt.Sprintf(one, 1) + "workflow \"two\" {\n" + fmt.Sprintf(one, 2)})
	for name, want := range map[string]string{"one": "10", "two": "20"} {
		wf := def.Workflow(name)
		v, err := wf.Outputs[0].Value(scopeOf(bound(t, wf)))
		wantValue(t, v, err, want)
	}
}

// TestConstantsThatFail: a constant that cannot be evaluated is one error, at its place.
func TestConstantsThatFail(t *testing.T) {
	const expr, why = `parseint("x", 10)`, "cannot parse"
	in := func(block string) string { return block + "\n" + workflow(step("s", "")) }
	for _, src := range []string{
		in("variable \"v\" { default = " + expr + " }"), in("variable \"v\" {\n default = 1\n description = " + expr + "\n}"), in("agent \"echo\" { instances = " + expr + " }"),
		in("agent \"echo\" {\n circuit_breaker { failure_ratio = " + expr + " }\n}"), in("agent \"echo\" {\n circuit_breaker { window = " + expr + " }\n}"),
		workflow("compensation { mode = " + expr + " }\n" + step("s", "")), workflow("output \"o\" {\n value = 1\n description = " + expr + "\n}\n" + step("s", "")),
		workflow(step("s", "timeout = "+expr)), workflow(step("s", "when = "+expr)), workflow(step("s", "for_each = "+expr)), workflow(step("s", "input { value = "+expr+" }")), workflow(step("s", "catch { errors = "+expr+" }")),
		workflow("unique { key = " + expr + " }\n" + step("s", "")), workflow("locals { l = " + expr + " }\n" + step("s", "input { value = local.l }")), workflow("retry { max_attempts = " + expr + " }\n" + step("s", "")),
	} {
		_, diags := check(files{"main.hcl": src})
		if got := diags.Errors(); len(got) != 1 || got[0].Summary != "Invalid function argument" || !strings.Contains(got[0].Detail, why) || !strings.Contains(expr, marked(got[0])) || marked(got[0]) == "" {
			t.Errorf("%s\nfound %v", src, got)
		}
	}
	const wrong = `[1, 2].a`
	for _, name := range []string{"plugin", "version", "env"} {
		_, diags := check(files{"main.hcl": in("agent \"echo\" { " + name + " = " + wrong + " }")})
		if got := diags.Errors(); len(got) != 1 || got[0].Summary != "Unsupported attribute" {
			t.Errorf("%s: found %v", name, got)
		}
	}
}
