package dsl_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/saga-engine/engine/dsl"
)

// A priority is a whole number from 0 to 100. A literal is checked before a run, and a computed
// one in the run, with the place of its line.
func TestPriorities(t *testing.T) {
	for _, c := range []struct {
		value string
		want  int // -1: it is refused
	}{
		{"0", 0}, {"50", 50}, {"100", 100}, {`"90"`, 90}, {"101", -1}, {"-1", -1}, {"1.5", -1}, {`"high"`, -1}, {"null", -1}, {"[1]", -1},
	} {
		file := "workflow \"w\" {\nvariable \"v\" {\n type = any\n default = null\n}\npriority = %s\n" + step("s", "") + "}\n"
		_, diags := check(files{"main.hcl": strings.Replace(file, "%s", c.value, 1)})
		wf := linked(t, files{"main.hcl": strings.Replace(file, "%s", "var.v", 1)}).Workflow("w")
		got, err := wf.Priority(scopeOf(bound(t, wf, "v", c.value)))
		if c.want < 0 {
			if len(about(diags, "Invalid value for priority")) != 1 {
				t.Errorf("%s: %v", c.value, diags.Err())
			}
			wantError(t, err, "main.hcl:6")
			wantError(t, err, "a whole number from 0 to 100 is required")
			continue
		}
		if diags.HasErrors() || err != nil || got != c.want {
			t.Errorf("%s: %v; in a run %d, %v", c.value, diags.Err(), got, err)
		}
	}
	if wf := linked(t, files{"main.hcl": "workflow \"w\" {\n" + step("s", "") + "}\n"}).Workflow("w"); wf.Priority != nil || wf.Concurrency != nil {
		t.Error("a workflow that says nothing has a priority or a limit")
	}
}

// A step has the priority of its run, or its own. TestSettings checks its values.
func TestPriorityOfSteps(t *testing.T) {
	wf := linked(t, files{"main.hcl": workflow("variable \"v\" { default = 7 }\n" + step("plain", "") + step("own", "priority = var.v * 10\n"))}).Workflow("w")
	for name, want := range map[string]int{"plain": -1, "own": 70} {
		s, err := stepOf(t, wf, name).Settings(scopeOf(bound(t, wf)))
		if err != nil || s.Priority != want {
			t.Errorf("%s: priority %d, %v, want %d", name, s.Priority, err, want)
		}
	}
	if !wf.StepPriorities {
		t.Error("the workflow does not know that a step has a priority")
	}
	if linked(t, files{"main.hcl": workflow(step("plain", ""))}).Workflow("w").StepPriorities {
		t.Error("no step has a priority, and the workflow says that one has")
	}
}

// A limit is a whole number of at least 1, computed from variables. A key is a text.
func TestConcurrencyOfWorkflows(t *testing.T) {
	inside := "workflow \"w\" {\nvariable \"v\" {\n type = any\n default = null\n}\nvariable \"k\" { default = \"\" }\nconcurrency {\nlimit = var.v\nkey = var.k\n%s}\n" + step("s", "") + "}\n"
	for when, reject := range map[string]bool{"": false, "when_full = \"queue\"\n": false, "when_full = \"reject\"\n": true} {
		wf := linked(t, files{"main.hcl": fmt.Sprintf(inside, when)}).Workflow("w")
		if wf.Concurrency == nil || wf.Concurrency.Reject != reject {
			t.Fatalf("%q: %+v", when, wf.Concurrency)
		}
		s := scopeOf(bound(t, wf, "v", "3", "k", "eu"))
		limit, err := wf.Concurrency.Limit(s)
		key, err2 := wf.Concurrency.Key(s)
		if limit != 3 || key != "eu" || err != nil || err2 != nil {
			t.Errorf("limit %d, key %q, %v, %v", limit, key, err, err2)
		}
		for _, bad := range []string{"0", "-1", "2.5", "1000001", "null"} {
			_, err := wf.Concurrency.Limit(scopeOf(bound(t, wf, "v", bad)))
			wantError(t, err, "a whole number from 1 to 1000000 is required")
		}
		_, err = wf.Concurrency.Key(scopeOf(bound(t, wf, "v", "3", "k", "")))
		wantError(t, err, "a key cannot be empty")
	}
	wf := linked(t, files{"main.hcl": "workflow \"w\" {\nconcurrency { limit = 2 }\n" + step("s", "") + "}\n"}).Workflow("w")
	if n, err := wf.Concurrency.Limit(&dsl.Scope{}); n != 2 || err != nil || wf.Concurrency.Key != nil {
		t.Errorf("limit %d, %v", n, err)
	}
}

// The limit of a group is computed from what the group takes from its surroundings: variables, locals,
// each.* of the group and of groups around it, and steps around it. The group waits for these steps.
func TestConcurrencyOfGroups(t *testing.T) {
	def := linked(t, files{"main.hcl": workflow(`
variable "n" { default = 2 }
locals { room = "${step.first.output}-${var.n}" }
step "first" { value = "f" }
step "most" { value = 3 }
group "a" {
  for_each = { k = "v" }
  concurrency {
    limit     = step.most.output + var.n
    key       = "${local.room}/${each.key}/${each.value}"
    when_full = "reject"
  }
  locals { mine = "${each.key}-${var.n}" }
  step "own" { value = "o" }
  group "b" {
    concurrency {
      limit = 1
      key   = "${local.mine}/${step.own.output}/${each.value}"
    }
    step "inner" { value = 1 }
  }
}
group "plain" {
  step "last" { value = 1 }
}
`)})
	wf := def.Workflow("w")
	a, b := def.Workflow("w.a"), def.Workflow("w.a.b")
	if wf.Concurrency != nil || a.Concurrency == nil || !a.Concurrency.Reject || b.Concurrency == nil || b.Concurrency.Reject || def.Workflow("w.plain").Concurrency != nil {
		t.Fatalf("limits %+v, %+v, %+v", wf.Concurrency, a.Concurrency, b.Concurrency)
	}
	g := stepOf(t, wf, "a")
	var after []string
	for _, i := range g.After {
		after = append(after, wf.Steps[i].Name)
	}
	if fmt.Sprint(after) != "[first most]" {
		t.Errorf("the group waits for %v", after)
	}
	scope := scopeOf(bound(t, wf))
	scope.Step = func(i int) dsl.StepResult {
		return succeeded(map[string]string{"first": `"f"`, "most": `3`}[wf.Steps[i].Name])
	}
	scope.Each = &dsl.EachItem{Key: "k", Value: document(`"v"`)}
	v, err := g.Input(scope)
	if err != nil {
		t.Fatal(err)
	}
	limit, err := a.Concurrency.Limit(&dsl.Scope{Vars: v})
	key, err2 := a.Concurrency.Key(&dsl.Scope{Vars: v})
	if limit != 5 || key != "f-2/k/v" || err != nil || err2 != nil {
		t.Errorf("limit %d, key %q, %v, %v", limit, key, err, err2)
	}
	in := scopeOf(v)
	in.Step = func(int) dsl.StepResult { return succeeded(`"o"`) }
	if v, err = stepOf(t, a, "b").Input(in); err != nil {
		t.Fatal(err)
	}
	if key, err = b.Concurrency.Key(&dsl.Scope{Vars: v}); key != "k-2/o/v" || err != nil {
		t.Errorf("key of the inner group %q, %v", key, err)
	}
}
