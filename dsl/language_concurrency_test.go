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
