package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/memory"
	"github.com/saga-engine/engine/engine/story"
	"github.com/saga-engine/engine/sdk"
)

// A shop is the far side of all calls: it applies effects once for each key,
// remembers what was undone, and does as a script says.
type shop struct {
	agent *sdk.Agent

	mu      sync.Mutex
	calls   []shopCall
	applied map[string]int    // effects by key; an undo's under "undo " + forward key
	raw     bool              // do not deduplicate
	script  map[string]script // by what the input's "name" says
}

// A shopCall is one call as it reached the shop.
type shopCall struct {
	name, key, forward string
	attempt            int
	fence              int64
	at, completeBy     time.Time
}

// A script says what the n-th call (from 1) for a name does.
type script func(ctx context.Context, n int) error

type shopIn struct {
	Name string `agent:"name"`
	Note string `agent:"note,optional"`
}

type shopOut struct {
	ID string `agent:"id"`
}

type undoIn struct {
	ID string `agent:"id,optional"`
}

func newShop() *shop {
	s := &shop{applied: map[string]int{}, script: map[string]script{}}
	a := sdk.New("shop", "1.0.0")
	sdk.Action(a, "reserve", s.do, sdk.Idempotent(), sdk.CompensatedBy("release"), sdk.Errors("out_of_stock"))
	sdk.Action(a, "release", s.undo, sdk.Idempotent(), sdk.ByKey())
	sdk.Action(a, "charge", s.do, sdk.Idempotent(), sdk.CompensatedBy("release"), sdk.Errors("card_declined"), sdk.RetryableErrors("busy"))
	sdk.Action(a, "book", s.do, sdk.CompensatedBy("release"), sdk.Errors("no_carrier"))
	sdk.Action(a, "cancel", s.cancel)
	s.agent = a
	return s
}

func (s *shop) do(ctx context.Context, c *sdk.Call, in shopIn) (shopOut, error) {
	n := s.record(in.Name, c)
	s.mu.Lock()
	script := s.script[in.Name]
	s.mu.Unlock()
	if script != nil {
		if err := script(ctx, n); err != nil {
			var after applyThen
			if !errors.As(err, &after) {
				return shopOut{}, err
			}
			s.apply(c.IdempotencyKey)
			return shopOut{}, after.err
		}
	}
	s.apply(c.IdempotencyKey)
	return shopOut{ID: "id-" + in.Name}, nil
}

// applyThen makes the shop apply the effect and then answer err.
type applyThen struct{ err error }

func (a applyThen) Error() string { return a.err.Error() }

func (s *shop) cancel(ctx context.Context, c *sdk.Call, _ shopOut) (sdk.None, error) {
	return s.undo(ctx, c, undoIn{})
}

func (s *shop) undo(ctx context.Context, c *sdk.Call, in undoIn) (sdk.None, error) {
	n := s.record("undo "+c.ForwardKey, c)
	s.mu.Lock()
	script := s.script["undo"]
	s.mu.Unlock()
	if script != nil {
		if err := script(ctx, n); err != nil {
			return sdk.None{}, err
		}
	}
	s.apply("undo " + c.ForwardKey)
	return sdk.None{}, nil
}

func (s *shop) record(name string, c *sdk.Call) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, shopCall{name, c.IdempotencyKey, c.ForwardKey, c.Attempt, c.Fence, time.Now(), c.CompleteBy})
	n := 0
	for _, call := range s.calls {
		if call.name == name {
			n++
		}
	}
	return n
}

func (s *shop) apply(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.raw || s.applied[key] == 0 {
		s.applied[key]++
	}
}

// on sets what calls for a name do.
func (s *shop) on(name string, f script) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script[name] = f
}

// called returns the calls for a name.
func (s *shop) called(name string) []shopCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []shopCall
	for _, c := range s.calls {
		if c.name == name {
			found = append(found, c)
		}
	}
	return found
}

