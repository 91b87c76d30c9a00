package rule

import (
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// variables are the types of the variables in these tests.
var variables = map[string]cty.Type{
	"s": cty.String, "n": cty.Number, "b": cty.Bool, "any": cty.DynamicPseudoType,
	"list": cty.List(cty.Number), "set": cty.Set(cty.String), "map": cty.Map(cty.String),
	"o": cty.Object(map[string]cty.Type{"total": cty.Number, "name": cty.String}),
}

func of(t *testing.T, condition string) string {
	t.Helper()
	e, diags := hclsyntax.ParseExpression([]byte(condition), "test.hcl", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatalf("%s: %v", condition, diags)
	}
	return string(Of(e, func(name string) cty.Type { return variables[name] }))
}

// S54: the conditions that PostgreSQL can check, as rules.
func TestTranslated(t *testing.T) {
	for condition, want := range map[string]string{
		`var.n > 0`:                           `["gt",["input","{\"n\"}"],["is",0]]`,
		`-1.50 <= var.o.total`:                `["le",["is",-1.5],["input","{\"o\",\"total\"}"]]`,
		`var.b`:                               `["input","{\"b\"}"]`,
		`!var.b || (var.s == "x")`:            `["or",["not",["input","{\"b\"}"]],["eq",["input","{\"s\"}"],["is","x"]]]`,
		`"${var.n >= 1 && var.n < 5}"`:        `["and",["ge",["input","{\"n\"}"],["is",1]],["lt",["input","{\"n\"}"],["is",5]]]`,
		`null != var.set`:                     `["not",["null",["input","{\"set\"}"]]]`,
		`length(var.list) == length(var.map)`: `["eq",["length",["input","{\"list\"}"]],["length",["input","{\"map\"}"]]]`,
		`trimspace(var.s) != ""`:              `["not",["eq",["trim",["input","{\"s\"}"]],["is",""]]]`,
		`contains(["EUR", "USD"], var.s)`:     `["in",["EUR","USD"],["input","{\"s\"}"]]`,
		`contains([1, 2.5], var.n)`:           `["in",[1,2.5],["input","{\"n\"}"]]`,
		`startswith(var.s, "o-")`:             `["starts",["input","{\"s\"}"],["is","o-"]]`,
		`endswith(var.o.name, var.s)`:         `["ends",["input","{\"o\",\"name\"}"],["input","{\"s\"}"]]`,
		`can(regex("^[A-Z]{3}$", var.s))`:     `["match","(?:^)(?:(?:[A-Z]){3,3})(?:$)",["input","{\"s\"}"]]`,
	} {
		if got := of(t, condition); got != want {
			t.Errorf("%s\nis  %s\nnot %s", condition, got, want)
		}
	}
}

// What PostgreSQL might evaluate differently is left to the engine.
func TestNotTranslated(t *testing.T) {
	for _, condition := range []string{
		`var.any == 1`, `var.s > 5`, `var.s == var.n`, `var.list == [1]`, `var.n + 1 > 2`, `var.unknown == 1`,
		`local.x == 1`, `var.s`, `var.n`, `length(var.set) > 1`, `length(var.any) > 1`, `var.s == "é"`, `var.s == "a\nb"`,
		`contains([], var.s)`, `contains(["a", 1], var.s)`, `contains(["a", var.s], var.s)`, `contains(var.list, var.n)`,
		`can(regex(var.s, var.s))`, `can(var.s)`, `can(regex("(?i)a", var.s))`, `can(regex("\\bword", var.s))`,
		`can(regex("(?m)^a$", var.s))`, `can(regex("é", var.s))`, `can(regex("a{300}", var.s))`, `can(regex("(?P<x>a)", var.s))`,
		`can(regex("[^ -~]", var.s))`, `can(regex("(", var.s))`, `upper(var.s) == "A"`, `var.n == 1e500`, `var.n == 1e-500`,
		`var.n > 0 && var.any`, `var.b ? true : false`, `var.list[0] > 1`, `var.s == null && var.list`, `length(var.list...) > 1`,
		`var.n == 1` + strings.Repeat("0", 100), `null == null`, strings.Repeat("var.b && ", 50) + "var.b",
	} {
		if got := of(t, condition); got != "" {
			t.Errorf("%s is translated to %s", condition, got)
		}
	}
}
