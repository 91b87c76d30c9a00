package dsl

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/saga-engine/engine/dsl/internal/functions"
	"github.com/saga-engine/engine/dsl/internal/metered"
)

// An attack is an expression that once took gigabytes, minutes or the whole
// process.
type attack struct{ name, expr, want string }

func attacks() []attack {
	rep := strings.Repeat
	text := `join("", [for i in range(1000) : "` + rep("0123456789abcdef", 32) + `"])` // 512 KB
	large := `join("", [for i in range(8) : ` + text + `])`                            // 4 MB
	list := func(n int, e string) string {                                             // of n elements, with i and j
		return fmt.Sprintf("flatten([for i in range(%d) : [for j in range(100) : %s]])", n/100, e)
	}
	words := func(n int) string { return list(n, `"k${i}-${j}"`) }
	mixed := `flatten([for i in range(140) : [for j in range(50) : [j, { "a${i}-${j}" = j }]]])` // a tuple of numbers and objects
	digits := `join("", [for i in range(1000) : "` + rep("9", 900) + `"])`
	const costly = "Expression too expensive"
	return []attack{
		{"deep YAML in flow style", `yamldecode(join("", [for i in range(700) : "` + rep("[", 100) + `"]))`, "nested too deep"},
		{"deep YAML, a bracket a line", `yamldecode(join("", [for i in range(700) : "` + rep(`[\n`, 100) + `"]))`, "nested too deep"},
		{"deep YAML behind quotes", `yamldecode(join("", [for i in range(700) : "` + rep(`[\"]\", `, 10) + `\n"]))`, "nested too deep"},
		{"deep YAML in block style", `yamldecode(join("", [for i in range(700) : "` + rep("- ", 100) + `"]))`, "indented"},
		{"deep YAML behind a byte order mark", `yamldecode("\ufeff${join("", [for i in range(700) : "` + rep("- ", 100) + `"])}")`, "indented"},
		{"deep YAML behind a line separator", `yamldecode("a:\u2028${join("", [for i in range(700) : "` + rep("- ", 100) + `"])}")`, "indented"},
		{"deep YAML behind a paragraph separator", `yamldecode("a:\u2029${join("", [for i in range(700) : "` + rep("- ", 100) + `"])}")`, "indented"},
		{"deep YAML behind a next line", `yamldecode("a:\u0085${join("", [for i in range(700) : "` + rep("- ", 100) + `"])}")`, "indented"},
		{"deep YAML behind a carriage return", `yamldecode("a:\r${join("", [for i in range(700) : "` + rep("- ", 100) + `"])}")`, "indented"},
		{"deep YAML that is JSON", `yamldecode("` + rep("[", 300) + rep("]", 300) + `")`, "nested more than 200 deep"},
		{"aliases of aliases", `yamldecode("a: &a [x,x,x,x,x,x,x,x,x]\n` + aliases(8) + `")`, "aliases repeat"},
		{"aliases behind line separators", `yamldecode("` + strings.NewReplacer(": &", `: [\u2028&`, "]", "]]", "*", `\u2028*`).Replace("a: &a [x,x,x,x,x,x,x,x,x]\\n"+aliases(7)) + `")`, "aliases repeat"},
		{"a large YAML mapping", `yamldecode(join("\n", ` + list(100_000, `"k${i}-${j}: 1"`) + `))`, costly},
		{"hashes of a large text", `length([for s in [` + text + `] : [for i in range(500) : [for j in range(499) : sha512(s)]]])`, costly},
		{"a set of many texts", `length(toset(` + words(100_000) + `))`, costly},
		{"a set of numbers in one bucket", `length(toset(` + list(50_000, "1000000000000 + i * 100 + j") + `))`, costly},
		{"distinct texts", `length(distinct(` + words(100_000) + `))`, costly},
		{"a union", `length(setunion(` + words(50_000) + `, ` + words(50_000) + `))`, costly},
		{"concatenations", `[for l in [` + words(20_000) + `] : length(concat(` + rep("l,", 20) + `l))]`, costly},
		{"chunks", `length(chunklist(` + words(100_000) + `, 1))`, costly},
		{"a long separator", `length(join(` + text + `, ` + words(1000) + `))`, costly},
		{"a repeated argument", `length(format("` + rep("%[1]s", 1000) + `", ` + text + `))`, costly},
		{"lines with a repeated argument", `length(formatlist("` + rep("%[1]s", 300) + `", ` + words(3000) + `))`, costly},
		{"a repeated interpolation", `[for x in [` + text + `] : length("` + rep("${x}", 450) + `")]`, costly},
		{"an interpolation in a loop", `length("%{ for x in range(1000) }${` + text + `}%{ endfor }")`, costly},
		{"YAML of a large text", `length(yamlencode({ a = ` + large + ` }))`, costly},
		{"JSON that escapes", `length(jsonencode([for s in [join("", [for i in range(1000) : "` + rep(`\u0001`, 500) + `"])] : [for i in range(100) : s]]))`, costly},
		{"nested encodings", `length(` + rep("base64encode(", 20) + text + rep(")", 20) + `)`, costly},
		{"matches of nothing", `length(regexall("", ` + text + `))`, costly},
		{"a huge pattern", `length(regexall("` + rep("x{1000}", 500) + `", "a"))`, costly},
		{"a replacement with groups", `length(replace(` + text + `, "/(.*)/", "` + rep("$1", 400) + `"))`, costly},
		{"doubled tuples", rep("[for x in [[1, 1]] : ", 1) + rep("[for x in [[x, x]] : ", 60) + "x" + rep("]", 61), costly},
		{"loops in loops", `length(` + rep("[for x in range(10) : ", 10) + "x" + rep("]", 10) + `)`, costly},
		{"loops that fail", `[for a in range(500) : [for b in range(500) : a.x]]`, costly},
		{"a long number", `parseint(` + digits + `, 10)`, costly},
		{"a long text as a number", `tonumber(` + digits + `)`, costly},
		{"a long operand", `1 + ` + digits, costly},
		{"a long index", `[1, 2][` + digits + `]`, costly},
		{"a number with a huge exponent", `[for a in [1e900] : ` + rep("[for a in [a * a] : ", 20) + `"${a}"` + rep("]", 21), costly},
		{"CSV with many columns", `length(csvdecode(join("\n", [for i in range(1000) : join(",", [for j in range(900) : j])])))`, costly},
		{"JSON with many values", `length(jsondecode("[${join(",", ` + list(100_000, "1") + `)}]"))`, costly},
		{"a condition over long tuples", `length(true ? ` + list(20_000, "i == 1 ? [j] : { a = j }") + ` : [1])`, costly},
		{"the first of a list and a tuple", `coalesce(` + mixed + `, tolist(["x"]))`, costly},
		{"a product of tuples", `setproduct(` + mixed + `, ["a"])`, costly},
		{"a condition over tuples in tuples", `true ? [` + mixed + `] : [tolist(["x"])]`, costly},
		{"a condition over tuples in objects", `true ? { a = ` + mixed + ` } : { a = tolist(["x"]) }`, costly},
		{"a list of a tuple and a list", `tolist([` + mixed + `, tolist(["x"])])`, costly},
		{"a union of a tuple and a list", `setunion([` + mixed + `], [tolist(["x"])])`, costly},
		{"lists of a tuple and of a list", `concat(tolist([` + mixed + `]), tolist([tolist(["x"])]))`, costly},
		{"a list of many types", `tolist(` + mixed + `)`, costly},
		{"letters that are trimmed", `trim(join("", [for i in range(1000) : "` + rep("é", 500) + `"]), join("", [for i in range(1000) : "` + rep("è", 500) + `"]))`, costly},
		{"a product", `setproduct(range(100), range(100), range(100))`, costly},
		{"caught", `try(` + rep("[for x in range(1000) : ", 3) + "x" + rep("]", 3) + `, "caught")`, costly},
		{"asked for", `can(` + rep("[for x in range(1000) : ", 3) + "x" + rep("]", 3) + `) ? 1 : 2`, costly},
		{"alternatives in alternatives", rep("try(", 60) + "1" + rep(")", 60), costly},
	}
}

