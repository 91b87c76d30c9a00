package dsl

import (
	"testing"
	"testing/fstest"

	"github.com/saga-engine/engine/sdk/schema"
)

// A workflow that may come to hold sensitive values is known before it runs.
func TestConfidential(t *testing.T) {
	text := schema.Type{Kind: schema.KindString}
	schema := schema.Schema{Name: "a", Version: "1.0.0", Actions: map[string]schema.Action{
		"plain": {
			Inputs:   []schema.Field{{Name: "hidden", Type: text, Optional: true, Sensitive: true}, {Name: "x", Type: text, Optional: true}},
			Outputs:  []schema.Field{{Name: "x", Type: text, Optional: true}},
			ReadOnly: true,
		},
		"do":    {},
		"undo":  {Inputs: []schema.Field{{Name: "hidden", Type: text, Optional: true, Sensitive: true}}, Idempotent: true},
		"issue": {Outputs: []schema.Field{{Name: "token", Type: text, Sensitive: true}}, ReadOnly: true},
	}}
	step := func(action, input string) string {
		return "step \"s\" {\n action = agent.a." + action + "\n input {\n" + input + "\n}\n}\n"
	}
	for name, tt := range map[string]struct {
		body string
		want bool
	}{
		"nothing":                    {step("plain", `x = "a"`), false},
		"secret":                     {step("plain", `x = secret("env:X")`), true},
		"sensitive in a template":    {step("plain", `x = "a ${sensitive("b")}"`), true},
		"sensitive in a local":       {"locals {\n y = sensitive(\"b\")\n}\n" + step("plain", `x = local.y`), true},
		"argument that is sensitive": {step("plain", `hidden = "a"`), true},
		"no argument of the undo":    {step("do", "}\ncompensate {\n action = agent.a.undo"), false},
		"argument of the undo":       {step("do", "}\ncompensate {\n action = agent.a.undo\n input { hidden = \"a\" }"), true},
		"output of an agent":         {step("issue", ""), true},
		"output of the workflow":     {step("plain", "") + "output \"o\" {\n value = 1\n sensitive = true\n}\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			src := "agent \"a\" {}\nworkflow \"w\" {\n deadline = \"1h\"\n" + tt.body + "}\n"
			m, diags := Parse(fstest.MapFS{"main.hcl": {Data: []byte(src)}}, ParseOptions{})
			if diags.HasErrors() {
				t.Fatal(diags.Err())
			}
			def, diags := Link(m, map[string]AgentBinary{"a": {Schema: schema, Version: "1.0.0"}})
			if def == nil {
				t.Fatal(diags.Err())
			}
			if got := def.Workflow("w").Confidential; got != tt.want {
				t.Errorf("Confidential = %t, want %t", got, tt.want)
			}
		})
	}
}
