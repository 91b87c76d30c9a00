package dsl_test

import (
	"strings"
	"testing"

	"github.com/saga-engine/engine/dsl"
)

// numerals are numbers as they are written and as JSON shows them: exact decimals.
func numerals() []struct{ name, in, want string } {
	long := strings.Repeat("1234567890", 99) // 990 digits
	return []struct{ name, in, want string }{
		{"zero", "0", "0"}, {"negative zero", "-0", "0"}, {"zero with a fraction", "0.000", "0"}, {"one", "1", "1"}, {"negative", "-1.50", "-1.5"},
		{"the largest double without gaps", "9007199254740992", "9007199254740992"}, {"one more", "9007199254740993", "9007199254740993"},
		{"the largest int64", "9223372036854775807", "9223372036854775807"}, {"one more than that", "9223372036854775808", "9223372036854775808"},
		{"the smallest int64", "-9223372036854775808", "-9223372036854775808"}, {"beyond uint64", "18446744073709551616", "18446744073709551616"},
		{"a tenth", "0.1", "0.1"}, {"a third, cut", "0.3333333333333333333333", "0.3333333333333333333333"}, {"trailing zeros", "2.50000", "2.5"},
		{"an exponent", "1e30", "1" + strings.Repeat("0", 30)}, {"a signed exponent", "25e-3", "0.025"}, {"a capital exponent", "1.5E2", "150"}, {"400 digits", "1e400", "1" + strings.Repeat("0", 400)},
		{"very small", "1e-400", "0." + strings.Repeat("0", 399) + "1"}, {"160 digits", long[:160], long[:160]}, {"201 digits", long[:200] + "1", long[:200] + "1"},
		{"a long fraction", "0." + long[:300] + "7", "0." + long[:300] + "7"}, {"990 digits", long, long}, {"990 digits, negative", "-" + long, "-" + long},
		{"digits on both sides of the point", long[:400] + "." + long[:399], long[:400] + "." + long[:399]},
	}
}

// TestNumbersFromEverySource: a number keeps all its digits, whether it is written in a
// file, given as a variable, read from JSON or returned by an agent.
func TestNumbersFromEverySource(t *testing.T) {
	wf := linkedWorkflow(t, "variable \"n\" { type = number }\nvariable \"a\" { default = null }\nvariable \"s\" { default = \"\" }\n"+
		"output \"typed\" { value = var.n }\noutput \"decoded\" { value = jsondecode(var.s) }\noutput \"encoded\" { value = jsonencode({ x = var.n }) }\n"+
		step("a", "input { value = [var.n] }")+"output \"reply\" { value = step.a.output.value }\n")
	for _, tt := range numerals() {
		t.Run(tt.name, func(t *testing.T) {
			v, err := linkedWorkflow(t, "output \"o\" { value = "+tt.in+" }\n"+step("a", "")).Outputs[0].Value(&dsl.Scope{})
			wantValue(t, v, err, tt.want)

			vars := bound(t, wf, "n", tt.in, "a", "["+tt.in+"]", "s", tt.in)
			if got, want := string(vars.JSON()), `{"a":[`+tt.want+`],"n":`+tt.want+`,"s":"`+tt.in+`"}`; got != want {
				t.Errorf("as a variable\ngot  %s\nwant %s", got, want)
			}
			assigned, diags := dsl.ParseVars("x.vars.hcl", []byte("n = "+tt.in+"\n"))
			vars, more := wf.Bind(assigned)
			if want := `{"a":null,"n":` + tt.want + `,"s":""}`; diags.HasErrors() || more.HasErrors() || string(vars.JSON()) != want {
				t.Errorf("from a values file: %s, %v; want %s", vars.JSON(), more.Err(), want)
			}
			reply, err := wf.Steps[0].Do.Output([]byte(`{"value":` + tt.in + `}`))
			wantValue(t, reply, err, `{"value":`+tt.want+`}`)

			scope := scopeOf(document(`{"a":null,"n":` + tt.want + `,"s":"` + tt.in + `"}`))
			scope.Step = func(int) dsl.StepResult {
				return dsl.StepResult{One: dsl.InstanceResult{Status: "succeeded", Output: reply}}
			}
			for i, want := range []string{tt.want, tt.want, `"{\"x\":` + tt.want + `}"`, tt.want} {
				v, err := wf.Outputs[i].Value(scope)
				wantValue(t, v, err, want)
			}
			in, err := wf.Steps[0].Input(scope)
			wantValue(t, in, err, `{"value":[`+tt.want+`]}`)
		})
	}
}

