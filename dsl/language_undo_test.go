package dsl_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/dsl/rung"
)

// TestWaysToUndo: a step that changes something has a compensate block, an action that
// declares its undo, or compensation = "none". It is the pivot, after the pivot, or the
// only step, else it is an error.
func TestWaysToUndo(t *testing.T) {
	book := func(body string) string {
		return "step \"book\" {\n action = agent.shop.ship\n input { to = \"x\" }\n" + body + "\n}\n"
	}
	other := step("other", "")
	none := finds(fails(`No way to undo step "book"`, `step "book"`, `shop.ship changes things and declares no compensation. Add a compensate block, or state compensation = "none".`))
	twice := warns("Undo is not idempotent", "agent.shop.recall", "shop.recall does not say that it may be called twice. If its outcome is not known it cannot be repeated, and the run ends compensation_failed.")
	recall := func(body string) string {
		return "compensate {\n action = agent.shop.recall\n input { booking_id = self.output.booking_id }\n" + body + "\n}"
	}
	checkRules(t, []rule{
		{"nothing said", book("") + other, none},
		{"the only step", book(""), nil},
		{"none", book(`compensation = "none"`) + other, nil},
		{"a block", book(recall("")) + other, finds(twice)},
		{"a block with a promise", book(recall("idempotent = true")) + other, nil},
		{"none and a block", book("compensation = \"none\"\n"+recall("idempotent = true")) + other, finds(fails("Compensation stated twice", "compensate", `The step says compensation = "none" and has a compensate block.`))},
		{"another word", book(`compensation = "nothing"`) + other, finds(fails("Invalid value for compensation", `"nothing"`, `The only value is "none". To say how the step is undone write a compensate block.`))},
		{"no word", book(`compensation = null`) + other, finds(fails("Invalid value for compensation", "null", "compensation is a string."))},
		{"the author says that it reads only", book("read_only = true") + other, nil},
		{"a promise to be idempotent is no undo", book("idempotent = true") + other, none},
		{"the pivot", book("pivot = true") + other, nil},
		{"after the pivot", "step \"go\" {\n action = agent.echo.call\n pivot = true\n}\n" + book("depends_on = [step.go]\ncatch { errors = [\"*\"] }"), nil},
		{"before the pivot", book("") + "step \"go\" {\n action = agent.echo.call\n pivot = true\n}\n", none},
		{"declared by the action", "step \"s\" {\n action = agent.shop.reserve\n input { sku = \"a\" }\n}\n" + other, nil},
		{"declared, but its arguments come from nowhere", "step \"s\" {\n action = agent.shop.lend\n input { sku = \"a\" }\n}\n" + other, finds(
			fails(`No way to undo step "s"`, `step "s"`, `shop.lend is compensated by shop.fetch, which requires argument "loan_id"; neither the output nor the input of the step has it. Write a compensate block.`))},
		{"declared and not wanted", "step \"s\" {\n action = agent.shop.lend\n compensation = \"none\"\n input { sku = \"a\" }\n}\n" + other, nil},
		{"two steps with one name are one", book("") + book(""), finds(fails(`Duplicate step "book"`, `step "book"`, ""))},
	})
	for body, want := range map[string]string{
		book(""):                                  "NoUndo=true Undo=false",
		book(`compensation = "none"`) + other:     "NoUndo=true Undo=false",
		book("pivot = true") + other:              "NoUndo=false Undo=false",
		book(recall("idempotent = true")) + other: "NoUndo=false Undo=true",
		book("read_only = true") + other:          "NoUndo=false Undo=false",
	} {
		s := stepOf(t, linkedWorkflow(t, body), "book")
		if got := fmt.Sprintf("NoUndo=%t Undo=%t", s.NoUndo, s.Undo != nil); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
}

// TestMistakesInUndos: a compensate block is checked like a step.
func TestMistakesInUndos(t *testing.T) {
	s := func(body string) string {
		return step("first", "") + "step \"s\" {\n action = agent.shop.charge\n depends_on = [step.first]\n input { amount = 1 }\n compensate {\n" + body + "\n}\n}\n" + step("last", "depends_on = [step.s]") + step("beside", "")
	}
	checkRules(t, []rule{
		{"an unknown action", s("action = agent.shop.refnd"), finds(fails("Unknown action", "agent.shop.refnd", `Did you mean "refund"?`))},
		{"an action in quotes", s("action = \"agent.shop.refund\""), finds(fails("Invalid action", `"agent.shop.refund"`, "without quotes"))},
		{"an argument that is missing", s("action = agent.shop.refund"), finds(fails("Missing required argument", "compensate", `Action shop.refund (shop 1.4.0) requires argument "charge_id" (string).`))},
		{"an unknown argument", s("action = agent.shop.refund\ninput {\n charge_id = self.output.charge_id\n resaon = \"x\"\n}"), finds(fails("Unsupported argument", "resaon", `Did you mean "reason"?`))},
		{"an output that does not exist", s("action = agent.shop.refund\ninput { charge_id = self.output.charg_id }"), finds(
			fails("Unsupported output attribute", ".charg_id", `Action shop.charge (shop 1.4.0) has no output "charg_id". Did you mean "charge_id"?`))},
		{"an input that does not exist", s("action = agent.shop.refund\ninput { charge_id = self.input.amoun }"), finds(fails("Unsupported attribute", ".amoun", `Did you mean "amount"?`))},
		{"an earlier step", s("action = agent.shop.refund\ninput { charge_id = step.first.output.value }"), nil},
		{"its own step", s("action = agent.shop.refund\ninput { charge_id = step.s.output.charge_id }"), finds(
			fails("Undo refers to its own step", "step.s.output.charge_id", `In the undo of step "s" its result is self.output, its arguments are self.input.`))},
		{"a later step", s("action = agent.shop.refund\ninput { charge_id = step.last.output.value }"), finds(
			fails("Undo refers to a step that may not have run", "step.last.output.value", `"last" runs after "s". Undo may use self, failure, var, local and earlier steps only.`))},
		{"a step beside it", s("action = agent.shop.refund\ninput { charge_id = step.beside.output.value }"), finds(
			fails("Undo refers to a step that may not have run", "step.beside.output.value", `"beside" does not run before "s".`))},
		{"a local value with a later step", "locals { l = step.last.status }\n" + s("action = agent.shop.refund\ntimeout = local.l\ninput { charge_id = \"x\" }"), finds(
			fails("Undo refers to a step that may not have run", "local.l", `"last" runs after "s".`))},
		{"a retry with a later step", s("action = agent.shop.refund\nretry { initial_interval = step.last.status }\ninput { charge_id = \"x\" }"), finds(
			fails("Undo refers to a step that may not have run", "step.last.status", `"last" runs after "s".`))},
		{"a code that cannot occur", s("action = agent.shop.refund\nretry {\n on = [\"to_late\"]\n not_on = [\"too_late\"]\n}\ninput { charge_id = \"x\" }"), finds(
			warns("Unknown error code", `"to_late"`, `Action shop.refund (shop 1.4.0) does not answer with the code "to_late". Did you mean "too_late"?`))},
		{"no exhaustion of an undo", s("action = agent.shop.refund\nretry { on_exhausted = \"park\" }\ninput { charge_id = \"x\" }"), finds(fails("Unsupported argument", "on_exhausted", ""))},
		{"an argument that the key does not replace", s("action = agent.shop.refund\nby_key = true\ninput { charge_id = self.output.charge_id }"), finds(
			fails("Argument cannot be left out", "charge_id", "The undo is called by key when the step's output is not known; then this argument is left out, but action shop.refund (shop 1.4.0) requires it."))},
		{"an argument that needs no output", s("action = agent.shop.refund\nby_key = true\ninput {\n charge_id = self.key\n reason = self.output.charge_id\n}"), nil},
	})
}

// undoneScope is a scope for the undo of a step.
func undoneScope(known bool) *dsl.Scope {
	return &dsl.Scope{
		Run:     dsl.RunInfo{ID: "r-1"},
		Self:    &dsl.Self{Input: document(`{"amount":5,"currency":"eur"}`), Output: document(`{"charge_id":"c-1","card":null}`), OutputKnown: known, Key: "k-1"},
		Failure: &dsl.Failure{Step: "ship", Code: "no_carrier", Message: "none goes there"},
	}
}

// TestUndoInputs: an undo sees self, failure and the run. Where the output is not known, an
// undo that needs it is an error.
func TestUndoInputs(t *testing.T) {
	for _, tt := range []struct{ name, input, known, unknown string }{
		{"self.output", "charge_id = self.output.charge_id", `{"charge_id":"c-1"}`, "error: null"},
		{"self.input and self.key", "charge_id = \"${self.input.amount}-${self.key}\"", `{"charge_id":"5-k-1"}`, `{"charge_id":"5-k-1"}`},
		{"failure", "charge_id = \"x\"\nreason = \"${failure.step} ${failure.code}: ${failure.message} in ${run.id}\"", `{"charge_id":"x","reason":"ship no_carrier: none goes there in r-1"}`, `{"charge_id":"x","reason":"ship no_carrier: none goes there in r-1"}`},
		{"an optional argument", "charge_id = \"x\"\nreason = self.output.card", `{"charge_id":"x"}`, "error: null"},
		{"inside try", "charge_id = try(self.output.charge_id, self.key)", `{"charge_id":"c-1"}`, `{"charge_id":"k-1"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wf := linkedWorkflow(t, "step \"s\" {\n action = agent.shop.charge\n input { amount = 5 }\n compensate {\n  action = agent.shop.refund\n  input {\n"+tt.input+"\n}\n}\n}\n")
			u := wf.Steps[0].Undo
			if u.Declared || u.UsesSelf != strings.Contains(tt.input, "self.output") {
				t.Errorf("declared %t, uses the output %t", u.Declared, u.UsesSelf)
			}
			v, err := u.Input(undoneScope(true))
			wantValue(t, v, err, tt.known)
			v, err = u.Input(undoneScope(false))
			if part, fails := strings.CutPrefix(tt.unknown, "error: "); fails {
				wantError(t, err, part)
			} else {
				wantValue(t, v, err, tt.unknown)
			}
		})
	}
}

// TestDeclaredUndos: the arguments of an undo that an action declares come by name from the
// output of the step, then from its input, then from their defaults.
func TestDeclaredUndos(t *testing.T) {
	wf := linkedWorkflow(t, "step \"s\" {\n action = agent.shop.reserve\n input { sku = \"a\" }\n}\nstep \"t\" {\n action = agent.shop.fill\n}\n")
	u := wf.Steps[0].Undo
	if !u.Declared || !u.UsesSelf || u.Do.Name != "release" || !u.Do.ByKey || wf.Agents["shop"] == nil {
		t.Fatalf("undo %+v", u)
	}
	in, out := document(`{"sku":"mug","qty":1}`), document(`{"reservation_id":"r-1","token":null}`)
	for _, tt := range []struct {
		name string
		self *dsl.Self
		want string
	}{
		{"known", &dsl.Self{Input: in, Output: out, OutputKnown: true}, `{"reservation_id":"r-1","sku":"mug"}`},
		{"not known", &dsl.Self{Input: in, Output: out}, `{"sku":"mug"}`},
		{"a null output", &dsl.Self{Input: in, OutputKnown: true}, `{"sku":"mug"}`},
		{"a null input", &dsl.Self{Output: out, OutputKnown: true}, `{"reservation_id":"r-1"}`},
		{"nothing", nil, "error: no values are available here"},
	} {
		v, err := u.Input(&dsl.Scope{Self: tt.self})
		if part, fails := strings.CutPrefix(tt.want, "error: "); fails {
			wantError(t, err, part)
			continue
		}
		wantValue(t, v, err, tt.want)
	}
	if u := wf.Steps[1].Undo; u.UsesSelf || !u.Declared {
		t.Errorf("an undo without arguments: %+v", u)
	}
	if _, err := u.Input(nil); err == nil {
		t.Error("an undo without a scope has arguments")
	}
	// A required argument from the output cannot be left out.
	bins := agents()
	bin := bins["shop"]
	lend := bin.Schema.Actions["lend"]
	lend.Outputs = append(lend.Outputs, text("loan_id"))
	bin.Schema.Actions["lend"] = lend
	def, diags := checkWith(files{"main.hcl": workflow("step \"s\" {\n action = agent.shop.lend\n input { sku = \"a\" }\n}\n")}, dsl.ParseOptions{}, bins)
	if def == nil {
		t.Fatal(diags.Err())
	}
	undo := def.Workflow("w").Steps[0].Undo
	v, err := undo.Input(&dsl.Scope{Self: &dsl.Self{Output: document(`{"loan_id":"l"}`), OutputKnown: true}})
	wantValue(t, v, err, `{"loan_id":"l"}`)
	_, err = undo.Input(&dsl.Scope{Self: &dsl.Self{Input: in}})
	wantError(t, err, `argument "loan_id" comes from the output of the step, which is not known`)
	_, err = undo.Input(&dsl.Scope{Self: &dsl.Self{Input: in, OutputKnown: true}})
	wantError(t, err, `argument "loan_id", from self.output: a value is required, this is null`)
	// The types must fit.
	lend.Outputs[0] = typed("loan_id", of("list", kind("number")))
	bin.Schema.Actions["lend"] = lend
	_, diags = checkWith(files{"main.hcl": workflow("step \"s\" {\n action = agent.shop.lend\n input { sku = \"a\" }\n}\n")}, dsl.ParseOptions{}, bins)
	wantFindings(t, diags, fails(`No way to undo step "s"`, `step "s"`,
		`shop.lend is compensated by shop.fetch, whose argument "loan_id" is string; the step's output "loan_id" is list of number. Write a compensate block.`))
}

// TestUndosByKey: with the output unknown, an undo by key is called without the arguments
// that depend on it.
func TestUndosByKey(t *testing.T) {
	wf := linkedWorkflow(t, `
step "s" {
  action = agent.shop.reserve
  input { sku = "a" }
  compensate {
    action = agent.shop.release
    input {
      reservation_id = self.output.reservation_id
      sku            = self.input.sku
    }
  }
}`)
	u := wf.Steps[0].Undo
	self := &dsl.Self{Input: document(`{"sku":"mug","qty":1}`), Output: document(`{"reservation_id":"r-1","token":null}`), Key: "k"}
	v, err := u.Input(&dsl.Scope{Self: self})
	wantValue(t, v, err, `{"sku":"mug"}`)
	self.OutputKnown = true
	v, err = u.Input(&dsl.Scope{Self: self})
	wantValue(t, v, err, `{"reservation_id":"r-1","sku":"mug"}`)
}

// TestRerun: what another attempt does with what earlier ones left, and what that needs.
func TestRerun(t *testing.T) {
	fill := func(body string) string { return "step \"s\" {\n action = agent.shop.fill\n" + body + "\n}\n" }
	for body, want := range map[string]any{
		fill(""): dsl.RerunContinue, fill(`on_rerun = "continue"`): dsl.RerunContinue, fill(`on_rerun = "undo_first"`): dsl.RerunUndoFirst,
		step("s", ""): dsl.RerunDefault, "step \"s\" {\n action = agent.echo.take\n on_rerun = \"undo_first\"\n}\n": dsl.RerunUndoFirst,
	} {
		if got := linkedWorkflow(t, body).Steps[0].OnRerun; got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
	for r, want := range map[fmt.Stringer]string{dsl.RerunDefault: "", dsl.RerunContinue: "continue", dsl.RerunUndoFirst: "undo_first"} {
		if got := r.String(); got != want {
			t.Errorf("%d is written %q, want %q", r, got, want)
		}
	}
	charge := func(undo string) string {
		return "step \"s\" {\n action = agent.shop.charge\n on_rerun = \"undo_first\"\n input { amount = 1 }\n compensate {\n  action = agent.shop.refund\n  input { charge_id = " + undo + " }\n }\n}\n"
	}
	checkRules(t, []rule{
		{"an undo that needs no output", charge("self.key"), nil},
		{"an undo that needs the output", charge("self.output.charge_id"), finds(
			fails("Undo needs the output", `"undo_first"`, `on_rerun = "undo_first" calls the undo of step "s" when its output is not known. Use an undo with by_key = true, or one whose input does not mention self.output.`))},
		{"no undo", "step \"s\" {\n action = agent.echo.call\n on_rerun = \"undo_first\"\n}\n", finds(
			fails("No undo to call first", `"undo_first"`, `Step "s" has no undo, so on_rerun = "undo_first" cannot call one. Write a compensate block.`))},
		{"never undone", fill("on_rerun = \"undo_first\"\ncompensation = \"none\""), finds(fails("No undo to call first", `"undo_first"`, ""))},
		{"a broken undo", charge("self.key") + step("x", ""), nil},
		{"an undo of an unknown action", "step \"s\" {\n action = agent.echo.call\n on_rerun = \"undo_first\"\n compensate { action = agent.shop.nope }\n}\n", finds(fails("Unknown action", "agent.shop.nope", ""))},
		{"no checkpoints", step("s", `on_rerun = "continue"`), finds(fails("Action without checkpoints", `"continue"`, "Action echo.call (echo 1.0.0) declares no checkpoints, so there is nothing from which another attempt could continue."))},
		{"a key that stays", fill("on_rerun = \"undo_first\"\nidempotency_key = \"k\""), finds(fails("Key stays the same", `"undo_first"`, "What was undone under a key cannot be done again under it"))},
		{"a pivot", "step \"s\" {\n action = agent.shop.fill\n on_rerun = \"undo_first\"\n pivot = true\n}\n", finds(fails("Not allowed on a pivot", `"undo_first"`, "nothing of it is undone before another attempt"))},
		{"another word", fill(`on_rerun = "undo-first"`), finds(fails("Invalid value for on_rerun", `"undo-first"`, `on_rerun is "continue" or "undo_first". Did you mean "undo_first"?`))},
		{"no heartbeats", step("s", `heartbeat_timeout = "1s"`), finds(fails("Action without heartbeats", `"1s"`, "Action echo.call (echo 1.0.0) declares no heartbeats, so heartbeat_timeout would end every attempt. Use timeout."))},
	})
}

// TestPromisedRetries: an action that is not idempotent is repeated after a definite
// failure only; a step that asks for more is warned.
func TestPromisedRetries(t *testing.T) {
	once := func(body string) string {
		return "step \"s\" {\n action = agent.echo.once\n compensation = \"none\"\n" + body + "\n}\n"
	}
	warned := func(at string) []finding {
		return finds(warns("Unknown outcomes are not repeated", at, "echo.once is not idempotent, so it is repeated only after a failure that surely did nothing."))
	}
	checkRules(t, []rule{
		{"nothing asked", once(""), nil},
		{"one attempt", once("retry { max_attempts = 1 }"), nil},
		{"two attempts", once("retry { max_attempts = 2 }"), warned("2")},
		{"without bound", once("retry { max_attempts = \"unbounded\" }"), warned(`"unbounded"`)},
		{"other settings", once("retry { multiplier = 3 }"), nil},
		{"attempts of the workflow", "retry { max_attempts = 5 }\n" + once(""), nil},
		{"a promise", once("idempotent = true\nretry { max_attempts = 2 }"), nil},
		{"a promise to read only", once("read_only = true\nretry { max_attempts = 2 }"), nil},
		{"an idempotent action", step("s", "retry { max_attempts = 2 }"), nil},
		{"one that is undone first", "step \"s\" {\n action = agent.echo.once\n on_rerun = \"undo_first\"\n retry { max_attempts = 2 }\n compensate {\n  action = agent.echo.call\n }\n}\n", nil},
	})
}

// TestRetriesThatCannotFit: attempts that the deadline of the step never lets start are a
// warning that says which.
func TestRetriesThatCannotFit(t *testing.T) {
	with := func(deadline, timeout, retry string) string {
		return step("s", "deadline = \""+deadline+"\"\n"+timeout+"\nretry {\n"+retry+"\n}")
	}
	warned := func(at, detail string) []finding {
		return finds(warns("Retries cannot fit the step deadline", at, detail))
	}
	constant := "strategy = \"constant\"\ninitial_interval = \"1s\"\n"
	checkRules(t, []rule{
		{"they fit", with("32s", `timeout = "10s"`, constant+"max_attempts = 3"), nil},
		{"the last one does not", with("22s", `timeout = "10s"`, constant+"max_attempts = 3"), warned(`"22s"`, "3 attempts of 10s plus backoff take up to 32s; if each takes its full time, attempt 3 can never start.")},
		{"the last two do not", with("33s", `timeout = "10s"`, constant+"max_attempts = 5"), warned(`"33s"`, "attempts 4 and 5 can never start.")},
		{"three do not", with("22s", `timeout = "10s"`, constant+"max_attempts = 5"), warned(`"22s"`, "attempts 3 to 5 can never start.")},
		{"pauses that grow", with("37s", `timeout = "10s"`, "max_attempts = 4"), warned(`"37s"`, "4 attempts of 10s plus backoff take up to 47s; if each takes its full time, attempt 4 can never start.")},
		{"pauses that grow by as much", with("27s", `timeout = "5s"`, "strategy = \"linear\"\nmax_attempts = 5"), warned(`"27s"`, "take up to 35s; if each takes its full time, attempt 5 can never start.")},
		{"nothing was asked", step("s", `deadline = "5s"`), nil},
		{"only the pause was asked", with("5s", "", constant), nil},
		{"only the timeout was asked", step("s", "deadline = \"40s\"\ntimeout = \"30s\""), warned(`"40s"`, "3 attempts of 30s plus backoff take up to 1m33s; if each takes its full time, attempt 3 can never start.")},
		{"one attempt", with("5s", `timeout = "10s"`, "max_attempts = 1"), nil},
		{"without bound", with("5s", `timeout = "10s"`, "max_attempts = \"unbounded\""), nil},
		{"a deadline that is a time", with("2030-01-31T18:00:00Z", `timeout = "10s"`, "max_attempts = 3"), nil},
		{"a deadline that depends on the run", "variable \"d\" { default = \"5s\" }\n" + step("s", "deadline = var.d\nretry { max_attempts = 5 }"), nil},
	})
}

// TestAfterUnknownOutcomes: what follows an attempt whose outcome is unknown, in order.
func TestAfterUnknownOutcomes(t *testing.T) {
	charge := func(body, undo string) string {
		return "step \"s\" {\n action = agent.shop.charge\n input { amount = 1 }\n" + body + "\n compensate {\n  action = agent.shop.refund\n" + undo + "\n}\n}\n"
	}
	output, key := "input { charge_id = self.output.charge_id }", "input { charge_id = self.key }"
	once := func(body, undo string) string {
		return strings.Replace(charge("idempotent = false\n"+body, undo), "agent.shop.charge\n input { amount = 1 }", "agent.echo.once", 1)
	}
	for _, tt := range []struct {
		name, body string
		want       []rung.Rung
	}{
		{"a question, then the same call, then an undo with the output", charge("", output), []rung.Rung{rung.Ask, rung.Repeat, rung.Learn}},
		{"an undo without the output", charge("", key), []rung.Rung{rung.Ask, rung.Repeat, rung.Undo}},
		{"an undo by key", "step \"s\" {\n action = agent.shop.reserve\n input { sku = \"a\" }\n}\n", []rung.Rung{rung.Repeat, rung.UndoByKey}},
		{"one attempt", charge("retry { max_attempts = 1 }", output), []rung.Rung{rung.Ask, rung.Learn}},
		{"one attempt in each of several rounds", charge("retry {\n max_attempts = 1\n on_exhausted = \"cool_down\"\n}", output), []rung.Rung{rung.Ask, rung.Repeat, rung.Learn}},
		{"not idempotent, undone with the output", once("", "input { charge_id = self.output.value }"), []rung.Rung{rung.Park}},
		{"not idempotent, undone without the output", once("retry { max_attempts = 3 }", key), []rung.Rung{rung.Undo}},
		{"undone before it is repeated", once("on_rerun = \"undo_first\"\nretry { max_attempts = 3 }", key), []rung.Rung{rung.UndoFirst, rung.Undo}},
		{"undone before it is repeated, but once", once("on_rerun = \"undo_first\"", key), []rung.Rung{rung.Undo}},
		{"never undone", step("s", ""), []rung.Rung{rung.Repeat, rung.Fail}},
		{"caught for all codes", charge("catch { errors = [\"timeout\", \"*\"] }", output), []rung.Rung{rung.Ask, rung.Repeat, rung.Catch}},
		{"caught for one code", charge("catch { errors = [\"timeout\"] }", key), []rung.Rung{rung.Ask, rung.Repeat, rung.Undo}},
		{"caught for codes that depend on the run", "variable \"c\" { default = [\"*\"] }\n" + charge("catch { errors = var.c }", key), []rung.Rung{rung.Ask, rung.Repeat, rung.Undo}},
		{"a person decides", "compensation { mode = \"manual\" }\n" + charge("", key), []rung.Rung{rung.Ask, rung.Repeat, rung.Park}},
		{"the pivot", "step \"s\" {\n action = agent.echo.call\n pivot = true\n}\n", []rung.Rung{rung.Repeat, rung.Park}},
		{"far after the pivot", "step \"p\" {\n action = agent.echo.call\n pivot = true\n}\n" + step("m", "depends_on = [step.p]\ncatch { errors = [\"*\"] }") + step("s", "depends_on = [step.m]\nretry { max_attempts = \"unbounded\" }"), []rung.Rung{rung.Repeat, rung.Park}},
		{"before the pivot", "step \"p\" {\n action = agent.echo.call\n pivot = true\n}\n" + charge("", key), []rung.Rung{rung.Ask, rung.Repeat, rung.Undo}},
		{"a read", "step \"s\" {\n action = agent.echo.look\n}\n", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wf := linkedWorkflow(t, tt.body)
			s := stepOf(t, wf, "s")
			if got := wf.AfterUnknown(s, settingsOf(t, s, &dsl.Scope{}).Retry); fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}
