package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/operator"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/events"
	"github.com/saga-engine/engine/engine/store/schedules"
	"github.com/saga-engine/engine/engine/store/sqlite"
	"github.com/saga-engine/engine/engine/story"
	"github.com/saga-engine/engine/sdk"
)

// A snippet says how a test runs one HCL snippet of docs/language.md.
type snippet struct {
	before, after string // text around a snippet that is only a part of a workflow
	flow          string // workflow that is started
	vars          map[string]string
	begin         func(p *page) store.RunRow // starts the run in another way; nil = the test submits it
	during        func(p *page, run store.RunRow)
	want          status.RunState   // zero = the run succeeds
	outputs       map[string]string // as JSON
	calls         []string          // calls of agents, in any order
	afterwards    func(p *page, run store.RunRow)
	selects       bool   // an embedded state refuses to publish the workflow, because of its select block
	refused       string // part of the reason why an embedded state refuses the run; "" = it accepts the run
}

const (
	aWorkflow = "workflow \"w\" {\n  deadline = \"1d\"\n"
	failing   = "  step \"car\" {\n    action = agent.mock.do\n    input { value = 7 }\n  }\n  step \"stop\" { value = tonumber(\"no ${step.car.output.value}\") }\n}\n"
	hotel     = "workflow \"w\" {\n  deadline = \"1d\"\n  step \"hotel\" {\n    action = agent.trip.book\n    input { hotel = \"Astoria\" }\n  }\n  output \"id\" { value = step.hotel.output.booking_id }\n}\n"
	read      = "workflow \"w\" {\n  deadline = \"1d\"\n  step \"read\" {\n    action = agent.crm.get\n    input { url = \"customers\" }\n  }\n}\n"
	told      = "workflow \"w\" {\n  deadline = \"1d\"\n  step \"made\" { value = 1 }\n}\n"
)

