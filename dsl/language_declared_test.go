package dsl_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/sdk/schema"
)

// restAgents are the agents of the tests, and rest: a generic agent such as http, whose actions
// neither know their outputs nor promise anything.
func restAgents() map[string]dsl.AgentBinary {
	bins := agents()
	in := []schema.Field{
		text("url"), dynamic("json", optional), typed("headers", of(schema.KindMap, kind(schema.KindString)), optional, sensitive),
		typed("errors", of(schema.KindMap, kind(schema.KindString)), optional, func(f *schema.Field) { f.Codes = true }),
	}
	out := []schema.Field{number("status"), dynamic("json", optional), text("cookie", optional, sensitive)}
	errs := []schema.ErrorCode{{Code: "conflict", Retryable: true}, {Code: schema.AnyCode}}
	bins["rest"] = dsl.AgentBinary{Version: "0.1.0", Schema: schema.Schema{
		Name: "rest", Version: "0.1.0",
		Actions: map[string]schema.Action{
			"get":  {Inputs: in, Outputs: out, Errors: errs, ReadOnly: true, Idempotent: true, Cancellable: true},
			"post": {Inputs: in, Outputs: out, Errors: errs, Heartbeats: true, Lookup: true, Typical: time.Second},
		},
	}}
	return bins
}

// trip is an agent block with a declared action of each kind.
const trip = `
variable "site" {
  type    = string
  default = "http://site"
}
variable "token" {
  type      = string
  default   = "t0p-secret"
  sensitive = true
}
locals { book_url = "${var.site}/book" }
agent "trip" {
  plugin = "rest"
  action "book" {
    uses      = "post"
    arguments = object({
      hotel  = string
      nights = optional(number, 2)
      guest  = optional(object({ name = string, title = optional(string, "Dr") }))
      note   = optional(string)
    })
    output = object({ id = string, price = optional(number), seats = optional(list(string), ["any"]) })
    input {
      url    = local.book_url
      json   = { hotel = args.hotel, nights = args.nights, guest = args.guest, note = args.note, ref = self.key }
      errors = { "409" = "sold_out" }
    }
    fail_when {
      condition     = self.output.json.state == "refused"
      error_code    = "refused_by_hotel"
      error_message = "The hotel says: ${self.output.json.why}."
      permanent     = true
    }
    result = { id = self.output.json.trip.id, price = self.output.json.trip.price }
    errors = { sold_out = { retryable = true }, refused_by_hotel = {}, conflict = {} }

    idempotent     = true
    compensated_by = "cancel"
    timeout        = "7s"
  }
  action "cancel" {
    uses       = "post"
    arguments  = object({ id = optional(string), hotel = optional(string) })
    by_key     = true
    idempotent = true
    timeout    = "9s"
    input {
      url  = "cancel"
      json = { id = args.id, hotel = args.hotel, key = self.key }
    }
  }
  action "peek" {
    uses      = "get"
    read_only = true
    arguments = object({ token = string })
    output    = object({ status = number, cookie = string })
    input {
      url     = "peek"
      headers = { Authorization = args.token }
    }
  }
}
`

// declared links a module with the agents of trip and the workflow w.
func declared(t *testing.T, body string) *dsl.Workflow {
	t.Helper()
	def, diags := checkWith(files{"main.hcl": trip + workflow(body)}, dsl.ParseOptions{}, restAgents())
	if def == nil {
		t.Fatalf("the module cannot be linked: %v", diags.Err())
	}
	wantFindings(t, diags)
	again, err := dsl.Decode(def.Encode())
	if err != nil {
		t.Fatalf("decode: %v", err)
	}
	return again.Workflow("w")
}