// aliases writes lines each of which names the one before nine times.
func aliases(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `%c: &%c [%s]\n`, 'b'+i, 'b'+i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", 'a'+i), 9), ","))
	}
	return b.String()
}

// TestAttacks: no expression takes more than 64 MiB beside what was there,
// and each is given up with a clean message. The limit on the heap makes the
// collector run before that, so that only what is needed at once counts.
func TestAttacks(t *testing.T) {
	for _, a := range attacks() {
		t.Run(a.name, func(t *testing.T) {
			syn, diags := hclsyntax.ParseExpression([]byte(a.expr), "x.hcl", hcl.InitialPos)
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			most := heapPeak(func() { _, diags = metered.EvaluateOnce(syn, functions.Table(&functions.Reads{}), nil) })
			if len(diags) == 0 || !strings.Contains(diags[0].Summary+": "+diags[0].Detail, a.want) {
				t.Errorf("diagnostics %.300v, want %q", diags, a.want)
			}
			if most > 64<<20 {
				t.Errorf("it took %d MiB", most>>20)
			}
		})
	}
}

// heapPeak returns by how much the heap and the stacks grew at most meanwhile.
func heapPeak(f func()) int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(int64(m.Sys-m.HeapIdle) + 32<<20))
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	used := func() int64 {
		metrics.Read(samples)
		return int64(samples[0].Value.Uint64() + samples[1].Value.Uint64())
	}
	base := used()
	var peak atomic.Int64
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			peak.Store(max(peak.Load(), used()))
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	}()
	f()
	close(stop)
	<-done
	return peak.Load() - base
}