// snippetRuns has an entry for each snippet, by the heading above it. The second snippet below a
// heading has the number 2, and so on.
var snippetRuns = map[string]snippet{
	"Steps without a call": {
		before: aWorkflow, after: "}\n", flow: "w",
		during: func(p *page, run store.RunRow) {
			p.signal(run, machine.SignalReceived{Name: "plan_approval", Payload: payload(`{"approved":true,"by":"ann"}`), By: "ann"})
		},
	},
	"Loops of a step": {
		before: aWorkflow, after: "}\n", flow: "w",
		outputs: map[string]string{"items": `[1,2,3]`},
		calls:   []string{"get https://cloud.example.com/projects/p-1", "get https://example.com/items", "get https://example.com/items?page=2"},
	},
	"Priority of a step": {flow: "pay", calls: []string{`do "charge"`}},
	"Child runs":         {flow: "order", vars: map[string]string{"name": "ann"}, outputs: map[string]string{"id": `"ann"`}, calls: []string{`do "ann"`}},
	"Groups": {
		flow: "send", vars: map[string]string{"parcels": `{"a":{"to":"Oslo"},"b":{"to":"Rome"}}`},
		outputs: map[string]string{"loaded": `{"a":"a to Oslo in car 7","b":"b to Rome in car 7"}`},
		calls:   []string{`do "car 7"`, `do "a to Oslo"`, `do "b to Rome"`, `do "a to Oslo in car 7"`, `do "b to Rome in car 7"`},
	},
	"Declared actions": {flow: "trip", outputs: map[string]string{"booking": `"b-1"`}, calls: []string{`post bookings {"hotel":"Astoria","nights":1}`}},
	"Declared actions 2": {
		after: hotel, flow: "w", outputs: map[string]string{"id": `"b-1"`},
		calls: []string{`post bookings {"hotel":"Astoria","key":"KEY"}`, "get bookings/by-key/KEY"},
	},
	"Libraries":        {flow: "order", calls: []string{"charge 12"}},
	"Limits of agents": {after: read, flow: "w", calls: []string{"get customers"}},
	"One run for each key": {
		flow: "refund", vars: map[string]string{"order": "o-1"},
		afterwards: func(p *page, run store.RunRow) {
			if _, err := p.submit(); err == nil || !strings.Contains(err.Error(), run.Name) {
				p.t.Errorf("a second run of the key: %v, want a refusal that names %s", err, run.Name)
			}
		},
	},
	"Replace the open run": {flow: "deploy", vars: map[string]string{"service": "s", "version": "2"}},
	"Limits of open runs, and priority": {
		flow: "onboard", vars: map[string]string{"plan": "enterprise"},
		afterwards: func(p *page, run store.RunRow) {
			if got := p.state(run).Run().Line.Priority(); got != 90 {
				p.t.Errorf("the priority is %d, want 90", got)
			}
		},
	},
	"Limits of open groups": {
		flow: "dispatch", vars: map[string]string{"parcels": `{"a":{"dock":"d1"},"b":{"dock":"d2"}}`},
		calls: []string{`do "a at d1"`, `do "b at d2"`},
	},
	"Checks of business rows":   {flow: "order", vars: map[string]string{"order_id": "o-1"}, refused: "admit"},
	"Checks of business rows 2": {flow: "order", vars: map[string]string{"order_id": "o-1"}, refused: "admit"},
	"Schedules": {
		flow: "report",
		begin: func(p *page) store.RunRow {
			role, _ := schedules.Of(p.store)
			rows, err := role.Schedules(p.ctx, time.Time{}, 10)
			if err != nil || len(rows) != 1 {
				p.t.Fatalf("%d schedules, %v", len(rows), err)
			}
			from := time.Date(2026, 3, 29, 0, 0, 0, 0, time.UTC)
			if _, err := engine.Backfill(p.ctx, p.config(), rows[0], from, from.Add(12*time.Hour)); err != nil {
				p.t.Fatal(err)
			}
			return p.find("report.nightly.20260329T010000Z")
		},
	},
	"Events": {
		flow: "order",
		begin: func(p *page) store.RunRow {
			p.send("evt-7", "com.example.order.placed", `{"order":{"id":"o-1"},"total":99}`)
			return p.find("order:evt-7")
		},
	},
	"Events 2": {flow: "parcel", selects: true, vars: map[string]string{"id": "p-1"}},
	"Events 3": {
		flow: "delivery", vars: map[string]string{"order": "o-1"},
		afterwards: func(p *page, run store.RunRow) {
			p.send("evt-8", "com.example.order.annulled", `{"order":"o-1","refund":true}`)
			p.until("a second run of the goal that was reset", func() bool {
				again, err := p.submit()
				return err == nil && !again.Exists && again.Run != run.Run
			})
		},
	},
	"Selections": {flow: "remind", selects: true, vars: map[string]string{"order": "o-1", "total": "9"}},
	"Replies": {
		after: told, flow: "w",
		begin: func(p *page) store.RunRow { p.replyTo = "agent:shop.told"; return p.started() },
		afterwards: func(p *page, run store.RunRow) {
			if err := p.node.AwaitReplies(p.ctx, run); err != nil {
				p.t.Fatal(err)
			}
		},
		calls: []string{
			`post replies {"n":1,"order":"basket-7","status":"accepted"}`, `post replies {"n":2,"order":"basket-7","status":"started"}`,
			`post replies {"n":3,"order":"basket-7","status":"succeeded"}`,
		},
	},
	"Notifications": {
		before: aWorkflow, after: failing, flow: "w", want: status.RunCompensated,
		afterwards: func(p *page, run store.RunRow) {
			if err := p.node.AwaitNotifications(p.ctx, run); err != nil {
				p.t.Fatal(err)
			}
		},
		calls: []string{"do 7", "undo", "slack w snippet is compensated: stop expression_error"},
	},
	"How long runs are kept":  {flow: "probe", calls: []string{"get https://example.com/health"}},
	"Steps with another name": {flow: "w"},
}

// snippetsOf returns the HCL snippets of a page, by the heading above each of them.
func snippetsOf(t *testing.T, path string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	found, count := map[string]string{}, map[string]int{}
	heading, inside := "", false
	var body strings.Builder
	for line := range strings.Lines(string(text)) {
		title, isHeading := strings.CutPrefix(strings.TrimLeft(line, "#"), " ")
		switch {
		case inside && line == "```\n":
			inside = false
			count[heading]++
			name := heading
			if n := count[heading]; n > 1 {
				name = fmt.Sprintf("%s %d", heading, n)
			}
			found[name] = body.String()
		case inside:
			body.WriteString(line)
		case line == "```hcl\n":
			inside = true
			body.Reset()
		case isHeading && strings.HasPrefix(line, "#"):
			heading = strings.TrimSpace(title)
		}
	}
	return found
}

