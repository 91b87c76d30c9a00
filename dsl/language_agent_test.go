package dsl_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/dsl/secret"
	"github.com/saga-engine/engine/sdk/schema"
)

// agentBlock is a module in which agent "shop" has this block.
func agentBlock(body string) files {
	return files{"main.hcl": "agent \"shop\" {\n" + body + "\n}\n" + workflow("step \"s\" {\n action = agent.shop.stock\n input { sku = \"a\" }\n}\n")}
}

// agentOf links a module and returns its agent "shop".
func agentOf(t *testing.T, body string) *dsl.Agent {
	t.Helper()
	return linked(t, agentBlock(body)).Workflow("w").Agents["shop"]
}

// TestAgentsOfModules: an agent without a block is implied, its plugin has its name. What
// a module uses is listed by name, with the place that a message can show.
func TestAgentsOfModules(t *testing.T) {
	m, diags := dsl.Parse(files{"main.hcl": "agent \"payment\" {\n  plugin  = \"shop\"\n  version = \"~> 1.2\"\n}\nagent \"unused\" { plugin = \"echo\" }\n" +
		workflow("step \"a\" {\n action = agent.paymnt.refund\n compensate {\n  action = agent.echo.call\n }\n}\n"+step("b", ""))}.fs(), dsl.ParseOptions{})
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	var got []string
	for _, a := range m.Agents() {
		got = append(got, fmt.Sprintf("%s %s %q %s %q", a.Name, a.Plugin, a.Constraint, a.Where, a.Similar))
	}
	want := []string{
		`echo echo "" main.hcl:11 ""`, `payment shop "~> 1.2" main.hcl:2 ""`,
		`paymnt paymnt "" main.hcl:9 "payment"`, `unused echo "" main.hcl:5 ""`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("agents\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestDefaultsOfAgents: what an agent is that says nothing.
func TestDefaultsOfAgents(t *testing.T) {
	got := agentOf(t, "")
	want := &dsl.Agent{
		Name: "shop", Plugin: "shop", Version: "1.4.0", Checksum: strings.Repeat("ab", 32), Instances: 1,
		Breaker: dsl.Breaker{TripAfter: 5, Window: time.Minute, Cooldown: 30 * time.Second, Probes: 1},
	}
	if got.Config == nil {
		t.Fatal("an agent whose schema has a config with a default has none")
	}
	v, err := got.Config(&dsl.Scope{})
	wantValue(t, v, err, `{"port":443}`)
	got.Config = nil
	if !reflect.DeepEqual(got, want) {
		t.Errorf("agent %+v, want %+v", got, want)
	}
	if a := linkedWorkflow(t, step("a", "")).Agents["echo"]; a.Config != nil || a.Name != "echo" || a.Plugin != "echo" {
		t.Errorf("an implied agent without a config: %+v", a)
	}
}

// TestNumbersOfAgents: the numbers of an agent block and of its circuit breaker, at their
// bounds.
func TestNumbersOfAgents(t *testing.T) {
	for _, tt := range []struct {
		name   string
		inside string
		get    func(*dsl.Agent) any
		cases  []settingCase
	}{
		{"instances", "%s", func(a *dsl.Agent) any { return a.Instances }, []settingCase{
			{"1", 1, ""}, {"1000", 1000, ""}, {`length("ab")`, 2, ""}, {`env("PORT") == "8080" ? 3 : 1`, 3, ""},
			{"0", nil, "a whole number from 1 to 1000 is required"}, {"1001", nil, "from 1 to 1000"}, {"1.5", nil, "from 1 to 1000"}, {"null", nil, "from 1 to 1000"}, {`"x"`, nil, "from 1 to 1000"},
		}},
		{"max_concurrency", "%s", func(a *dsl.Agent) any { return a.MaxConcurrency }, []settingCase{
			{"1", 1, ""}, {"1000000", 1_000_000, ""}, {"0", nil, "a whole number from 1 to 1000000 is required"}, {"1000001", nil, "from 1 to 1000000"},
		}},
		{"rate_limit", "%s", func(a *dsl.Agent) any { return a.RateLimit.String() }, []settingCase{
			{`"1/s"`, "1/s", ""}, {`"1000000/d"`, "1000000/d", ""}, {`"10/m"`, "10/m", ""}, {`" 5 / h "`, "5/h", ""}, {`"${length("ab")}/h"`, "2/h", ""},
			{`"0/s"`, nil, "the number of calls is a whole number from 1 to 1000000"}, {`"1000001/s"`, nil, "from 1 to 1000000"}, {`"99999999999999999999/s"`, nil, "from 1 to 1000000"},
			{`"10/w"`, nil, `"w" is not a period`}, {`"10/sec"`, nil, `"sec" is not a period`},
			{"100", nil, `such as "100/s"`}, {`"100"`, nil, `such as "100/s"`}, {`"-1/s"`, nil, `such as "100/s"`}, {`"1.5/s"`, nil, `such as "100/s"`}, {`""`, nil, `such as "100/s"`}, {"null", nil, `such as "100/s"`},
		}},
		{"trip_after", "circuit_breaker {\n%s\n}", func(a *dsl.Agent) any { return a.Breaker.TripAfter }, []settingCase{
			{"1", 1, ""}, {"2147483647", 2147483647, ""}, {"0", nil, "a whole number of at least 1 is required"}, {"2147483648", nil, "a whole number of at least 1 is required"},
		}},
		{"min_calls", "circuit_breaker {\n%s\n}", func(a *dsl.Agent) any { return a.Breaker.MinCalls }, []settingCase{{"1", 1, ""}, {"0", nil, "a whole number of at least 1"}}},
		{"probes", "circuit_breaker {\n%s\n}", func(a *dsl.Agent) any { return a.Breaker.Probes }, []settingCase{{"2", 2, ""}, {"0", nil, "a whole number of at least 1"}}},
		{"window", "circuit_breaker {\n%s\n}", func(a *dsl.Agent) any { return a.Breaker.Window }, []settingCase{{`"2m"`, 2 * time.Minute, ""}, {`"0s"`, nil, "a duration is greater than zero"}, {"60", nil, noDuration}}},
		{"cool_down", "circuit_breaker {\n%s\n}", func(a *dsl.Agent) any { return a.Breaker.Cooldown }, []settingCase{{`"1m"`, time.Minute, ""}, {`"later"`, nil, noDuration}}},
		{"failure_ratio", "circuit_breaker {\n%s\n}", func(a *dsl.Agent) any { return a.Breaker.FailureRatio }, []settingCase{
			{"0.5", 0.5, ""}, {`"0.5"`, 0.5, ""}, {"1", 1.0, ""}, {"0.001", 0.001, ""},
			{"0", nil, "failure_ratio is a number above 0 and at most 1."}, {"1.01", nil, "failure_ratio is a number above 0 and at most 1."}, {"-0.5", nil, "above 0"}, {`"half"`, nil, "above 0"}, {"null", nil, "above 0"},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, c := range tt.cases {
				body := strings.Replace(tt.inside, "%s", tt.name+" = "+c.value, 1)
				def, diags := check(agentBlock(body))
				if c.want == nil {
					if got := about(diags, "Invalid value for "+tt.name); len(got) != 1 || !strings.Contains(got[0].Detail, c.part) || marked(got[0]) != c.value {
						t.Errorf("%s: %v, want %q", c.value, diags.Err(), c.part)
					}
					continue
				}
				if diags.HasErrors() {
					t.Errorf("%s: %v", c.value, diags.Err())
				} else if got := tt.get(def.Workflow("w").Agents["shop"]); got != c.want {
					t.Errorf("%s: %v, want %v", c.value, got, c.want)
				}
			}
			_, diags := check(files{"main.hcl": "variable \"n\" { default = 1 }\n" + agentBlock(strings.Replace(tt.inside, "%s", tt.name+" = var.n", 1))["main.hcl"]})
			wantFindings(t, diags, fails("Reference not available here", "var.n", tt.name+" must be known before a run, so it cannot refer to anything; env() may be used."))
		})
	}
}

// TestBreakerByRatio: a ratio of failures needs a number of calls, and replaces the limit
// of consecutive failures unless both are written.
func TestBreakerByRatio(t *testing.T) {
	for body, want := range map[string]string{
		"":                   "5 0 0",
		"circuit_breaker {}": "5 0 0",
		"circuit_breaker { failure_ratio = 0.5 }":                   "0 0.5 10",
		"circuit_breaker {\nfailure_ratio = 0.5\ntrip_after = 3\n}": "3 0.5 10",
		"circuit_breaker {\nfailure_ratio = 0.5\nmin_calls = 4\n}":  "0 0.5 4",
		"circuit_breaker { trip_after = 7 }":                        "7 0 0",
	} {
		b := agentOf(t, body).Breaker
		if got := fmt.Sprint(b.TripAfter, b.FailureRatio, b.MinCalls); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
}

// TestEnvOfAgents: an agent gets the variables of the environment that its block names.
func TestEnvOfAgents(t *testing.T) {
	if got := agentOf(t, `env = ["PATH", "HOME", "_x1", "PATH"]`).Env; strings.Join(got, " ") != "HOME PATH PATH _x1" {
		t.Errorf("env %q", got)
	}
	if got := agentOf(t, `env = []`).Env; got == nil || len(got) != 0 {
		t.Errorf("an empty list: %v", got)
	}
	const what = "env is a list of names of environment variables."
	for value, want := range map[string]string{
		`"PATH"`: what, `["A B"]`: what, `["1A"]`: what, `[""]`: what, `["A=B"]`: what, `[null]`: what, `null`: what, `[["A"]]`: what, `["Ä"]`: what,
		`["ENGINE_DSN"]`: `env holds "ENGINE_DSN": ` + secret.ReservedEnvRule, `["HOME", "pgpass"]`: `env holds "pgpass"`, `["Engine_X"]`: `env holds "Engine_X"`,
	} {
		_, diags := check(agentBlock("env = " + value))
		if diags = diags.Errors(); len(diags) != 1 || !strings.Contains(diags[0].Detail, want) || marked(diags[0]) != value {
			t.Errorf("%s: %v, want %q", value, diags, want)
		}
	}
}

// TestVersionsOfAgents: the version of the binary must satisfy the constraint of the
// block. What follows a hyphen does not count; a binary without version is not checked.
func TestVersionsOfAgents(t *testing.T) {
	bins := func(version string) map[string]dsl.AgentBinary {
		out := agents()
		bin := out["shop"]
		bin.Version = version
		out["shop"] = bin
		return out
	}
	for _, tt := range []struct{ constraint, version, want string }{
		{"~> 1.2", "1.4.0", ""}, {">= 1.4.0", "1.4.0-rc1", ""}, {"1.4.0", "1.4.0", ""}, {"< 2, > 1", "1.4.0", ""}, {"~> 9", "", ""},
		{"~> 1.5", "1.4.0", `Agent "shop" needs engine-agent-shop ~> 1.5; the one found is 1.4.0. Run engine init --upgrade to choose again.`},
		{"~> 1.5", "new", `the one found is new.`},
	} {
		src := agentBlock("version = \"" + tt.constraint + "\"")
		_, diags := checkWith(src, dsl.ParseOptions{}, bins(tt.version))
		if tt.want == "" {
			wantFindings(t, diags)
			continue
		}
		wantFindings(t, diags, fails("Unsupported agent version", `agent "shop"`, tt.want))
	}
	for _, bad := range []string{"", "new", "1.x", "~~ 1"} {
		_, diags := check(agentBlock("version = \"" + bad + "\""))
		wantFindings(t, diags, fails("Invalid version constraint", `"`+bad+`"`, `Write a constraint such as ">= 0.3" or "~> 1.2".`))
	}
	_, diags := check(agentBlock("version = 1"))
	wantFindings(t, diags, fails("Invalid value for version", "1", "version is a string."))
	_, diags = check(agentBlock("plugin = \"a/b\""))
	wantFindings(t, diags, fails("Invalid name", `"a/b"`, "plugin is the NAME of a binary engine-agent-NAME."))
}

// TestMissingAgents: an agent without a binary is one error at its plugin, its block or
// its first use; its actions are not errors too.
func TestMissingAgents(t *testing.T) {
	_, diags := check(files{"main.hcl": "agent \"one\" { plugin = \"nope\" }\nagent \"two\" {}\n" +
		workflow("step \"a\" {\n action = agent.one.x\n}\nstep \"b\" {\n action = agent.two.y\n}\nstep \"c\" {\n action = agent.three.z\n input { value = var.missing }\n}\nstep \"d\" {\n action = agent.three.z\n}\n")})
	wantFindings(t, diags,
		fails(`Agent "one" not found`, `"nope"`, "No binary engine-agent-nope is known for it. Run engine init to look for it and lock it."),
		fails(`Agent "two" not found`, `agent "two"`, "No binary engine-agent-two is known for it."),
		fails(`Agent "three" not found`, "agent.three.z", "No binary engine-agent-three is known for it."),
		fails("Reference to undeclared variable", "var.missing", ""))
}

// TestConfigOfAgents: config takes the arguments of the schema, like an input. It sees
// secrets, and nothing of a run.
func TestConfigOfAgents(t *testing.T) {
	a := agentOf(t, "config {\n region = upper(\"eu\")\n api_key = \"k-${secret(\"env:KEY\")}\"\n port = \"8443\"\n}")
	v, err := a.Config(&dsl.Scope{})
	wantValue(t, v, err, `{"api_key":null,"port":8443,"region":"EU"}`)
	if got := fmt.Sprint(v.Secrets()); got != "[{/api_key [{k- } { env:KEY}]}]" {
		t.Errorf("secrets %s", got)
	}
	a = agentOf(t, "config { api_key = upper(\"abcd\") }")
	v, err = a.Config(&dsl.Scope{})
	wantValue(t, v, err, `{"api_key":"ABCD","port":443}`)
	if got := v.Sensitive(); len(got) != 1 || got[0] != "/api_key" {
		t.Errorf("sensitive %q", got)
	}
	for body, want := range map[string]finding{
		"config { regoin = \"x\" }":    fails("Unsupported argument", "regoin", `Agent shop has no argument "regoin". Did you mean "region"?`),
		"config { port = \"x\" }":      fails("Invalid value for argument", `"x"`, `Argument "port" of agent shop: a number is required.`),
		"config { region = run.id }":   fails("Reference not available here", "run.id", `"run" can be used only inside a workflow.`),
		"config { api_key = \"abc\" }": warns("Secret is written out", "api_key", `Agent shop: this looks like a secret: api_key.`),
		"config {\n region {\n }\n}":   fails("Unexpected \"region\" block", "region", "Blocks are not allowed here."),
	} {
		_, diags := check(agentBlock(body))
		wantFindings(t, diags, want)
	}
	bins := agents()
	bin := bins["shop"]
	bin.Schema.Config = append([]schema.Field{text("account", func(f *schema.Field) { f.Doc = "Number of the account." })}, bin.Schema.Config...)
	bins["shop"] = bin
	_, diags := checkWith(agentBlock(""), dsl.ParseOptions{}, bins)
	wantFindings(t, diags, fails("Missing required argument", `agent "shop"`, `Agent shop requires argument "account" (string): Number of the account.`))
	_, diags = checkWith(agentBlock("config {}"), dsl.ParseOptions{}, bins)
	wantFindings(t, diags, fails("Missing required argument", "config", `Agent shop requires argument "account" (string): Number of the account.`))
}

// TestSchemasThatMakeNoSense: a schema with a type, a default, an enum or a pattern that
// is none is the agent's fault. It is reported at the action, once.
func TestSchemasThatMakeNoSense(t *testing.T) {
	odd := schema.Type{Kind: "tensor"}
	for name, tt := range map[string]struct {
		fields []schema.Field
		want   string
	}{
		"an unknown type":           {[]schema.Field{typed("a", odd)}, `argument "a": unknown type "tensor"`},
		"a list without elements":   {[]schema.Field{typed("a", kind(schema.KindList))}, `argument "a": type list has no element type`},
		"deep in an object":         {[]schema.Field{typed("a", objectType(typed("b", of(schema.KindMap, odd))))}, `argument "a": field "b": unknown type "tensor"`},
		"a default of another type": {[]schema.Field{number("a", withDefault(`"x"`))}, `default of argument "a": a number is required`},
		"a default that is no JSON": {[]schema.Field{number("a", withDefault(`{`))}, `default of argument "a": the text is not valid JSON`},
		"an enum of another type":   {[]schema.Field{number("a", enum(`"x"`))}, `enum of argument "a": a number is required`},
		"a pattern that is none":    {[]schema.Field{text("a", func(f *schema.Field) { f.Pattern = "[" })}, `argument "a": pattern: error parsing regexp`},
		"codes of numbers":          {[]schema.Field{number("a", func(f *schema.Field) { f.Codes = true })}, `argument "a": pattern, codes: only strings`},
	} {
		t.Run(name, func(t *testing.T) {
			bins := agents()
			bin := bins["echo"]
			bin.Schema.Actions = map[string]schema.Action{"call": {Inputs: tt.fields, ReadOnly: true}}
			bins["echo"] = bin
			src := "step \"a\" {\n action = agent.echo.call\n}\nstep \"b\" {\n action = agent.echo.call\n}\n"
			def, diags := checkWith(files{"main.hcl": workflow(src)}, dsl.ParseOptions{}, bins)
			if def != nil {
				t.Error("it was linked")
			}
			wantFindings(t, diags, fails("Invalid agent schema", "agent.echo.call", "The schema of action echo.call (echo 1.0.0) is broken: "+tt.want))
		})
	}
	bins := agents()
	bin := bins["shop"]
	bin.Schema.Config = []schema.Field{typed("a", odd)}
	bins["shop"] = bin
	_, diags := checkWith(agentBlock(""), dsl.ParseOptions{}, bins)
	wantFindings(t, diags, fails("Invalid agent schema", `agent "shop"`, `The schema of engine-agent-shop is broken: config: argument "a": unknown type "tensor".`))
}

// TestPromisesOfActions: what an action declares, with the author's promises over it.
func TestPromisesOfActions(t *testing.T) {
	wf := linkedWorkflow(t, `
step "charge" {
  action     = agent.shop.charge
  idempotent = false
  input { amount = 1 }
  compensate {
    action = agent.shop.refund
    by_key = false
    input { charge_id = self.output.charge_id }
  }
}
step "stock" {
  action    = agent.shop.stock
  read_only = false
  compensation = "none"
  input { sku = "a" }
}
step "once" {
  action     = agent.echo.once
  read_only  = true
  idempotent = true
}
step "undone" {
  action = agent.echo.once
  compensate {
    action     = agent.shop.recall
    idempotent = true
    by_key     = true
    input { booking_id = self.key }
  }
}`)
	describe := func(a *dsl.Action) string {
		return fmt.Sprintf("%s.%s idempotent=%t read_only=%t by_key=%t lookup=%t cancellable=%t typical=%v", a.Agent, a.Name, a.Idempotent, a.ReadOnly, a.ByKey, a.Lookup, a.Cancellable, a.Typical)
	}
	for got, want := range map[string]string{
		describe(wf.Steps[0].Do):      "shop.charge idempotent=false read_only=false by_key=false lookup=true cancellable=false typical=2s",
		describe(wf.Steps[0].Undo.Do): "shop.refund idempotent=true read_only=false by_key=false lookup=false cancellable=false typical=0s",
		describe(wf.Steps[1].Do):      "shop.stock idempotent=true read_only=false by_key=false lookup=false cancellable=true typical=0s",
		describe(wf.Steps[2].Do):      "echo.once idempotent=true read_only=true by_key=false lookup=false cancellable=false typical=0s",
		describe(wf.Steps[3].Undo.Do): "shop.recall idempotent=true read_only=false by_key=true lookup=false cancellable=false typical=0s",
	} {
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	for code, want := range map[string]bool{"gateway_busy": true, "card_declined": false, "timeout": false, "": false} {
		if got := wf.Steps[0].Retryable(code); got != want {
			t.Errorf("charge may be repeated after %q: %t", code, got)
		}
	}
	for code, want := range map[string]bool{"bank_closed": true, "too_late": false, "gateway_busy": false} {
		if got := wf.Steps[0].Undo.Retryable(code); got != want {
			t.Errorf("refund may be repeated after %q: %t", code, got)
		}
	}
}

// TestReservedEnvironment: the names of the variables that open the engine's state.
func TestReservedEnvironment(t *testing.T) {
	for name, want := range map[string]bool{
		"ENGINE_DSN": true, "engine_dsn": true, "Engine_": true, "PGHOST": true, "pg": true, "PGX": true,
		"ENGINE": false, "ENGINEDSN": false, "MY_ENGINE_DSN": false, "P": false, "GPG": false, "": false,
	} {
		if got := secret.ReservedEnv(name); got != want {
			t.Errorf("%q is reserved: %t", name, got)
		}
	}
}