// TestDeclaredAction: a step uses a declared action as an action of the plugin. The agent gets the
// input that the block computes, and the step has the output that result computes.
func TestDeclaredAction(t *testing.T) {
	wf := declared(t, "step \"s\" {\n action = agent.trip.book\n input { hotel = var.site }\n}\nstep \"n\" {\n action = agent.trip.book\n depends_on = [step.s]\n timeout = \"3s\"\n input {\n hotel = step.s.output.id\n nights = 4\n guest = { name = \"Ann\" }\n note = \"x\"\n}\n}\n")
	s := wf.Steps[0]
	if do := s.Do; do.Agent != "trip" || do.Name != "book" || do.Sent() != "post" || !do.Idempotent || do.ReadOnly || !do.Keyed || !do.Lookup || do.Typical != time.Second {
		t.Errorf("action %+v", do)
	}
	vars := bound(t, wf)
	in, err := s.Input(&dsl.Scope{Vars: vars, Self: &dsl.Self{Key: "k-1"}})
	wantValue(t, in, err, `{"errors":{"409":"sold_out"},"json":{"guest":null,"hotel":"http://site","nights":2,"note":null,"ref":"k-1"},"url":"http://site/book"}`)
	in, err = wf.Steps[1].Input(&dsl.Scope{Vars: vars, Self: &dsl.Self{Key: "k-2"}, Step: func(int) dsl.StepResult {
		return succeeded(`{"id":"r7","price":null,"seats":[]}`)
	}})
	wantValue(t, in, err, `{"errors":{"409":"sold_out"},"json":{"guest":{"name":"Ann","title":"Dr"},"hotel":"r7","nights":4,"note":"x","ref":"k-2"},"url":"http://site/book"}`)
	_, err = wf.Steps[1].Input(&dsl.Scope{Vars: vars, Step: func(int) dsl.StepResult { return succeeded(`{"id":null}`) }})
	wantError(t, err, `argument "hotel": a value is required, this is null`)

	out, err := s.Do.Output([]byte(`{"status":200,"json":{"state":"ok","trip":{"id":7,"price":9.5}}}`))
	wantValue(t, out, err, `{"id":"7","price":9.5,"seats":["any"]}`)
	for reply, part := range map[string]string{
		`{"status":200,"json":{"state":"ok","trip":{"id":null,"price":1}}}`: `result: attribute "id" is null`,
		`{"status":200,"json":{"state":"ok","trip":{"id":[],"price":1}}}`:   "result: ",
		`{"status":200,"json":{"state":"ok","trip":{"id":"a"}}}`:            `does not have an attribute named "price"`,
		`{"status":200}`:                  "fail_when: ",
		`{"status":"x"}`:                  "reply: ",
		`{"status":200,"json":{"a":"b"}}`: "fail_when: ",
	} {
		_, err := s.Do.Output([]byte(reply))
		wantError(t, err, part)
		if refused := refusal(nil); errors.As(err, &refused) {
			t.Errorf("%s: a broken reply is a definite failure: %v", reply, err)
		}
	}
	if got := s.Do.Skeleton(); got != `{"id":"STRING","price":"NUMBER or null","seats":["STRING"]}` {
		t.Errorf("form for a person: %s", got)
	}
	out, err = s.Do.StatedOutput([]byte(`{"id":"9","price":1,"seats":null}`))
	wantValue(t, out, err, `{"id":"9","price":1,"seats":null}`)
	_, err = s.Do.StatedOutput([]byte(`{"price":1}`))
	wantError(t, err, "id")
	if got := settingsOf(t, s, nil).Timeout; got != 7*time.Second {
		t.Errorf("timeout %v, want that of the action", got)
	}
	if got := settingsOf(t, wf.Steps[1], nil).Timeout; got != 3*time.Second {
		t.Errorf("timeout %v, want that of the step", got)
	}
	for code, want := range map[string]bool{"sold_out": true, "refused_by_hotel": false, "conflict": false, "other": false} {
		if s.Retryable(code) != want {
			t.Errorf("%s: retryable is %t", code, !want)
		}
	}
}

// A refusal is the error for a reply that fail_when of a declared action refuses.
type refusal interface {
	error
	Failure() (code, message string, permanent bool, data dsl.Value)
}

