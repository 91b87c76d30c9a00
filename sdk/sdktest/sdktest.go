package sdktest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/saga-engine/engine/sdk"
	"github.com/saga-engine/engine/sdk/schema"
)

// T has the methods of testing.TB that this package needs.
type T interface {
	Helper()
	Context() context.Context
	Errorf(format string, args ...any)
}

// A Target is an agent that can be called, such as a *plugin.Process.
type Target interface {
	Schema() schema.Schema
	// Invoke calls an action and returns the reply. If the agent did not reply before complete-by,
	// the error wraps context.DeadlineExceeded.
	Invoke(ctx context.Context, req sdk.Request, onEvent func(sdk.Event)) (sdk.Reply, error)
}

// A Case is one input of one action. It also says how a call with this input must end. Action
// is required; every other field may have its zero value.
type Case struct {
	Name   string // name of the case; "" = the name of the action
	Action string
	Input  string // JSON object; "" = {}

	// Effects returns the number of effects that exist in the remote service now, for
	// example the number of reservations. nil = the package does not count effects, and does
	// not check rules that need the count.
	Effects func() int
	// UndoInput returns the input of the undo. Its argument is the output of the action, or
	// null if the output is not known. If UndoInput is nil, the input of the undo is {}.
	UndoInput func(output json.RawMessage) string

	Code   string // error code with which the agent refuses the input; "" = the action gives a result
	Varies bool   // two calls with the same idempotency key may return different outputs
	Slow   bool   // the action works longer than Grace, unless its context ends
	Panics bool   // the action panics

	// LateDo says why a call may have an effect although it arrives after its own undo. "" = such a
	// call must not have an effect. The package checks this if two conditions are true. First, the
	// action has an undo. Second, the action is idempotent, or its undo needs only the key.
	LateDo string

	Grace time.Duration // how long an action may take to stop after its context has ended; 0 = 1 s
}

func (c Case) withDefaults() Case {
	if c.Name == "" {
		c.Name = c.Action
	}
	if c.Input == "" {
		c.Input = "{}"
	}
	if c.UndoInput == nil {
		c.UndoInput = func(json.RawMessage) string { return "{}" }
	}
	if c.Grace == 0 {
		c.Grace = time.Second
	}
	return c
}

// A Problem is a rule that an agent breaks.
type Problem struct {
	Case   string // name of the case; "" for a rule about the whole agent
	Rule   string // what must be true
	Reason string // why it must be true
	Err    error  // what happened instead
}

// String returns a text with all fields of the problem.
func (p Problem) String() string {
	where := "agent"
	if p.Case != "" {
		where = fmt.Sprintf("case %q", p.Case)
	}
	return fmt.Sprintf("%s: %s: %v\n\twhy: %s", where, p.Rule, p.Err, p.Reason)
}

// Run checks an agent in this process, and reports each Problem with t.Errorf. If the agent
// needs a configuration, call Agent.Configure before Run.
func Run(t T, a *sdk.Agent, cases ...Case) {
	t.Helper()
	schema, err := a.Schema()
	if err != nil {
		t.Errorf("%v", err)
		return
	}
	RunTarget(t, &inProcess{agent: a, schema: schema}, cases...)
}

// RunTarget checks a target and reports each Problem with t.Errorf.
func RunTarget(t T, target Target, cases ...Case) {
	t.Helper()
	for _, p := range Check(t.Context(), target, cases...) {
		t.Errorf("%s", p)
	}
}

// Check checks a target and returns the problems, in the order of the cases and rules. It
// returns nil if the target keeps every rule that applies.
func Check(ctx context.Context, target Target, cases ...Case) []Problem {
	h := &harness{ctx: ctx, target: target, schema: target.Schema(), prefix: "sdktest-" + rand.Text()}
	var problems []Problem
	for _, r := range agentRules() {
		if err := r.check(h); err != nil {
			problems = append(problems, Problem{Rule: r.name, Reason: r.reason, Err: err})
		}
	}
	for _, c := range cases {
		s := &subject{harness: h, Case: c.withDefaults()}
		action, ok := h.schema.Actions[c.Action]
		if !ok {
			problems = append(problems, Problem{
				Case: s.Name, Rule: "a case calls an action of the agent", Reason: "nothing is tested otherwise",
				Err: fmt.Errorf("there is no action %q", c.Action),
			})
			continue
		}
		s.action = action
		for _, r := range caseRules() {
			if !r.applies(s) {
				continue
			}
			if err := r.check(s); err != nil {
				problems = append(problems, Problem{Case: s.Name, Rule: r.name, Reason: r.reason, Err: err})
			}
		}
	}
	return problems
}