// Each HCL snippet of the language reference runs on an embedded state, with agents that are in the
// process of the test. The test writes a workflow around a snippet that is only a part of one. What an
// embedded state refuses, it refuses with the reason: checks and selections need PostgreSQL.
func TestSnippetsOfTheReferenceRun(t *testing.T) {
	t.Parallel()
	found := snippetsOf(t, "../docs/language.md")
	if len(found) < 20 {
		t.Fatalf("%d snippets: the test reads the wrong page", len(found))
	}
	for _, name := range slices.Sorted(maps.Keys(snippetRuns)) {
		if _, ok := found[name]; !ok {
			t.Errorf("docs/language.md has no snippet %q", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		s, ok := snippetRuns[name]
		if !ok {
			t.Errorf("snippet %q of docs/language.md is not run: add it to snippetRuns", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.run(t, s.before+found[name]+s.after)
		})
	}
}

func (s snippet) run(t *testing.T, source string) {
	p := newPage(t, s, source)
	p.publish()
	p.start()
	if s.refused != "" {
		if _, err := p.submit(); err == nil || !strings.Contains(err.Error(), s.refused) {
			t.Errorf("the submission: %v, want a refusal that contains %q", err, s.refused)
		}
		return
	}
	begin := s.begin
	if begin == nil {
		begin = (*page).started
	}
	run := begin(p)
	if s.during != nil {
		s.during(p, run)
	}
	state, err := p.node.Wait(p.ctx, run.Run)
	if err != nil {
		t.Fatalf("Wait: %v", err)
	}
	want := s.want
	if want == 0 {
		want = status.RunSucceeded
	}
	if state.Status() != want {
		t.Fatalf("the run is %v, want %v: %+v", state.Status(), want, state.Failure())
	}
	for _, o := range story.Outputs(state) {
		if got, want := string(o.Value.JSON()), s.outputs[o.Name]; got != want {
			t.Errorf("output %s is %s, want %s", o.Name, got, want)
		}
	}
	if n := len(story.Outputs(state)); n != len(s.outputs) {
		t.Errorf("%d outputs, want %d", n, len(s.outputs))
	}
	if s.afterwards != nil {
		s.afterwards(p, run)
	}
	p.far.want(t, s.calls)
}

// A page is an engine on an embedded state, with one snippet.
type page struct {
	t       *testing.T
	ctx     context.Context // ends when a snippet takes too long
	snippet snippet
	def     *dsl.Definition
	store   *sqlite.Store
	far     *far
	node    *testNode
	replyTo string
	names   int // number of submissions
}

// newPage parses and links a snippet, and opens a new embedded state.
func newPage(t *testing.T, s snippet, source string) *page {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	p := &page{t: t, ctx: ctx, snippet: s, far: newFar()}
	files := fstest.MapFS{"main/a.hcl": {Data: []byte(source)}, "shared/shop/a.hcl": {Data: []byte("agent \"payment\" {}\n")}}
	inside, err := files.Sub("main")
	if err != nil {
		t.Fatal(err)
	}
	m, diags := dsl.Parse(inside, dsl.ParseOptions{Root: files, Home: "main"})
	if diags.HasErrors() {
		t.Fatalf("parse: %v", diags.Err())
	}
	binaries := map[string]dsl.AgentBinary{}
	for _, use := range m.Agents() {
		a := p.far.agents[use.Plugin]
		if a == nil {
			t.Fatalf("the test has no agent %q", use.Plugin)
		}
		schema, err := a.Schema()
		if err != nil {
			t.Fatal(err)
		}
		binaries[use.Name] = dsl.AgentBinary{Schema: schema, Version: schema.Version, Checksum: "00"}
	}
	if p.def, diags = dsl.Link(m, binaries); diags.HasErrors() {
		t.Fatalf("link: %v", diags.Err())
	}
	if p.store, err = sqlite.Open(ctx, filepath.Join(t.TempDir(), "state.db"), sqlite.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.store.Close(); err != nil {
			t.Errorf("close the state: %v", err)
		}
	})
	return p
}

func (p *page) config() engine.Config {
	return engine.Config{
		Store: p.store, Invoker: &direct{agents: p.far.agents}, Logger: slog.New(slog.DiscardHandler),
		Options: engine.Options{Address: "test", Lease: 10 * time.Second, MinScan: 20 * time.Millisecond, Writers: 1, Shards: 1},
	}
}

// publish makes the definition the published one. An embedded state refuses a definition with a select
// block.
func (p *page) publish() {
	p.t.Helper()
	_, err := engine.Publish(p.ctx, p.config(), engine.Publication{Definition: p.def, By: "ann"})
	var selects *engine.SelectionError
	switch {
	case p.snippet.selects && !errors.As(err, &selects):
		p.t.Errorf("publish: %v, want a refusal of the select block", err)
	case !p.snippet.selects && err != nil:
		p.t.Errorf("publish: %v", err)
	}
}

// start starts the engine. It ends with the test.
func (p *page) start() {
	p.t.Helper()
	n, err := engine.NewNode(p.config())
	if err != nil {
		p.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.node = &testNode{n, cancel, make(chan error, 1)}
	go func() { p.node.done <- n.Run(ctx) }()
	p.t.Cleanup(func() { p.node.drain(p.t) })
	select {
	case <-n.Ready():
	case <-p.ctx.Done():
		p.t.Fatal("the engine does not start")
	}
}

// submit submits a run of the snippet's workflow. The first one has the name `snippet`.
func (p *page) submit() (store.Submitted, error) {
	p.t.Helper()
	var list []dsl.Assignment
	for k, v := range p.snippet.vars {
		list = append(list, dsl.Assignment{Name: k, Text: v, Source: "--var"})
	}
	vars, diags := p.def.Workflow(p.snippet.flow).Bind(list)
	if diags.HasErrors() {
		p.t.Fatalf("bind: %v", diags.Err())
	}
	sub := engine.Submission{Definition: p.def, Workflow: p.snippet.flow, Vars: vars, By: "ann"}
	if p.names++; p.names == 1 {
		sub.Name = "snippet"
	}
	if p.replyTo != "" {
		sub.ReplyTo, sub.Correlation = p.replyTo, "basket-7"
	}
	return p.node.Submit(p.ctx, sub)
}

// started submits a run and returns its row.
func (p *page) started() store.RunRow {
	p.t.Helper()
	s, err := p.submit()
	if err != nil {
		p.t.Fatalf("Submit: %v", err)
	}
	return p.find(s.Name)
}

// until waits until a function returns true.
func (p *page) until(what string, f func() bool) {
	p.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !f() {
		select {
		case <-tick.C:
		case <-p.ctx.Done():
			p.t.Fatalf("no %s", what)
		}
	}
}

// find waits until there is a run with a name.
func (p *page) find(name string) (row store.RunRow) {
	p.t.Helper()
	p.until("run "+name, func() (found bool) {
		var err error
		if row, err = store.Complete(p.store).Find(p.ctx, name); err != nil && !errors.Is(err, store.ErrNotFound) {
			p.t.Fatal(err)
		}
		return err == nil
	})
	return row
}

// state returns the state of a run.
func (p *page) state(run store.RunRow) *machine.State {
	p.t.Helper()
	told, err := journal.Load(p.ctx, p.store, nil, journal.NewDefinitions(p.store, nil), run.Run)
	if err != nil {
		p.t.Fatal(err)
	}
	return told.State
}

// signal sends a signal to a run and waits for the answer.
func (p *page) signal(run store.RunRow, s machine.SignalReceived) {
	p.t.Helper()
	op := &operator.Operator{Store: p.store, Defs: journal.NewDefinitions(p.store, nil)}
	id, err := op.Ask(p.ctx, run.Run, s, s.By)
	if err == nil {
		err = op.Answer(p.ctx, run.Run, id)
	}
	if err != nil {
		p.t.Fatalf("signal: %v", err)
	}
}

// send sends an event.
func (p *page) send(id, kind, data string) {
	p.t.Helper()
	role, _ := events.Of(p.store)
	if sent, err := role.SendEvent(p.ctx, events.Event{ID: id, Type: kind, Data: []byte(data), By: "shop"}); err != nil || !sent {
		p.t.Fatalf("send %s: %t, %v", id, sent, err)
	}
}

// A far is the far side of all calls of a snippet. It keeps a text for each call.
type far struct {
	agents map[string]*sdk.Agent

	mu    sync.Mutex
	calls []string
	key   string // idempotency key of the last booking
}

type getIn struct {
	URL string `agent:"url"`
}

type postIn struct {
	URL    string            `agent:"url"`
	JSON   any               `agent:"json,optional"`
	Errors map[string]string `agent:"errors,optional,codes"`
}

type httpOut struct {
	Status int `agent:"status"`
	JSON   any `agent:"json"`
}

type farValue struct {
	Value any `agent:"value,optional"`
}

func newFar() *far {
	f := &far{agents: map[string]*sdk.Agent{}}
	for _, name := range []string{"http", "mock", "slack", "payment"} {
		f.agents[name] = sdk.New(name, "1.0.0")
	}
	sdk.Configure(f.agents["http"], func(context.Context, struct {
		BaseURL string `agent:"base_url,optional"`
	}) error {
		return nil
	})
	sdk.Action(f.agents["http"], "get", f.get, sdk.ReadOnly(), sdk.Idempotent(), sdk.AnyErrors())
	sdk.Action(f.agents["http"], "post", f.post, sdk.AnyErrors())
	sdk.Action(f.agents["mock"], "do", f.do, sdk.Idempotent(), sdk.CompensatedBy("undo"), sdk.AnyErrors())
	sdk.Action(f.agents["mock"], "undo", func(context.Context, *sdk.Call, undoIn) (sdk.None, error) {
		f.note("undo")
		return sdk.None{}, nil
	}, sdk.Idempotent(), sdk.ByKey())
	sdk.Action(f.agents["slack"], "post", func(_ context.Context, _ *sdk.Call, in bellIn) (sdk.None, error) {
		f.note("slack " + in.Text)
		return sdk.None{}, nil
	})
	sdk.Action(f.agents["payment"], "charge", func(_ context.Context, _ *sdk.Call, in struct {
		Amount int `agent:"amount"`
	}) (sdk.None, error) {
		f.note(fmt.Sprintf("charge %d", in.Amount))
		return sdk.None{}, nil
	})
	return f
}

func (f *far) note(call string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.key != "" {
		call = strings.ReplaceAll(call, f.key, "KEY")
	}
	f.calls = append(f.calls, call)
}

func (f *far) want(t *testing.T, calls []string) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	got, want := slices.Sorted(slices.Values(f.calls)), slices.Sorted(slices.Values(calls))
	if !slices.Equal(got, want) {
		t.Errorf("calls: %q, want %q", got, want)
	}
}

func (f *far) do(_ context.Context, _ *sdk.Call, in farValue) (farValue, error) {
	value, err := json.Marshal(in.Value)
	f.note("do " + string(value))
	return in, err
}

// get answers a read as the services in the snippets do.
func (f *far) get(_ context.Context, _ *sdk.Call, in getIn) (httpOut, error) {
	f.note("get " + in.URL)
	switch in.URL {
	case "https://example.com/items":
		return httpOut{200, map[string]any{"items": []int{1, 2}, "next": in.URL + "?page=2"}}, nil
	case "https://example.com/items?page=2":
		return httpOut{200, map[string]any{"items": []int{3}}}, nil
	}
	return httpOut{200, map[string]any{"id": "b-1", "state": "READY"}}, nil
}

// post answers a write. If the body has the idempotency key, the connection is lost after the effect,
// so that the engine has to look the call up.
func (f *far) post(_ context.Context, c *sdk.Call, in postIn) (httpOut, error) {
	body, err := json.Marshal(in.JSON)
	if err != nil {
		return httpOut{}, err
	}
	f.mu.Lock()
	f.key = c.IdempotencyKey
	f.mu.Unlock()
	f.note("post " + in.URL + " " + string(body))
	if strings.Contains(string(body), c.IdempotencyKey) {
		return httpOut{}, sdk.Unknown(errors.New("the connection is lost"), sdk.CodeUnavailable)
	}
	return httpOut{201, map[string]any{"id": "b-1"}}, nil
}