// TestDeclaredRefusal: if fail_when of the action is true, the call is a definite failure with
// the reply as its data.
func TestDeclaredRefusal(t *testing.T) {
	wf := declared(t, step("s", "")+"step \"b\" {\n action = agent.trip.book\n input { hotel = \"h\" }\n}\n")
	reply := `{"cookie":"c00kie","json":{"state":"refused","why":"full"},"status":200}`
	_, err := stepOf(t, wf, "b").Do.Output([]byte(reply))
	var refused refusal
	if !errors.As(err, &refused) {
		t.Fatalf("error %v", err)
	}
	code, message, permanent, data := refused.Failure()
	if code != "refused_by_hotel" || message != "The hotel says: full." || !permanent || refused.Error() != "refused_by_hotel: The hotel says: full." {
		t.Errorf("failure %+v", refused)
	}
	wantValue(t, data, nil, reply)
	if got := fmt.Sprint(data.Sensitive()); got != "[/cookie]" {
		t.Errorf("sensitive parts of the data: %s", got)
	}
	_, err = stepOf(t, wf, "b").Do.Output([]byte(`{"status":200,"json":{"state":"refused"}}`))
	if !errors.As(err, &refused) {
		t.Fatalf("error %v", err)
	}
	if _, message, _, _ := refused.Failure(); !strings.HasPrefix(message, "error_message: ") {
		t.Errorf("a message that cannot be evaluated: %v", err)
	}
}

// TestDeclaredUndo: compensated_by names the undo, whose arguments come from the output and the
// arguments of the step. Its self.key is the key of the step. self.input of the step has the
// arguments of the declared action.
func TestDeclaredUndo(t *testing.T) {
	wf := declared(t, `
step "before" {
  action       = agent.echo.call
  compensation = "none"
}
step "auto" {
  action = agent.trip.book
  input { hotel = step.before.output.value }
  fail_when {
    condition     = self.input.hotel == "x" && self.input.nights == 2
    error_message = "hotel ${self.input.hotel}"
  }
}
step "own" {
  action     = agent.shop.ship
  depends_on = [step.auto]
  input { to = "a" }
  compensate {
    action = agent.trip.cancel
    input {
      id    = self.output.booking_id
      hotel = self.input.to
    }
  }
}
step "plain" {
  action     = agent.trip.book
  depends_on = [step.auto]
  input { hotel = "p" }
  compensate {
    action     = agent.trip.post
    idempotent = true
    input {
      url  = self.output.id
      json = self.input.nights
    }
  }
}`)
	scope := func(in, out string) *dsl.Scope {
		return &dsl.Scope{
			Vars: bound(t, wf), Step: func(int) dsl.StepResult { return succeeded(`{"value":"x"}`) },
			Self: &dsl.Self{Input: document(in), Output: document(out), OutputKnown: out != "", Key: "k-7"},
		}
	}
	auto := wf.Steps[1]
	if hit, err := auto.FailWhen[0].Check(scope(`{"url":"sent"}`, `{"id":"7"}`)); !hit || err != nil {
		t.Errorf("fail_when of the step: %t, %v", hit, err)
	}
	if text, err := auto.FailWhen[0].Message(scope(`{"url":"sent"}`, `{"id":"7"}`)); text != "hotel x" || err != nil {
		t.Errorf("message %q, %v", text, err)
	}
	u := auto.Undo
	if u == nil || !u.Declared || u.Do.Name != "cancel" || u.Do.Sent() != "post" || !u.Do.ByKey || !u.Do.Idempotent || !u.UsesSelf {
		t.Fatalf("undo %+v", u)
	}
	if s, err := u.Settings(nil); err != nil || s.Timeout != 9*time.Second || s.Retry.MaxAttempts != dsl.Unbounded {
		t.Errorf("settings of the undo: %+v, %v", s, err)
	}
	v, err := u.Input(scope(`{"url":"sent"}`, `{"id":"7"}`))
	wantValue(t, v, err, `{"json":{"hotel":"x","id":"7","key":"k-7"},"url":"cancel"}`)
	v, err = u.Input(scope(`{"url":"sent"}`, ""))
	wantValue(t, v, err, `{"json":{"hotel":"x","id":null,"key":"k-7"},"url":"cancel"}`)
	own := wf.Steps[2].Undo
	v, err = own.Input(scope(`{"to":"a"}`, `{"booking_id":"b"}`))
	wantValue(t, v, err, `{"json":{"hotel":"a","id":"b","key":"k-7"},"url":"cancel"}`)
	v, err = own.Input(scope(`{"to":"a"}`, ""))
	wantValue(t, v, err, `{"json":{"hotel":"a","id":null,"key":"k-7"},"url":"cancel"}`)
	plain := wf.Steps[3].Undo
	v, err = plain.Input(scope(`{"url":"sent"}`, `{"id":"u"}`))
	wantValue(t, v, err, `{"json":2,"url":"u"}`)
	if s, err := plain.Settings(nil); err != nil || s.Timeout != 30*time.Second {
		t.Errorf("timeout of an action of the plugin: %+v, %v", s, err)
	}
}