// inProcess is a Target for an agent in this process.
type inProcess struct {
	agent  *sdk.Agent
	schema schema.Schema

	mu      sync.Mutex // protects the fields below
	running int
	idle    chan struct{} // closed when `running` becomes 0; nil = no function was called yet
}

var _ Target = (*inProcess)(nil)

// Schema returns the agent's schema.
func (p *inProcess) Schema() schema.Schema { return p.schema }

// Invoke calls an action of the agent.
func (p *inProcess) Invoke(ctx context.Context, req sdk.Request, onEvent func(sdk.Event)) (sdk.Reply, error) {
	p.begin()
	reply, ok := p.agent.Invoke(ctx, req, sdk.InvokeOptions{
		Logger: slog.New(slog.DiscardHandler), OnEvent: onEvent, Ended: p.end,
	})
	if !ok {
		return sdk.Reply{}, context.DeadlineExceeded
	}
	return reply, nil
}

func (p *inProcess) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running == 0 {
		p.idle = make(chan struct{})
	}
	p.running++
}

func (p *inProcess) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running--
	if p.running == 0 {
		close(p.idle)
	}
}

// stopped waits until all running functions of actions have returned, and returns true. If
// that takes longer than the parameter `limit`, it returns false.
func (p *inProcess) stopped(limit time.Duration) bool {
	p.mu.Lock()
	idle := p.idle
	p.mu.Unlock()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-idle:
		return true
	case <-timer.C:
		return false
	}
}

// harness holds the state of one call of Check.
type harness struct {
	ctx    context.Context //nolint:containedctx // a harness exists only during one call of Check
	target Target
	schema schema.Schema
	prefix string
	calls  int
}

// subject is one case together with its action and the state of Check.
type subject struct {
	*harness
	Case
	action schema.Action
}

// callTime is how long a normal call may take.
const callTime = 30 * time.Second

// key returns a new idempotency key.
func (h *harness) key() string {
	h.calls++
	return fmt.Sprintf("%s-%d", h.prefix, h.calls)
}

func (s *subject) request(key string) sdk.Request {
	return sdk.Request{
		Action: s.Action, Purpose: sdk.PurposeDo, Input: json.RawMessage(s.Input), IdempotencyKey: key,
		CompleteBy: time.Now().Add(callTime), Run: "sdktest", Workflow: "sdktest", Step: s.Name, Attempt: 1, Fence: 1,
	}
}

// send sends a call to the target and returns the reply. If there is no reply within callTime,
// it returns an error.
func (s *subject) send(req sdk.Request) (sdk.Reply, error) {
	reply, err := s.target.Invoke(s.ctx, req, nil)
	if errors.Is(err, context.DeadlineExceeded) {
		return reply, fmt.Errorf("no reply within %s", callTime)
	}
	return reply, err
}

// do calls the action with a key and returns the output. It returns an error if the reply is
// not a result.
func (s *subject) do(key string) (json.RawMessage, error) {
	reply, err := s.send(s.request(key))
	if err != nil {
		return nil, err
	}
	return reply.Output, wantResult("the call", reply)
}

// undo undoes the call that had the given key. The parameter `output` is the output of that call;
// nil = the output is not known. If the reply is not a result, the method `undo` returns an error.
func (s *subject) undo(key string, output json.RawMessage) error {
	req := s.request(s.key())
	req.Action, req.Purpose, req.ForwardKey = s.action.CompensatedBy, sdk.PurposeUndo, key
	if len(output) == 0 {
		output = json.RawMessage("null")
	}
	req.Input = json.RawMessage(s.UndoInput(output))
	return s.undoAgain(req)
}

func (s *subject) undoAgain(req sdk.Request) error {
	reply, err := s.send(req)
	if err != nil {
		return err
	}
	return wantResult("the undo", reply)
}

// effects returns the number of effects in the remote service; 0 if the case has no function
// Effects.
func (s *subject) effects() int {
	if s.Effects == nil {
		return 0
	}
	return s.Effects()
}

func wantResult(what string, r sdk.Reply) error {
	if r.Outcome == sdk.OutcomeResult {
		return nil
	}
	return fmt.Errorf("%s ended with %s", what, say(r))
}

// say returns a short description of a reply.
func say(r sdk.Reply) string {
	switch r.Outcome {
	case sdk.OutcomeResult:
		return "a result"
	case sdk.OutcomeFailed:
		return fmt.Sprintf("a definite failure, %s (%s)", r.Code, r.Message)
	case sdk.OutcomeUnknown:
		return fmt.Sprintf("an unknown outcome, %s (%s)", r.Code, r.Message)
	case sdk.OutcomeNotDone:
		return "not done"
	}
	return "no outcome"
}
