package dsl_test

import (
	"fmt"
	"os"
	"testing/fstest"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/sdk/schema"
)

const hello = `workflow "hello" {
  deadline = "1m"
  variable "who" { type = string }
  step "greet" {
    action = agent.chat.post
    input { text = "Hello, ${upper(var.who)}!" }
  }
}
`

// chat is the schema of an agent with one action.
func chat() map[string]dsl.AgentBinary {
	return map[string]dsl.AgentBinary{"chat": {Version: "1.0.0", Schema: schema.Schema{
		Name: "chat", Version: "1.0.0",
		Actions: map[string]schema.Action{
			"post": {Inputs: []schema.Field{{Name: "text", Type: schema.Type{Kind: schema.KindString}}}},
		},
	}}}
}

// From source text to the arguments of a step.
func Example() {
	files := fstest.MapFS{"hello.hcl": {Data: []byte(hello)}}
	module, diags := dsl.Parse(files, dsl.ParseOptions{})
	def, more := dsl.Link(module, chat())
	if err := append(diags, more...).Err(); err != nil {
		fmt.Println(err)
		return
	}
	wf := def.Workflow("hello")
	vars, diags := wf.Bind([]dsl.Assignment{{Name: "who", Text: "world", Source: "--var"}})
	if err := diags.Err(); err != nil {
		fmt.Println(err)
		return
	}
	input, err := wf.Steps[0].Input(&dsl.Scope{Vars: vars})
	fmt.Printf("%s %v\n", input.JSON(), err)
	// Output: {"text":"Hello, WORLD!"} <nil>
}

// Diagnostics show the place and what was probably meant.
func ExampleRender() {
	files := fstest.MapFS{"hello.hcl": {Data: []byte(`workflow "hello" {
  deadline = "1m"
  step "greet" {
    action = agent.chat.post
    input { txt = "Hello!" }
  }
}
`)}}
	module, diags := dsl.Parse(files, dsl.ParseOptions{})
	_, more := dsl.Link(module, chat())
	if err := diag.Render(os.Stdout, append(diags, more...).Errors()[:1], diag.RenderOptions{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// Error: Missing required argument
	//   on hello.hcl line 5, in workflow "hello", step "greet":
	//    5:     input { txt = "Hello!" }
	//           ^^^^^
	// Action chat.post (chat 1.0.0) requires argument "text" (string).
}

// One layout for all.
func ExampleFormat() {
	out, _ := dsl.Format([]byte("locals {\nname=\"${var.x}\"\n  longer   = 1\n}"), "x.hcl")
	fmt.Print(string(out))
	// Output:
	// locals {
	//   name   = var.x
	//   longer = 1
	// }
}