// wantEffects checks the ledger against what every name should have left:
// "done", "undone" or "nothing".
func (s *shop) wantEffects(t *testing.T, want map[string]string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, left := range want {
		keys := map[string]bool{}
		for _, c := range s.calls {
			if c.name == name {
				keys[c.key] = true
			}
		}
		done, undone := 0, 0
		for key := range keys {
			done += s.applied[key]
			undone += s.applied["undo "+key]
		}
		got := "nothing"
		switch {
		case done == 1 && undone == 0:
			got = "done"
		case done == 1 && undone == 1:
			got = "undone"
		case done == 0: // an undo of what may have been is a tombstone
		case done > 0 || undone > 0:
			got = fmt.Sprintf("%d effects and %d undos", done, undone)
		}
		if got != left {
			t.Errorf("effects of %s: %s, want %s", name, got, left)
		}
	}
}

// direct is an Invoker that calls agents in this process, through hooks that
// may lose, delay or replace what is said.
type direct struct {
	agents map[string]*sdk.Agent
	before func(call invoke.Call) error                                  // may defer the call
	after  func(call invoke.Call, reply sdk.Reply) (sdk.Reply, bool)     // false = the reply is lost
	around func(ctx context.Context, call invoke.Call) (sdk.Reply, bool) // false = not handled here
}

func (d *direct) Invoke(ctx context.Context, call invoke.Call) (sdk.Reply, error) {
	if d.before != nil {
		if err := d.before(call); err != nil {
			return sdk.Reply{}, err
		}
	}
	if d.around != nil {
		if reply, ok := d.around(ctx, call); ok {
			return reply, nil
		}
	}
	type answer struct {
		reply sdk.Reply
		ok    bool
	}
	answers := make(chan answer, 1)
	agentCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		reply, ok := d.agents[call.Agent.Plugin].Invoke(agentCtx, call.Request, sdk.InvokeOptions{Logger: slog.New(slog.DiscardHandler)})
		answers <- answer{reply, ok}
	}()
	select {
	case a := <-answers:
		if a.ok && d.after != nil {
			a.reply, a.ok = d.after(call, a.reply)
		}
		if !a.ok {
			<-ctx.Done()
			return sdk.Reply{}, ctx.Err()
		}
		return a.reply, nil
	case <-ctx.Done():
		return sdk.Reply{}, ctx.Err()
	}
}

// A factLog collects what an Observer is told.
type factLog struct {
	engine.NoObserver
	mu    sync.Mutex
	facts map[status.RunID][]story.Fact
	late  int
	gaps  []string
}

func (s *factLog) Facts(run status.RunID, first int, facts []story.Fact) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.facts == nil {
		s.facts = map[status.RunID][]story.Fact{}
	}
	if first > len(s.facts[run])+1 {
		s.gaps = append(s.gaps, fmt.Sprintf("run %d: fact %d after %d", run, first, len(s.facts[run])))
	}
	s.facts[run] = append(s.facts[run][:min(first-1, len(s.facts[run]))], facts...)
}

func (s *factLog) LateReply(status.RunID, machine.AttemptID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late++
}

func (s *factLog) lateReplies() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.late
}

// A world is a store, a shop and a definition that nodes share.
type world struct {
	t     *testing.T
	store store.Store
	mem   *memory.Store
	shop  *shop
	inv   *direct
	def   *dsl.Definition
	story *factLog
	opts  engine.Options
	cfg   func(*engine.Config) // last word on each node's configuration
}

func newWorld(t *testing.T, source string) *world {
	t.Helper()
	w := &world{t: t, mem: memory.New(memory.Options{}), shop: newShop(), story: &factLog{}}
	w.store = w.mem
	w.inv = &direct{agents: map[string]*sdk.Agent{"shop": w.shop.agent}}
	w.def = define(t, source, w.shop.agent)
	w.opts = engine.Options{Address: "test", Lease: 3 * time.Second, MinScan: 50 * time.Millisecond, Writers: 2, Shards: 2}
	return w
}

