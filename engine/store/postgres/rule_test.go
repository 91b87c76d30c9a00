package postgres

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/lib/pq"

	"github.com/saga-engine/engine/dsl"
)

// A guess makes random conditions and inputs.
type guess struct{ *rand.Rand }

func (g guess) of(list ...string) string { return list[g.IntN(len(list))] }

// condition returns a random condition. A depth of 0 has no && and ||.
func (g guess) condition(depth int) string {
	if depth > 0 && g.IntN(3) > 0 {
		return fmt.Sprintf("%s(%s) %s (%s)", g.of("", "", "!"), g.condition(depth-1), g.of("&&", "||"), g.condition(depth-1))
	}
	switch g.IntN(7) {
	case 0:
		return g.text() + g.of(" == ", " != ") + g.text()
	case 1:
		return fmt.Sprintf("can(regex(%q, %s))", g.pattern(3), g.text())
	case 2:
		return fmt.Sprintf("contains([%s, %s, %s], %s)", g.word(), g.word(), g.word(), g.text())
	case 3:
		return g.of("startswith(", "endswith(") + g.text() + ", " + g.text() + ")"
	case 4:
		return g.of("var.b", "!var.b", "var.b == true", "var.s != null", "var.n == null", "var.o.name == null", "contains([1, 0.1, -2.50], var.n)")
	}
	return g.number() + g.of(" < ", " <= ", " > ", " >= ", " == ", " != ") + g.number()
}

func (g guess) text() string {
	return g.of("var.s", "var.s", "var.o.name", "trimspace(var.s)", g.word())
}

func (g guess) number() string {
	return g.of("var.n", "var.n", "var.o.total", "length(var.s)", "length(var.list)", "length(var.map)", "0", "1", "3", "-2.5", "0.1", "1e3",
		"1."+strings.Repeat("0", 90)+"1")
}

func (g guess) word() string { return fmt.Sprintf("%q", g.of(words...)) }

// words are the texts of conditions and of inputs. Some have characters that PostgreSQL and the
// language might treat differently.
var words = []string{"", "a", "A", "ab", " a ", "a-b", "o-1", "EUR", "x\\y", "[a]", "é", "e\u0301", "ß", "\r\n", "\t", "a\nb", "漢", "^a$", "a.b", "'", "\"", "%_", "null", "1", "\u00a0a", "(a)", "{2}"}

// pattern returns a random regular expression.
func (g guess) pattern(depth int) string {
	if depth == 0 {
		return g.of("a", "b", "E", "1", "-", ".", `\d`, `\w`, `\s`, `\S`, `\.`, "[a-z]", "[^a-z]", "[-a]", `[\]^]`, "[[:alpha:]]", "[^x]", "^", "$", `\\`, "é", " ", "'", "_", `\x41`, "[+--]", "()")
	}
	a, b := g.pattern(depth-1), g.pattern(depth-1)
	switch g.IntN(6) {
	case 0:
		return a + "|" + b
	case 1:
		return "(" + a + ")" + g.of("*", "+", "?", "{2}", "{1,}", "{0,3}", "*?", "{2,3}?", "{0}")
	case 2:
		return "(?:" + a + ")"
	case 3:
		return "^" + a + "$"
	}
	return a + b
}

// input returns random values of the variables in JSON.
func (g guess) input() map[string]json.RawMessage {
	text := func() string {
		data, err := json.Marshal(g.of(words...))
		if err != nil {
			panic(err)
		}
		return string(data)
	}
	number := func() string {
		return g.of("0", "-0", "1", "1.0", "2", "3", "-2.5", "-2.50", "0.1", "0.10", "1000", "1e3", "1e-400", "9e399", "1."+strings.Repeat("0", 90)+"1", "1."+strings.Repeat("0", 200)+"1")
	}
	in := map[string]json.RawMessage{}
	put := func(name, value string) {
		if g.IntN(12) > 0 {
			in[name] = json.RawMessage(value)
		}
	}
	put("s", g.of(text(), text(), text(), "null"))
	put("n", g.of(number(), number(), number(), "null"))
	put("b", g.of("true", "false"))
	put("list", g.of("[]", "[1]", "[1,1,2]"))
	put("map", g.of("{}", `{"a":"x"}`, `{"a":"x","b":null,"c":""}`))
	put("o", g.of(`{"total":`+number()+`}`, `{"total":`+number()+`,"name":`+text()+`}`, `{"total":`+number()+`,"name":null}`))
	return in
}