// TestDeclaredSensitive: an argument that goes to a sensitive argument of the used action is
// sensitive itself, and so is an output that comes from a sensitive output. Marks of values flow
// through the input.
func TestDeclaredSensitive(t *testing.T) {
	wf := declared(t, `
step "s" {
  action = agent.trip.peek
  input { token = var.token }
  postcondition {
    condition     = self.input.token != ""
    error_message = "token ${self.input.token}"
  }
}
step "plain" {
  action       = agent.trip.book
  compensation = "none"
  input { hotel = var.token }
}
output "status" { value = step.s.output.status }
`)
	if !wf.Confidential {
		t.Error("a run without sensitive parts")
	}
	vars := bound(t, wf)
	in, err := wf.Steps[0].Input(&dsl.Scope{Vars: vars})
	wantValue(t, in, err, `{"headers":{"Authorization":"t0p-secret"},"url":"peek"}`)
	if got := fmt.Sprint(in.Sensitive()); got != "[/headers]" {
		t.Errorf("sensitive parts of the input: %s", got)
	}
	text, err := wf.Steps[0].Post[0].Message(&dsl.Scope{Vars: vars, Self: &dsl.Self{}})
	if err != nil || strings.Contains(text, "t0p") {
		t.Errorf("message %q, %v", text, err)
	}
	in, err = wf.Steps[1].Input(&dsl.Scope{Vars: vars, Self: &dsl.Self{Key: "k"}})
	if got := fmt.Sprint(in.Sensitive()); err != nil || got != "[/json/hotel]" {
		t.Errorf("sensitive parts of the input: %s, %v", got, err)
	}
	out, err := wf.Steps[0].Do.Output([]byte(`{"status":200,"cookie":"c00kie"}`))
	wantValue(t, out, err, `{"cookie":"c00kie","status":200}`)
	if got := fmt.Sprint(out.Sensitive()); got != "[/cookie]" {
		t.Errorf("sensitive parts of the output: %s", got)
	}
	_, diags := checkWith(files{"main.hcl": trip + workflow("step \"s\" {\n action = agent.trip.peek\n input { token = \"t\" }\n}\noutput \"o\" { value = step.s.output.cookie }")}, dsl.ParseOptions{}, restAgents())
	wantFindings(t, diags,
		warns("Secret is written out", "token", ""),
		fails("Output holds a sensitive value", "step.s.output.cookie", ""))
}

