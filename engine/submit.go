package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/owner"
	"github.com/saga-engine/engine/engine/internal/submit"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/store"
)

// A Submission asks for a new run.
type Submission struct {
	Definition *dsl.Definition
	Workflow   string    // name of one of the definition's workflows
	Vars       dsl.Value // values of the variables, as dsl.Workflow.Bind returns them
	Name       string    // public id of the run; "" = made from the internal id
	By         string    // person or program that submits the run; only for display
	// StartBy is the time by which the first step must begin. If no step has begun then, the run
	// fails with the code not_started, and nothing was done (S65); zero = there is no such time.
	StartBy time.Time
	// Priority is the priority of the run, from 0 to 100; nil = as the workflow says.
	Priority *int

	// ReplyTo names the sink to which the engines post the replies of the run: table:QUEUE,
	// webhook:NAME, webhook:URL or agent:NAME.ACTION. "" = the run has no replies. Each reply
	// repeats the text in Correlation, which has at most 200 bytes.
	ReplyTo, Correlation string
}

// request returns the submission in the form that package submit needs.
func (s *Submission) request() submit.Request {
	return submit.Request{
		Definition: s.Definition, Workflow: s.Workflow, Vars: s.Vars, Name: s.Name, By: s.By,
		StartBy: s.StartBy, Priority: s.Priority, ReplyTo: s.ReplyTo, Correlation: s.Correlation,
	}
}

// Submit accepts a run. The run and all its steps are in the store before any step starts (S14),
// and this engine owns the run. If the name is in use, or another run holds the unique key and
// on_conflict of the workflow is "attach", Submit stores nothing and returns the earlier run with
// Exists set. For other values of on_conflict, see refusal.KeyError. Submit refuses a submission if
// an expression of its workflow fails with the variables of the submission.
//
// After an error it may be unknown whether the run was accepted. It is safe to submit the run
// again with the same name or unique key. If Submit returns an error and also a Run other than 0,
// the store did not answer: it may have stored the run with this Run and Name.
func (n *Node) Submit(ctx context.Context, s Submission) (store.Submitted, error) {
	return n.submitter.Submit(ctx, s.request())
}

// Enqueue accepts a run without an owner. The run is durable when Enqueue returns, and it shows as
// queued with all its steps. Any engine on the store may claim it (S14, S55). Waiting for an engine
// does not count as a failure (S65). Enqueue needs no running engine, no agents and no Invoker: it
// does not use cfg.Invoker. It refuses everything that Submit refuses. If the name or the unique
// key is in use, it does the same as Submit. If it returns an error and a Run other than 0, the run
// may be stored under that id: see Enqueued.
func Enqueue(ctx context.Context, cfg Config, s Submission) (store.Submitted, error) {
	return enqueue(ctx, cfg, s.request())
}

// enqueue does the work of Enqueue.
func enqueue(ctx context.Context, cfg Config, r submit.Request) (store.Submitted, error) {
	out, err := enqueueAll(ctx, cfg, []submit.Request{r})
	return out[0].Submitted, err
}

// An Enqueued is the result of one submission of EnqueueAll.
type Enqueued struct {
	store.Submitted
	// Err is nil if the run is stored or existed before (Exists). If Err is not nil and Run is 0,
	// no run was stored. If Err is not nil and Run is not 0, the run was sent to the store, but the
	// store did not answer: the run may be stored under this id and Name.
	Err error
}

// EnqueueAll accepts many runs, each in the same way as Enqueue. It uses Options.Writers
// connections at the same time, and batches as large as Options allow. It returns one result
// for each submission, in order. A refused submission does not prevent others from being
// stored. If the store cannot be reached, each result says so. If a writer cannot be opened,
// the other writers do its work.
//
// The error is the first error among the results. If no result has an error, it is the error of
// leaving the store at the end, or nil. An error of leaving the store changes no result. A failed
// submission with a name or a unique key can safely be submitted again. If it has neither, but may
// be stored (Err and Run are set), search for the run first: submitting again may store it twice.
func EnqueueAll(ctx context.Context, cfg Config, all []Submission) ([]Enqueued, error) {
	requests := make([]submit.Request, len(all))
	for i := range all {
		requests[i] = all[i].request()
	}
	return enqueueAll(ctx, cfg, requests)
}

// enqueueAll does the work of EnqueueAll.
func enqueueAll(ctx context.Context, cfg Config, all []submit.Request) ([]Enqueued, error) {
	results, why, left := cfg.withDefaults().submitAll(ctx, all)
	out := make([]Enqueued, len(all))
	var first error
	for i, r := range results {
		if r.Err == nil && r.Run == 0 { // the submission was not tried
			r.Err = fmt.Errorf("submit %q: %w", all[i].Workflow, why)
		}
		out[i], first = Enqueued(r), cmp.Or(first, r.Err)
	}
	return out, cmp.Or(first, left)
}

// submitAll stores runs without an owner. Its results are those of submit.All. The configuration
// must have its defaults already (withDefaults).
func (c Config) submitAll(ctx context.Context, all []submit.Request) (results []submit.Result, why, left error) {
	why = c.Options.validate()
	if c.Store == nil {
		why = errors.New("engine: Config.Store is required")
	}
	if why != nil {
		return make([]submit.Result, len(all)), why, nil
	}
	o := c.Options
	return submit.All(ctx, submit.Batch{
		Store: c.Store, Sealer: c.Sealer, Logger: c.Logger, Address: o.Address, Lease: o.Lease,
		Writers: o.Writers, MaxBatchRows: o.MaxBatchRows, MaxBatchBytes: o.MaxBatchBytes, Limits: o.ofRun(),
	}, all)
}

// ofRun returns the limits of one run.
func (o Options) ofRun() submit.Limits {
	return submit.Limits{MaxValue: o.MaxValue, MaxRow: o.MaxRow, Ceilings: o.Ceilings}
}

// AgentSpecs returns the agents that a run with this workflow and these variables may call. It
// includes the agents that the notifications of the run may call. The keys of the map are the names
// of the agent blocks. A Checker can check these agents before the run is submitted. AgentSpecs
// returns an error if it cannot evaluate the configuration of an agent with these variables.
func AgentSpecs(wf *dsl.Workflow, vars dsl.Value) (map[string]invoke.AgentSpec, error) {
	cache := &owner.SpecCache{}
	specs, err := cache.Specs(wf, vars)
	if err != nil || len(wf.Notify) == 0 {
		return specs, err
	}
	all := maps.Clone(specs)
	for _, n := range wf.Notify {
		more, err := cache.Specs(n.Flow, vars)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, more)
	}
	return all, nil
}