// TestAllowance: the expressions of one decision share an allowance, and the
// one that would pass it fails.
func TestAllowance(t *testing.T) {
	wf := linked(t, "workflow \"w\" {\n  deadline = \"1h\"\n  variable \"v\" { type = string }\n"+
		"  output \"o\" { value = length([for i in range(1000) : var.v]) }\n}\n").Workflow("w")
	vars := bindAll(t, wf, "v", "a")
	a := NewAllowance(10_000_000)
	eval := func() error {
		_, err := wf.Outputs[0].Value(&Scope{Vars: vars, Memo: &Memo{}, Allowance: a})
		return err
	}
	if err := eval(); err != nil || a.Over() || a.Spent() < 1_000_000 {
		t.Fatalf("first: %v, spent %d, over %t", err, a.Spent(), a.Over())
	}
	err := error(nil)
	for range 10 {
		if err = eval(); err != nil {
			break
		}
	}
	if err == nil || !strings.Contains(err.Error(), "Expression too expensive") || !a.Over() || a.Spent() > 10_000_000 {
		t.Errorf("%v, spent %d, over %t", err, a.Spent(), a.Over())
	}
	var none *Allowance
	if none.Over() || none.Spent() != 0 {
		t.Error("the nil allowance is no allowance")
	}
}

// TestCostDoesNotDependOnMemory: an evaluation pays for what it refers to,
// also where the value is known from another evaluation: or else engines would
// not agree.
func TestCostDoesNotDependOnMemory(t *testing.T) {
	wf := linked(t, `
workflow "w" {
  deadline = "1h"
  variable "v" { type = string }
  locals {
    a = [for i in range(100) : "${var.v}${i}"]
    b = [for x in local.a : upper(x)]
    c = [for x in local.b : "${x}${step.s.output.value}"]
  }
  step "s" {
    action       = agent.mock.call
    compensation = "none"
    input { value = "x" }
  }
  output "o" { value = [for x in local.c : "${x}-${length(local.a)}"] }
  output "p" { value = [for x in local.b : "${x}-${length(local.a)}"] }
}`).Workflow("w")
	vars, memo := bindAll(t, wf, "v", "a"), &Memo{}
	out := StepResult{Final: true, One: InstanceResult{Status: "succeeded", Output: jsonValue(`{"value":"y"}`)}}
	cost := func(i int, m *Memo) int64 {
		a := NewAllowance(1 << 40)
		s := &Scope{Vars: NewValue(vars.JSON(), nil, nil), Memo: m, Allowance: a, Step: func(int) StepResult { return out }}
		if _, err := wf.Outputs[i].Value(s); err != nil {
			t.Fatal(err)
		}
		return a.Spent()
	}
	for i := range wf.Outputs {
		fresh := cost(i, &Memo{})
		for range 2 {
			if kept := cost(i, memo); kept != fresh {
				t.Errorf("output %d costs %d units alone and %d where its values are known", i, fresh, kept)
			}
		}
	}
}