// TestDeclaredSecrets: a secret goes through an argument as it is. The input of a declared action
// may hold secrets itself.
func TestDeclaredSecrets(t *testing.T) {
	wf := declared(t, "step \"s\" {\n action = agent.trip.peek\n input { token = secret(\"env:T\") }\n}\n")
	in, err := wf.Steps[0].Input(&dsl.Scope{Vars: bound(t, wf)})
	wantValue(t, in, err, `{"headers":{"Authorization":null},"url":"peek"}`)
	if got := fmt.Sprint(in.Secrets()); got != "[{/headers/Authorization [{ env:T}]}]" {
		t.Errorf("secrets %s", got)
	}
	src := "agent \"trip\" {\n plugin = \"rest\"\n action \"a\" {\n  uses = \"get\"\n  input {\n   url = \"u\"\n   headers = { Authorization = \"Bearer ${secret(\"env:T\")}\" }\n  }\n }\n}\n"
	def, diags := checkWith(files{"main.hcl": src + workflow("step \"s\" { action = agent.trip.a }")}, dsl.ParseOptions{}, restAgents())
	wantFindings(t, diags)
	s := def.Workflow("w").Steps[0]
	if !def.Workflow("w").Confidential {
		t.Error("a run without sensitive parts")
	}
	in, err = s.Input(&dsl.Scope{})
	if got := fmt.Sprint(in.Secrets()); err != nil || got != "[{/headers/Authorization [{Bearer  } { env:T}]}]" {
		t.Errorf("secrets %s, %v", got, err)
	}
}

// TestDeclaredCodes: the codes of a declared action are those of the used action, those that its
// input and its fail_when name, and those in errors.
func TestDeclaredCodes(t *testing.T) {
	catch := func(codes string) string {
		return "step \"s\" {\n action = agent.trip.book\n input { hotel = \"h\" }\n catch { errors = [" + codes + "] }\n}\n"
	}
	for _, tt := range []struct {
		codes string
		want  []finding
	}{
		{`"sold_out", "refused_by_hotel", "conflict", "timeout", "*"`, nil},
		{`"sold_put"`, finds(warns("Unknown error code", `"sold_put"`, `Action trip.book (rest 0.1.0) does not answer with the code "sold_put". Did you mean "sold_out"?`))},
	} {
		_, diags := checkWith(files{"main.hcl": trip + workflow(catch(tt.codes))}, dsl.ParseOptions{}, restAgents())
		wantFindings(t, diags, tt.want...)
	}
	// The codes of an input that is known only in a run.
	src := "variable \"codes\" { type = map(string) }\nagent \"trip\" {\n plugin = \"rest\"\n action \"a\" {\n  uses = \"get\"\n  errors = [\"mine\"]\n  input {\n   url = \"u\"\n   errors = var.codes\n  }\n }\n}\n"
	_, diags := checkWith(files{"main.hcl": src + workflow("step \"s\" {\n action = agent.trip.a\n catch { errors = [\"any_code\"] }\n}")}, dsl.ParseOptions{}, restAgents())
	wantFindings(t, diags)
}

// TestIdempotentAgent: idempotent = true of an agent counts for the actions that do not say it. A
// declared action and a step have priority.
func TestIdempotentAgent(t *testing.T) {
	src := `
agent "trip" {
  plugin     = "rest"
  idempotent = true
  action "plain" {
    uses = "post"
    input { url = "u" }
  }
  action "careful" {
    uses       = "post"
    idempotent = false
    input { url = "u" }
  }
}
agent "other" { plugin = "rest" }
`
	steps, want := "", map[string]bool{}
	for _, s := range []struct {
		name, action, more string
		want               bool
	}{
		{"plugin", "trip.post", "", true},
		{"plugin_not", "trip.post", "idempotent = false", false},
		{"plain", "trip.plain", "", true},
		{"careful", "trip.careful", "", false},
		{"careful_yes", "trip.careful", "idempotent = true", true},
		{"other", "other.post", "", false},
	} {
		input := ""
		if strings.HasSuffix(s.action, ".post") {
			input = "input { url = \"u\" }\n"
		}
		steps += fmt.Sprintf("step %q {\n action = agent.%s\n compensation = \"none\"\n %s\n%s}\n", s.name, s.action, s.more, input)
		want[s.name] = s.want
	}
	def, diags := checkWith(files{"main.hcl": src + workflow(steps)}, dsl.ParseOptions{}, restAgents())
	if def == nil {
		t.Fatal(diags.Err())
	}
	for name, want := range want {
		s := stepOf(t, def.Workflow("w"), name)
		attempts := 1
		if want {
			attempts = 3
		}
		if s.Do.Idempotent != want || settingsOf(t, s, nil).Retry.MaxAttempts != attempts {
			t.Errorf("%s: idempotent %t, %d attempts", name, s.Do.Idempotent, settingsOf(t, s, nil).Retry.MaxAttempts)
		}
	}
}

