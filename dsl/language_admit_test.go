package dsl_test

import (
	"strings"
	"testing"
)

// S92: an admit block becomes one check with its parameters as texts. A value is never inserted into
// the statement.
func TestAdmitBlocks(t *testing.T) {
	file := `workflow "w" {
  variable "id" { type = string }
  variable "v" {
    type    = any
    default = null
  }
  admit "order" {
    sql           = "  SELECT o.status = 'open' FROM public.orders o WHERE o.id = $1 AND o.total = $2  "
    args          = [var.id, 2.5, var.v, [1, "a"], run.workflow]
    lock          = "version"
    bump          = "UPDATE public.orders SET version = version + 1 WHERE id = $1 AND note <> $5 AND $3 = '$9' AND $4"
    error_message = "Order ${var.id} is not open."
  }
  admit "plain" {
    sql           = "WITH x AS (SELECT 1) SELECT true FROM public.orders"
    error_message = "No order."
  }
` + step("s", "") + "}\n"
	wf := linked(t, files{"main.hcl": file}).Workflow("w")
	if len(wf.Admits) != 2 {
		t.Fatalf("%d admit blocks", len(wf.Admits))
	}
	a, b := wf.Admits[0], wf.Admits[1]
	if a.Name != "order" || a.Lock != "version" || a.Params != 2 || a.BumpParams != 5 || strings.TrimSpace(a.SQL) != a.SQL || b.Lock != "share" || b.Args != nil || b.Bump != "" {
		t.Errorf("admit = %+v, %+v", a, b)
	}
	s := scopeOf(bound(t, wf, "id", "o'1"))
	s.Run.Workflow = "w"
	args, err := a.Args(s)
	if err != nil || len(args) != 5 {
		t.Fatalf("args = %v, %v", args, err)
	}
	if *args[0] != "o'1" || *args[1] != "2.5" || args[2] != nil || *args[3] != `[1,"a"]` || *args[4] != "w" {
		t.Errorf("args = %q, %q, %v, %q, %q", *args[0], *args[1], args[2], *args[3], *args[4])
	}
	if text, err := a.Message(s); text != "Order o'1 is not open." || err != nil {
		t.Errorf("message = %q, %v", text, err)
	}
}
