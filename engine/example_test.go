package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing/fstest"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/memory"
	"github.com/saga-engine/engine/engine/story"
	"github.com/saga-engine/engine/sdk"
	"github.com/saga-engine/engine/sdk/schema"
)

const greeting = `workflow "hello" {
  deadline = "1m"
  variable "who" { type = string }
  step "greet" {
    action       = agent.chat.post
    compensation = "none"
    input { text = "Hello, ${var.who}!" }
  }
  output "said" { value = step.greet.output.said }
}
`

// greetingDefinition links a workflow with the schema of its agent.
func greetingDefinition(text string) (*dsl.Definition, error) {
	module, diags := dsl.Parse(fstest.MapFS{"hello.hcl": {Data: []byte(text)}}, dsl.ParseOptions{})
	def, more := dsl.Link(module, map[string]dsl.AgentBinary{"chat": {Version: "1.0.0", Schema: schema.Schema{
		Name: "chat", Version: "1.0.0",
		Actions: map[string]schema.Action{"post": {
			Inputs:  []schema.Field{{Name: "text", Type: schema.Type{Kind: schema.KindString}}},
			Outputs: []schema.Field{{Name: "said", Type: schema.Type{Kind: schema.KindString}}},
		}},
	}}})
	return def, append(diags, more...).Err()
}

// A chat is an Invoker of its own: it answers calls in this process. An engine that runs
// agents as processes uses a Pool of package agents instead.
type chat struct{}

// Invoke answers at once. A real one calls a service, passes Request.IdempotencyKey on
// to it, and gives up when ctx ends.
func (chat) Invoke(_ context.Context, call invoke.Call) (sdk.Reply, error) {
	var in struct{ Text string }
	if err := json.Unmarshal(call.Request.Input, &in); err != nil {
		return sdk.Reply{Outcome: sdk.OutcomeFailed, Code: "bad_input", Message: err.Error(), Permanent: true}, nil
	}
	out, err := json.Marshal(map[string]string{"said": in.Text})
	return sdk.Reply{Outcome: sdk.OutcomeResult, Output: out}, err
}

// An engine in a program: it joins a store, takes a run and works until its context ends.
func Example() {
	def, err := greetingDefinition(greeting)
	if err != nil {
		fmt.Println(err)
		return
	}
	node, err := engine.NewNode(engine.Config{Store: memory.New(memory.Options{}), Invoker: chat{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- node.Run(ctx) }()

	vars, diags := def.Workflow("hello").Bind([]dsl.Assignment{{Name: "who", Text: "world"}})
	if err := diags.Err(); err != nil {
		fmt.Println(err)
		return
	}
	sent, err := node.Submit(ctx, engine.Submission{Definition: def, Workflow: "hello", Vars: vars, Name: "greeting-1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	state, err := node.Wait(ctx, sent.Run) // until it has ended, or needs a person
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%v %s\n", state.Status(), story.Outputs(state)[0].Value.JSON())
	stop() // calls in flight are awaited, and other engines get what is left
	fmt.Println(<-ended)
	// Output:
	// succeeded "Hello, world!"
	// <nil>
}

// What happens in a run, as it becomes durable.
func ExampleNode_Follow() {
	def, err := greetingDefinition(greeting)
	if err != nil {
		fmt.Println(err)
		return
	}
	node, err := engine.NewNode(engine.Config{Store: memory.New(memory.Options{}), Invoker: chat{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- node.Run(ctx) }()

	vars, _ := def.Workflow("hello").Bind([]dsl.Assignment{{Name: "who", Text: "world"}})
	sent, err := node.Submit(ctx, engine.Submission{Definition: def, Workflow: "hello", Vars: vars})
	if err != nil {
		fmt.Println(err)
		return
	}
	tell := func(first int, facts []story.Fact) {
		for i, f := range facts {
			fmt.Println(strings.TrimSpace(fmt.Sprint(first+i, " ", f.Kind, " ", f.Step)))
		}
	}
	if _, err := node.Follow(ctx, sent.Run, 1, tell, journal.FollowOptions{}); err != nil {
		fmt.Println(err)
	}
	stop()
	<-ended
	// Output:
	// 1 run_created
	// 2 attempt_started greet
	// 3 attempt_finished greet
	// 4 step_finished greet
	// 5 run_finished
}

// A reviewedStore accepts only definitions that were reviewed, whichever program submits the run. It
// is a store of one's own: it has one method of its own, and passes all other calls on to another
// store. To embed store.Full keeps the optional roles of that store, such as its lists of steps. A
// store that is written from the start has the methods of store.Store, and is tested by package
// storetest.
type reviewedStore struct {
	store.Full
	reviewed map[string]bool // digests of the definitions that were reviewed
}

var errNotReviewed = errors.New("the definition was not reviewed")

// PutDefinition stores a definition if it was reviewed. An engine calls it before it accepts the
// first run of the definition.
func (s reviewedStore) PutDefinition(ctx context.Context, d store.Definition) (map[string]store.WorkflowID, error) {
	if !s.reviewed[d.Digest] {
		return nil, errNotReviewed
	}
	return s.Full.PutDefinition(ctx, d)
}

// A store of one's own, and an engine that works on it.
func ExampleConfig_store() {
	def, err := greetingDefinition(greeting)
	if err != nil {
		fmt.Println(err)
		return
	}
	changed, err := greetingDefinition(strings.Replace(greeting, "Hello", "Goodbye", 1))
	if err != nil {
		fmt.Println(err)
		return
	}
	own := reviewedStore{store.Complete(memory.New(memory.Options{})), map[string]bool{def.Digest(): true}}
	node, err := engine.NewNode(engine.Config{Store: own, Invoker: chat{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- node.Run(ctx) }()

	for _, d := range []*dsl.Definition{def, changed} {
		vars, _ := d.Workflow("hello").Bind([]dsl.Assignment{{Name: "who", Text: "world"}})
		sent, err := node.Submit(ctx, engine.Submission{Definition: d, Workflow: "hello", Vars: vars})
		if err != nil {
			fmt.Println("not reviewed:", errors.Is(err, errNotReviewed))
			continue
		}
		state, err := node.Wait(ctx, sent.Run)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%v %s\n", state.Status(), story.Outputs(state)[0].Value.JSON())
	}
	stop()
	<-ended
	// Output:
	// succeeded "Hello, world!"
	// not reviewed: true
}