// TestDeclaredSchemas: the schemas of declared actions, for people and for tools.
func TestDeclaredSchemas(t *testing.T) {
	src := trip + "agent \"bad\" {\n plugin = \"rest\"\n action \"a\" {\n  uses = \"pots\"\n }\n action \"b\" {\n  uses = \"post\"\n  input { url = 1 + true }\n }\n}\n"
	m, _ := dsl.Parse(files{"main.hcl": src}.fs(), dsl.ParseOptions{})
	bins := map[string]dsl.AgentBinary{"trip": restAgents()["rest"], "bad": restAgents()["rest"]}
	all := m.DeclaredActions(bins)
	if len(all) != 1 || len(all["trip"]) != 3 {
		t.Fatalf("declared actions: %v", all)
	}
	book := all["trip"]["book"]
	var lines []string
	for _, f := range slices.Concat(book.Inputs, book.Outputs) {
		lines = append(lines, fmt.Sprintf("%s %s %t %s", f.Name, f.Type.Kind, f.Optional, f.Default))
	}
	for _, e := range book.Errors {
		lines = append(lines, fmt.Sprintf("%s %t", e.Code, e.Retryable))
	}
	want := "guest object true \nhotel string false \nnights number true 2\nnote string true \nid string false \nprice number true \nseats list true \n" +
		"conflict false\nrefused_by_hotel false\nsold_out true"
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("schema of book:\n%s\nwant\n%s", got, want)
	}
	if !book.Idempotent || book.CompensatedBy != "cancel" || !book.Heartbeats || !all["trip"]["cancel"].ByKey || !all["trip"]["peek"].Cancellable {
		t.Errorf("properties: %+v", maps.Collect(maps.All(all["trip"])))
	}
	if f := all["trip"]["peek"].Inputs[0]; !f.Sensitive {
		t.Error("an argument that goes to a sensitive argument is not sensitive")
	}
	broken, _ := dsl.Parse(files{"main.hcl": "agent \"trip\" {"}.fs(), dsl.ParseOptions{})
	if got := broken.DeclaredActions(bins); len(got) != 0 {
		t.Errorf("declared actions of a broken file: %v", got)
	}
}

// TestDeclaredNames: a declared action has priority over an action of the plugin with its name,
// which it can use.
func TestDeclaredNames(t *testing.T) {
	src := "agent \"trip\" {\n plugin = \"rest\"\n action \"get\" {\n  uses = \"get\"\n  arguments = object({ id = string })\n  input { url = \"x/${args.id}\" }\n }\n}\n"
	def, diags := checkWith(files{"main.hcl": src + workflow("step \"s\" {\n action = agent.trip.get\n input { id = \"7\" }\n}\noutput \"o\" { value = step.s.output.status }")}, dsl.ParseOptions{}, restAgents())
	wantFindings(t, diags)
	in, err := def.Workflow("w").Steps[0].Input(&dsl.Scope{})
	wantValue(t, in, err, `{"url":"x/7"}`)
	out, err := def.Workflow("w").Steps[0].Do.Output([]byte(`{"status":204}`))
	wantValue(t, out, err, `{"cookie":null,"json":null,"status":204}`)
}