// TestNumbersThatAreTooLong: a number has at most 1,000 digits, before and after the point
// together. One that has more is refused; it never becomes another number.
func TestNumbersThatAreTooLong(t *testing.T) {
	wf := linkedWorkflow(t, "variable \"n\" { type = number }\nvariable \"a\" { default = null }\nvariable \"s\" { default = \"\" }\n"+
		"output \"decoded\" { value = jsondecode(var.s) }\n"+step("a", ""))
	nines := strings.Repeat("9", 1000)
	for name, in := range map[string]string{
		"1,001 digits": nines + "9", "1,001 digits of a fraction": "0." + nines + "9", "1,001 digits on both sides": nines[:500] + "." + nines[:501],
		"a large exponent": "1e1001", "a small exponent": "1e-1010",
	} {
		t.Run(name, func(t *testing.T) {
			_, diags := check(files{"main.hcl": workflow("output \"o\" { value = " + in + " }\n" + step("a", ""))})
			if got := about(diags, "Number too long"); len(got) != 1 || got[0].Detail != "A number may have at most 1000 digits." {
				t.Errorf("written out: %v", diags.Err())
			}
			for _, a := range []dsl.Assignment{{Name: "n", Text: in}, {Name: "n", Text: "-" + in}} {
				if v, diags := wf.Bind([]dsl.Assignment{a}); !diags.HasErrors() || !strings.Contains(diags.Err().Error(), "at most 1000 digits") {
					t.Errorf("as a variable: %.40s, %v", v.JSON(), diags.Err())
				}
			}
			if _, diags := dsl.ParseVars("x.vars.hcl", []byte("n = "+in+"\n")); len(about(diags, "Number too long")) != 1 {
				t.Errorf("in a values file: %v", diags.Err())
			}
			_, err := wf.Outputs[0].Value(scopeOf(document(`{"a":null,"n":1,"s":"` + in + `"}`)))
			wantError(t, err, "a number may have at most 1000 digits")
			_, err = wf.Steps[0].Do.Output([]byte(`{"value":` + in + `}`))
			wantError(t, err, "a number may have at most 1000 digits")
		})
	}
}

// TestArithmetic: sums and products of decimals are decimals.
func TestArithmetic(t *testing.T) {
	for expr, want := range map[string]string{
		"0.1 + 0.2": "0.3", "1.1 * 1.1": "1.21", "0.3 - 0.1": "0.2", "1 - 0.9": "0.1", "19.99 * 3": "59.97", "10 / 4": "2.5", "7 % 3": "1", "-7 % 3": "-1", "7.5 % 2": "1.5",
		"9007199254740993 + 1": "9007199254740994", "9007199254740993 * 9007199254740993": "81129638414606699710187514626049", "1e400 + 1": "1" + strings.Repeat("0", 399) + "1",
		"-(-3)": "3", "2 * (3 + 4)": "14", "2 * 3 + 4": "10", "100 / 10 / 5": "2", "1e3": "1000", "\"5\" + 1": "6", "\"0.1\" * 3": "0.3",
		"1 == 1.0": "true", "0.1 + 0.2 == 0.3": "true", "9007199254740993 == 9007199254740992": "false", "1 < 1": "false", "1 <= 1": "true", "2 > 1": "true", "1 >= 2": "false", "1 != 1": "false",
		"!true || true && false": "false", "true ? 1 : 2": "1", "1 == \"1\"": "false", "null == null": "true", "[1, 2] == [1, 2]": "true", "{ a = 1 } == { a = 1 }": "true", "[1] == [\"1\"]": "false",
	} {
		wantEvaluated(t, expr, want)
	}
}
