package dsl_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/saga-engine/engine/dsl"
)

const replyAgent = `
agent "shop" {
  plugin = "rest"
  action "told" {
    uses      = "post"
    arguments = object({ run = string, seq = number, status = string, correlation = optional(string, "none") })
    input {
      url     = "told"
      json    = { run = args.run, n = args.seq, status = args.status, for = args.correlation, key = self.key }
      headers = { Authorization = secret("env:TOKEN") }
    }
    fail_when {
      condition     = self.output.status >= 300
      error_code    = "refused"
      error_message = "The shop answers ${self.output.status}."
    }
  }
  action "paid" {
    uses      = "post"
    arguments = object({ run = string, seq = number, status = string, amount = number })
    input { url = "paid" }
  }
  action "half" {
    uses      = "post"
    arguments = object({ run = string, status = string })
    input { url = "half" }
  }
  action "list" {
    uses      = "post"
    arguments = object({ run = list(string), seq = number, status = string })
    input { url = "list" }
  }
}
`

// An action takes replies if it has the arguments run, seq and status, and needs nothing that a reply
// lacks. The engine calls it as a step would.
func TestActionsThatTakeReplies(t *testing.T) {
	def, diags := checkWith(files{"main.hcl": replyAgent + workflow(`step "a" { value = 1 }`)}, dsl.ParseOptions{}, restAgents())
	if def == nil {
		t.Fatalf("the module cannot be linked: %v", diags.Err())
	}
	wantFindings(t, diags)
	again, err := dsl.Decode(def.Encode())
	if err != nil {
		t.Fatal(err)
	}
	sinks := again.Workflow("w").ReplySinks
	if got := sinks.Names(); !slices.Equal(got, []string{"shop.told"}) {
		t.Fatalf("sinks = %q", got)
	}
	for name, want := range map[string]string{
		"shop.paid": `it requires the argument "amount"`,
		"shop.half": `it has no argument "seq"`,
		"shop.list": `argument "run"`,
		"shop.post": `it has no argument "run"`,
		"shop.tell": `has no action "tell"`,
		"shp.told":  `the definition has no agent "shp". Did you mean "shop"?`,
		"told":      `the definition has no agent ""`,
	} {
		if _, err := sinks.Find(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	sink, err := sinks.Find("shop.told")
	if err != nil || sink.Action != "post" || sink.Agent.Name != "shop" {
		t.Fatalf("%+v, %v", sink, err)
	}
	in, err := sink.Input(&dsl.Scope{Self: &dsl.Self{Key: "k"}}, map[string]any{"run": "r-1", "seq": 3, "status": "parked", "at": "now"})
	if err != nil || !strings.Contains(string(in.JSON()), `"json":{"for":"none","key":"k","n":3,"run":"r-1","status":"parked"}`) || len(in.Secrets()) != 1 {
		t.Errorf("input %s with %d secrets, %v", in.JSON(), len(in.Secrets()), err)
	}
	for status, want := range map[string]string{"200": "", "503": "The shop answers 503."} {
		_, err := sink.Output([]byte(`{"status":` + status + `}`))
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("answer %s: %v, want %q", status, err, want)
		}
	}
}

// A workflow that only a step can start has no replies.
func TestInnerWorkflowsTakeNoReplies(t *testing.T) {
	def, diags := checkWith(files{"main.hcl": replyAgent + workflow(`group "g" {
  step "a" { value = 1 }
}`)}, dsl.ParseOptions{}, restAgents())
	if def == nil {
		t.Fatalf("the module cannot be linked: %v", diags.Err())
	}
	if _, err := def.Workflow("w.g").ReplySinks.Find("shop.told"); err == nil {
		t.Error("a group has a sink")
	}
}