// ruled returns the workflow whose variable s has the condition; nil = the language refuses the condition.
func ruled(t *testing.T, condition string) *dsl.Workflow {
	t.Helper()
	module, diags := dsl.Parse(fstest.MapFS{"main.hcl": {Data: []byte(`
workflow "w" {
  deadline = "1h"
  variable "s" {
    type    = string
    default = "a"
    validation {
      condition     = ` + strings.ReplaceAll(condition, "${", "$${") + `
      error_message = "no"
    }
  }
  variable "n" {
    type    = number
    default = 1
  }
  variable "b" {
    type    = bool
    default = true
  }
  variable "list" {
    type    = list(number)
    default = []
  }
  variable "map" {
    type    = map(string)
    default = {}
  }
  variable "o" {
    type    = object({ total = number, name = optional(string) })
    default = { total = 1 }
  }
  step "a" { value = 1 }
}
`)}}, dsl.ParseOptions{})
	if diags.HasErrors() {
		t.Fatalf("%s: %v", condition, diags.Err())
	}
	def, _ := dsl.Link(module, nil)
	if def == nil {
		return nil // the language refuses the condition, for example because it is always null
	}
	return def.Workflow("w")
}

// accepts reports whether the language accepts the input.
func accepts(t *testing.T, wf *dsl.Workflow, in map[string]json.RawMessage) bool {
	t.Helper()
	var given []dsl.Assignment
	for name, text := range in {
		a, err := wf.Assign(name, text, "test")
		if err != nil {
			t.Fatal(err)
		}
		given = append(given, a)
	}
	_, diags := wf.Bind(given)
	return !diags.HasErrors()
}

// S54: the server has enough memory for the deepest rule.
func TestDeepRule(t *testing.T) {
	wf := ruled(t, strings.Repeat("!(", 48)+"var.b"+strings.Repeat(")", 48))
	var rule string
	for _, v := range wf.Variables {
		for _, r := range v.Rules {
			rule = string(r.Check)
		}
	}
	var got string
	err := raw(t, migrated(t)).QueryRowContext(t.Context(), `SELECT engine.rule($1::jsonb, '{"b":true}')::text`, rule).Scan(&got)
	if err != nil || got != "true" {
		t.Errorf("rule %s: %s, %v", rule, got, err)
	}
}

// S54: whenever PostgreSQL can evaluate the condition of a validation block, the language has the same
// result. This is checked for random conditions and inputs.
func TestRulesAgree(t *testing.T) {
	db := raw(t, migrated(t))
	const conditions, inputs = 500, 40
	var rules, known, refused int
	for seed := range uint64(conditions) {
		g := guess{rand.New(rand.NewPCG(seed, 31))}
		condition := g.condition(int(seed % 3))
		wf := ruled(t, condition)
		if wf == nil {
			continue
		}
		var rule []byte
		for _, v := range wf.Variables {
			for _, r := range v.Rules {
				rule = r.Check
			}
		}
		if rule == nil {
			continue
		}
		rules++
		in := make([]map[string]json.RawMessage, inputs)
		texts := make([]string, inputs)
		for i := range in {
			in[i] = g.input()
			data, err := json.Marshal(in[i])
			if err != nil {
				t.Fatal(err)
			}
			texts[i] = string(data)
		}
		rows, err := db.QueryContext(t.Context(), `SELECT engine.rule($1::jsonb, x::jsonb)::text FROM unnest($2::text[]) WITH ORDINALITY u(x, n) ORDER BY n`, string(rule), pq.StringArray(texts))
		if err != nil {
			t.Fatalf("seed %d: %s: %s: %v", seed, condition, rule, err)
		}
		for i := 0; rows.Next(); i++ {
			var got sql.NullString
			if err := rows.Scan(&got); err != nil {
				t.Fatal(err)
			}
			if !got.Valid {
				continue
			}
			known++
			if got.String == "false" {
				refused++
			}
			if want := accepts(t, wf, in[i]); got.String != fmt.Sprint(want) {
				t.Errorf("seed %d: %s with %s: PostgreSQL says %s, the language %v (rule %s)", seed, condition, texts[i], got.String, want, rule)
			}
		}
		if err := rows.Err(); err != nil {
			t.Fatalf("seed %d: %s: %s: %v", seed, condition, rule, err)
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("%d of %d conditions have rules; of %d inputs PostgreSQL evaluated %d, and refused %d", rules, conditions, rules*inputs, known, refused)
	if rules < conditions/2 || known < rules*inputs/3 || refused < known/10 || refused > known*9/10 {
		t.Error("these are too few for this test")
	}
}