// define parses and links a definition against in-process agents.
func define(t testing.TB, source string, agents ...*sdk.Agent) *dsl.Definition {
	t.Helper()
	m, diags := dsl.Parse(fstest.MapFS{"main.hcl": {Data: []byte(source)}}, dsl.ParseOptions{})
	if diags.HasErrors() {
		t.Fatalf("parse: %v", diags.Err())
	}
	binaries := map[string]dsl.AgentBinary{}
	for _, a := range agents {
		schema, err := a.Schema()
		if err != nil {
			t.Fatalf("schema: %v", err)
		}
		for _, use := range m.Agents() {
			if use.Plugin == schema.Name {
				binaries[use.Name] = dsl.AgentBinary{Schema: schema, Version: schema.Version, Checksum: "00"}
			}
		}
	}
	def, diags := dsl.Link(m, binaries)
	if diags.HasErrors() {
		t.Fatalf("link: %v", diags.Err())
	}
	return def
}

// A testNode is a node that runs until the test ends it.
type testNode struct {
	*engine.Node
	stop context.CancelFunc
	done chan error
}

// start runs a node and waits until it accepts work.
func (w *world) start() *testNode {
	w.t.Helper()
	cfg := engine.Config{Store: w.store, Invoker: w.inv, Observer: w.story, Logger: slog.New(slog.DiscardHandler), Options: w.opts}
	if w.cfg != nil {
		w.cfg(&cfg)
	}
	n, err := engine.NewNode(cfg)
	if err != nil {
		w.t.Fatalf("NewNode: %v", err)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	tn := &testNode{n, cancel, make(chan error, 1)}
	go func() { tn.done <- n.Run(ctx) }()
	select {
	case <-n.Ready():
	case err := <-tn.done:
		cancel()
		w.t.Fatalf("Run: %v", err)
	}
	return tn
}

// drain stops a node in order and waits for it.
func (n *testNode) drain(t *testing.T) {
	t.Helper()
	n.stop()
	if err := <-n.done; err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
}

// kill stops a node at once and waits for it.
func (n *testNode) kill(t *testing.T) {
	t.Helper()
	n.StopNow()
	if err := <-n.done; !errors.Is(err, engine.ErrStopping) {
		t.Errorf("Run = %v, want ErrStopping", err)
	}
	n.stop()
}

// vars makes the value of a run's variables.
func (w *world) vars(name string, assigned map[string]string) dsl.Value {
	w.t.Helper()
	var list []dsl.Assignment
	for k, v := range assigned {
		list = append(list, dsl.Assignment{Name: k, Text: v, Source: "--var"})
	}
	v, diags := w.def.Workflow(name).Bind(list)
	if diags.HasErrors() {
		w.t.Fatalf("bind: %v", diags.Err())
	}
	return v
}

// submit starts a run of the workflow.
func (w *world) submit(n *testNode, workflow string, assigned map[string]string) status.RunID {
	w.t.Helper()
	s, err := n.Submit(w.t.Context(), engine.Submission{Definition: w.def, Workflow: workflow, Vars: w.vars(workflow, assigned), By: "test"})
	if err != nil {
		w.t.Fatalf("Submit: %v", err)
	}
	if s.Exists {
		w.t.Fatalf("Submit: the run exists: %+v", s)
	}
	return s.Run
}

// wait waits for a run and checks its state.
func (w *world) wait(n *testNode, run status.RunID, want status.RunState) *machine.State {
	w.t.Helper()
	// In a bubble time costs nothing and does not end: a run that is stuck must.
	ctx, cancel := context.WithTimeout(w.t.Context(), 30*24*time.Hour)
	defer cancel()
	s, err := n.Wait(ctx, run)
	if err != nil {
		w.t.Fatalf("Wait: %v", err)
	}
	if s.Status() != want {
		w.t.Errorf("run is %v, want %v\n%s", s.Status(), want, w.transcript(run))
	}
	w.check(run)
	return s
}

// check folds a run's journal and compares it with the run's row (S87, I10).
func (w *world) check(run status.RunID) *machine.State {
	w.t.Helper()
	ctx := context.WithoutCancel(w.t.Context())
	head, rows, err := store.LoadRun(ctx, w.mem, run)
	if err != nil {
		w.t.Fatalf("Load: %v", err)
	}
	story, err := journal.Load(ctx, w.mem, w.sealer(), journal.NewDefinitions(w.mem, w.sealer()), run)
	for err == nil && story.Rows() != int32(len(rows)) { // an engine has committed a row between the two reads
		if head, rows, err = store.LoadRun(ctx, w.mem, run); err == nil {
			story, err = journal.Load(ctx, w.mem, w.sealer(), journal.NewDefinitions(w.mem, w.sealer()), run)
		}
	}
	if err != nil {
		w.t.Fatalf("Load: %v", err)
	}
	if story.State.Status() != head.State {
		w.t.Errorf("journal says %v, the row says %v", story.State.Status(), head.State)
	}
	if head.State.Final() == head.FinishedAt.IsZero() {
		w.t.Errorf("row is %v but finished at %v", head.State, head.FinishedAt)
	}
	for i, row := range rows {
		if row.Seq != int32(i) {
			w.t.Errorf("row %d has seq %d", i, row.Seq)
		}
		if i > 0 && row.At.Before(rows[i-1].At) {
			w.t.Errorf("time falls within the run: row %d at %v, row %d at %v", i-1, rows[i-1].At, i, row.At)
		}
	}
	if due, ok := story.State.NextDue(); ok && !story.State.Run().Lost() && !head.State.Final() && head.NextCheck.After(due) {
		w.t.Errorf("bound %v is later than what is due at %v", head.NextCheck, due)
	}
	return story.State
}

func (w *world) sealer() crypt.Sealer {
	cfg := engine.Config{}
	if w.cfg != nil {
		w.cfg(&cfg)
	}
	return cfg.Sealer
}

// transcript is a run's story for messages.
func (w *world) transcript(run status.RunID) string {
	w.story.mu.Lock()
	defer w.story.mu.Unlock()
	s := ""
	for i, f := range w.story.facts[run] {
		s += fmt.Sprintf("%3d %s %s %s #%d undo=%t %s %s %s\n", i+1, f.At.Format("15:04:05.000"), f.Kind, f.Step, f.Attempt, f.Undo, f.Status, f.Code, f.Message)
	}
	return s
}

// kinds returns the kinds of a run's facts, for whole-story comparisons.
func (w *world) kinds(run status.RunID) []string {
	w.story.mu.Lock()
	defer w.story.mu.Unlock()
	var kinds []string
	for _, f := range w.story.facts[run] {
		kinds = append(kinds, string(f.Kind)+" "+f.Step)
	}
	return kinds
}

// output returns one output of a finished run.
func output(t *testing.T, s *machine.State, name string) string {
	t.Helper()
	for _, o := range story.Outputs(s) {
		if o.Name == name {
			var text string
			if err := json.Unmarshal(o.Value.JSON(), &text); err != nil {
				return string(o.Value.JSON())
			}
			return text
		}
	}
	t.Errorf("the run has no output %q", name)
	return ""
}

// orderFlow is a saga of three steps in a row.
const orderFlow = `
workflow "order" {
  deadline = "1h"
  variable "fail" { default = "" }
  step "reserve" {
    action = agent.shop.reserve
    input { name = "reserve" }
  }
  step "charge" {
    action     = agent.shop.charge
    depends_on = [step.reserve]
    timeout    = "10s"
    input { name = "charge" }
  }
  step "book" {
    action  = agent.shop.book
    timeout = "10s"
    input {
      name = "book"
      note = step.charge.output.id
    }
  }
  output "id" { value = step.book.output.id }
}
`
