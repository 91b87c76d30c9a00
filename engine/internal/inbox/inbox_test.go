package inbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/events"
	"github.com/saga-engine/engine/engine/store/memory"
	"github.com/saga-engine/engine/engine/store/schedules"
)

// A desk is a store with events and published workflows, and engines that start runs.
type desk struct {
	*testing.T
	*memory.Store
	def *dsl.Definition

	mu      sync.Mutex // protects the fields below
	now     time.Time
	calls   int              // calls of the store and of Submit so far
	dies    int              // number of the call at which the engine dies; 0 = it lives
	after   bool             // the engine dies after the call, not before
	runs    map[string]Run   // by name
	started map[string]int   // number of runs that were started, by name
	answers map[string]error // errors of Submit, by name of the run
	reset   []Reset          // goals that were reset
	lasting bool             // these errors are about the submission
	pages   []int            // number of runs in each call of SubmitAll
	fired   []Firing         // firings that were opened
}

const source = `
variable "region" { default = "eu" }
workflow "order" {
  deadline = "1h"
  variable "id" { type = string }
  variable "total" {
    type = number
    validation {
      condition     = var.total > 0
      error_message = "total must be above 0."
    }
  }
  on_event "placed" {
    type      = "order.placed"
    when      = event.data.total != 13
    variables = { id = event.data.id, total = event.data.total }
  }
  step "a" { value = var.id }
}
workflow "audit" {
  deadline = "1h"
  variable "text" { default = "" }
  on_event "placed" {
    type      = "order.placed"
    variables = { text = "${event.id} ${event.type}" }
  }
  step "a" { value = var.text }
}
workflow "goal" {
  deadline = "1h"
  variable "id" { type = string }
  unique {
    key = var.id
    reset_on "annulled" {
      type = "goal.annulled"
      when = event.data.refund
      key  = event.data.id
    }
  }
  step "a" { value = var.id }
}
workflow "batch" {
  deadline = "1h"
  variable "id" { type = string }
  variable "total" {
    type    = number
    default = 1
    validation {
      condition     = var.total > 0
      error_message = "total must be above 0."
    }
  }
  on_event "keys" {
    when      = try(event.data.live, true)
    for_each  = event.data.ids
    variables = { id = each.key, total = try(each.value.total, 1) }
  }
  on_event "closed" {
    when      = event.data.day != "never"
    variables = { id = row.id }
    select {
      sql  = "SELECT id FROM shop.orders WHERE day = $day"
      args = { day = event.data.day }
      key  = row.id
    }
  }
  step "a" { value = var.id }
}
workflow "other" {
  deadline = "1h"
  variable "id" { type = string }
  on_event "keys" {
    for_each  = { for k, v in event.data.others : k => v }
    variables = { id = each.value }
  }
  step "a" { value = var.id }
}
workflow "secret" {
  deadline = "1h"
  variable "token" {
    type      = string
    sensitive = true
  }
  on_event "token" { variables = event.data }
  step "a" { value = 1 }
}`

func newDesk(t *testing.T) *desk {
	t.Helper()
	m, diags := dsl.Parse(fstest.MapFS{"main.hcl": {Data: []byte(source)}}, dsl.ParseOptions{})
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	def, diags := dsl.Link(m, nil)
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	d := &desk{T: t, def: def, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), runs: map[string]Run{}, started: map[string]int{}, answers: map[string]error{}}
	d.Store = memory.New(memory.Options{Now: func() time.Time { d.mu.Lock(); defer d.mu.Unlock(); return d.now }})
	for i, name := range def.Names() {
		w := schedules.Workflow{Name: name, ID: store.WorkflowID(i + 1)}
		for _, on := range def.Workflow(name).OnEvents {
			w.Events = append(w.Events, on.Type)
		}
		if err := d.Publish(t.Context(), w, nil); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// send sends an event.
func (d *desk) send(id, kind, data string) {
	d.Helper()
	if sent, err := d.Store.SendEvent(d.Context(), events.Event{ID: id, Type: kind, Data: []byte(data), By: "ann"}); err != nil || !sent {
		d.Fatalf("send %s: %t, %v", id, sent, err)
	}
}

// pass lets time pass, until every claim is over.
func (d *desk) pass() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now = d.now.Add(2 * lease)
}

var errDead = errors.New("the engine is dead")

// step counts a call. It returns a function to call afterwards, or an error if the engine is dead.
func (d *desk) step() (func() error, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls++
	n := d.calls
	dead := func(from int) bool { return d.dies > 0 && n >= from }
	if dead(d.dies+1) || !d.after && dead(d.dies) {
		return nil, errDead
	}
	return func() error {
		if d.after && dead(d.dies) {
			return errDead
		}
		return nil
	}, nil
}

// A mortal store belongs to an engine that dies.
type mortal struct{ *desk }

func (m mortal) ClaimEvents(ctx context.Context, limit int, lease time.Duration) ([]events.Event, error) {
	after, err := m.step()
	if err != nil {
		return nil, err
	}
	list, err := m.Store.ClaimEvents(ctx, limit, lease)
	return list, errors.Join(err, after())
}

func (m mortal) KeepEvent(ctx context.Context, seq int64, done []string, why string) error {
	after, err := m.step()
	if err != nil {
		return err
	}
	return errors.Join(m.Store.KeepEvent(ctx, seq, done, why), after())
}

func (m mortal) RemoveEvents(ctx context.Context, seqs ...int64) error {
	after, err := m.step()
	if err != nil {
		return err
	}
	return errors.Join(m.Store.RemoveEvents(ctx, seqs...), after())
}

func (m mortal) AdvanceEvent(ctx context.Context, e events.Event, p events.Page) (bool, error) {
	after, err := m.step()
	if err != nil {
		return false, err
	}
	moved, err := m.Store.AdvanceEvent(ctx, e, p)
	return moved, errors.Join(err, after())
}

func (m mortal) ReleaseEvents(ctx context.Context, seqs ...int64) error {
	after, err := m.step()
	if err != nil {
		return err
	}
	return errors.Join(m.Store.ReleaseEvents(ctx, seqs...), after())
}

// submitAll is Config.SubmitAll.
func (d *desk) submitAll(_ context.Context, runs []Run) []Result {
	out := make([]Result, len(runs))
	fail := func(err error) []Result {
		for i := range out {
			out[i] = Result{Err: err}
		}
		return out
	}
	after, err := d.step()
	if err != nil {
		return fail(err)
	}
	d.mu.Lock()
	d.pages = append(d.pages, len(runs))
	for i, r := range runs {
		if err := d.answers[r.Name]; err != nil {
			out[i] = Result{Err: err, Lasting: d.lasting}
			continue
		}
		if _, exists := d.runs[r.Name]; !exists {
			d.runs[r.Name] = r
			d.started[r.Name]++
		}
	}
	d.mu.Unlock()
	if err := after(); err != nil {
		return fail(err)
	}
	return out
}

// fire is Config.Fire.
func (d *desk) fire(_ context.Context, f Firing) (bool, error) {
	after, err := d.step()
	if err != nil {
		return false, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.answers[f.Event]; err != nil {
		return d.lasting, err
	}
	d.fired = append(d.fired, f)
	return false, after()
}

func (d *desk) inbox() *Inbox {
	return New(Config{
		SubmitAll: d.submitAll, Fire: d.fire,
		Store: mortal{d}, Published: d.Store, Logger: slog.New(slog.DiscardHandler),
		Definition: func(context.Context, store.WorkflowID) (*dsl.Definition, error) { return d.def, nil },
		Reset: func(_ context.Context, r Reset) (bool, error) {
			d.mu.Lock()
			defer d.mu.Unlock()
			if err := d.answers[r.Key]; err != nil {
				return d.lasting, err
			}
			d.reset = append(d.reset, r)
			return false, nil
		},
		Submit: func(_ context.Context, r Run) (bool, error) {
			after, err := d.step()
			if err != nil {
				return false, err
			}
			d.mu.Lock()
			if err := d.answers[r.Name]; err != nil {
				d.mu.Unlock()
				return d.lasting, err
			}
			if _, exists := d.runs[r.Name]; !exists {
				d.runs[r.Name] = r
				d.started[r.Workflow+" "+r.Trigger]++
			}
			d.mu.Unlock()
			return false, after()
		},
	})
}

// scan makes a scan, and reports an error.
func (d *desk) scan(x *Inbox) {
	d.Helper()
	if _, err := x.Scan(d.Context()); err != nil {
		d.Errorf("scan: %v", err)
	}
}

// want checks the names of the runs, the ids of the events that wait, and why events are quarantined.
func (d *desk) want(runs, waiting string, quarantined map[string]string) {
	d.Helper()
	if got := strings.Join(slices.Sorted(maps.Keys(d.runs)), " "); got != runs {
		d.Errorf("runs = %s, want %s", got, runs)
	}
	all, err := d.ListEvents(d.Context(), false, 1000)
	if err != nil {
		d.Fatal(err)
	}
	var waits []string
	found := map[string]string{}
	for _, e := range all {
		if e.Quarantined == "" {
			waits = append(waits, e.ID)
			continue
		}
		found[e.ID] = e.Quarantined
		if want, ok := quarantined[e.ID]; !ok || !strings.Contains(e.Quarantined, want) {
			d.Errorf("event %s is quarantined: %q, want %q", e.ID, e.Quarantined, want)
		}
	}
	if got := strings.Join(waits, " "); got != waiting {
		d.Errorf("events that wait = %s, want %s", got, waiting)
	}
	if len(found) != len(quarantined) {
		d.Errorf("quarantined = %v, want %v", found, quarantined)
	}
}

// S90, S101: an event starts one run of each workflow that wants it. A bad event is quarantined with
// its reason, and stops no other event.
func TestEventsBecomeRuns(t *testing.T) {
	d := newDesk(t)
	d.send("a", "order.placed", `{"id": "o-1", "total": 5}`)
	d.send("b", "order.placed", `{"id": "o-2", "total": 13}`)
	d.send("c", "order.placed", `{"id": "o-3"}`)
	d.send("d", "order.placed", `{"id": "o-4", "total": 0}`)
	d.send("e", "order.placed", `{"id": [], "total": 1}`)
	d.send("f", "order.paid", `{}`)
	d.send("g", "token", `{"token": "x"}`)
	d.send("h", "order.placed", `7`)
	d.send("i", "order.placed", `{"id": "o-5", "total": 6}`)
	d.scan(d.inbox())
	bad := map[string]string{"c": `workflow order: `, "d": "total must be above 0", "e": "does not fit its type string", "f": "no published workflow has an on_event or reset_on block for type order.paid", "g": "sensitive", "h": "workflow order: "}
	d.want("audit:a audit:b audit:c audit:d audit:e audit:h audit:i order:a order:i", "", bad)
	r := d.runs["order:a"]
	if got := string(r.Vars.JSON()); got != `{"id":"o-1","region":"eu","total":5}` || r.By != "ann" || r.Trigger != "event order.placed a" {
		t.Errorf("run = %s by %s, trigger %q", got, r.By, r.Trigger)
	}
	if got := string(d.runs["audit:b"].Vars.JSON()); got != `{"region":"eu","text":"b order.placed"}` {
		t.Errorf("variables = %s", got)
	}
}

// S99: an event resets the goal that the block names, and starts no run. A reset that is refused
// quarantines the event; one that cannot be decided now leaves it.
func TestEventResetsGoal(t *testing.T) {
	d := newDesk(t)
	d.send("a", "goal.annulled", `{"id": "o-1", "refund": true}`)
	d.send("b", "goal.annulled", `{"id": "o-2", "refund": false}`)
	d.send("c", "goal.annulled", `{"refund": true}`)
	d.send("d", "goal.annulled", `{"id": "o-3", "refund": true}`)
	d.answers["o-3"] = errors.New("the store does not answer")
	x := d.inbox()
	if _, err := x.Scan(t.Context()); err == nil {
		t.Error("no error")
	}
	d.want("", "d", map[string]string{"c": "workflow goal: "})
	if want := (Reset{Workflow: "goal", Key: "o-1", By: "ann", Reason: "event goal.annulled a"}); len(d.reset) != 1 || d.reset[0] != want {
		t.Errorf("resets = %+v, want %+v", d.reset, want)
	}
	d.lasting = true
	d.pass()
	d.scan(x)
	d.want("", "", map[string]string{"c": "workflow goal: ", "d": "does not answer"})
}

// A retried event starts only the runs that it has not started, even if retention has removed these.
func TestRetriedEvent(t *testing.T) {
	d := newDesk(t)
	d.send("a", "order.placed", `{"id": "o-1", "total": 5}`)
	d.answers["order:a"], d.lasting = errors.New("unique.key is empty"), true
	x := d.inbox()
	d.scan(x)
	d.want("audit:a", "", map[string]string{"a": "unique.key is empty"})
	clear(d.runs)
	clear(d.answers)
	if found, err := d.RetryEvent(t.Context(), "a"); err != nil || !found {
		t.Fatalf("retry: %t, %v", found, err)
	}
	d.scan(x)
	d.want("order:a", "", nil)
}

// An engine that cannot tell now leaves the event to the next try, when the claim is over.
func TestEventThatFails(t *testing.T) {
	d := newDesk(t)
	d.send("a", "order.placed", `{"id": "o-1", "total": 5}`)
	d.send("b", "order.placed", `{"id": "o-2", "total": 5}`)
	d.answers["order:a"] = errors.New("the store does not answer")
	x := d.inbox()
	if _, err := x.Scan(t.Context()); err == nil {
		t.Error("no error")
	}
	d.want("audit:a audit:b order:b", "a", nil)
	clear(d.answers)
	d.scan(x)
	d.want("audit:a audit:b order:b", "a", nil)
	d.pass()
	d.scan(x)
	d.want("audit:a audit:b order:a order:b", "", nil)
}

// While one workflow cannot be asked, an event waits, although another workflow has refused it.
func TestEventWithTwoKindsOfErrors(t *testing.T) {
	d := newDesk(t)
	d.send("a", "order.placed", `{"id": "o-1"}`) // bad for the workflow order
	d.answers["audit:a"] = errors.New("the store does not answer")
	x := d.inbox()
	if _, err := x.Scan(t.Context()); err == nil {
		t.Error("no error")
	}
	d.want("", "a", nil)
	clear(d.answers)
	d.pass()
	d.scan(x)
	d.want("audit:a", "", map[string]string{"a": "workflow order: "})
}

// S101: an engine dies at each of its calls, before it or after it. The next engine starts the runs
// that are missing, and no run twice.
func TestCrashBetweenStatements(t *testing.T) {
	for _, after := range []bool{false, true} {
		for at, last := 1, false; !last; at++ {
			t.Run(fmt.Sprintf("call %d after %t", at, after), func(t *testing.T) {
				d := newDesk(t)
				d.send("a", "order.placed", `{"id": "o-1", "total": 5}`)
				d.send("bad", "order.placed", `{}`)
				d.send("b", "order.placed", `{"id": "o-2", "total": 13}`)
				d.dies, d.after = at, after
				_, err := d.inbox().Scan(t.Context())
				last = d.calls < at
				if err == nil && !last {
					t.Error("the engine did not die")
				}
				d.dies = 0
				d.pass()
				d.scan(d.inbox())
				d.want("audit:a audit:b audit:bad order:a", "", map[string]string{"bad": "workflow order: "})
				for name, n := range d.started {
					if n != 1 {
						t.Errorf("%s was started %d times", name, n)
					}
				}
			})
		}
	}
}

// S101: two and four engines share the events: each event starts its runs once.
func TestSeveralEngines(t *testing.T) {
	for _, engines := range []int{2, 4} {
		d := newDesk(t)
		const n = 1200 // more than two batches
		for i := range n {
			d.send(fmt.Sprintf("e-%d", i), "order.placed", `{"id": "o", "total": 5}`)
		}
		var group sync.WaitGroup
		for range engines {
			x := d.inbox()
			group.Go(func() {
				for {
					if found, err := x.Scan(t.Context()); err != nil || found == 0 {
						if err != nil {
							t.Error(err)
						}
						return
					}
				}
			})
		}
		group.Wait()
		if all, err := d.ListEvents(t.Context(), false, 10); err != nil || len(all) != 0 || len(d.runs) != 2*n || d.calls > 2*n+100 {
			t.Errorf("%d engines: %d runs in %d calls, %d events are left, %v; want %d runs, each submitted once", engines, len(d.runs), d.calls, len(all), err, 2*n)
		}
	}
}

// The name of a run fits every store, and two events never share it.
func TestRunName(t *testing.T) {
	long := strings.Repeat("x", 200)
	for _, c := range []struct{ workflow, event, want string }{
		{"order", "evt-7", "order:evt-7"},
		{"order", "a/b:c.d_e", "order:a/b:c.d_e"},
		{"order", "é 7", "order::"},
		{"order", long, "order::"},
		{long, "7", long[:66] + "::"},
		{"order", "x.notify.y", "order::"},
		{"order", "a::b", "order::"},
		{"order", ":a", "order::"},
	} {
		got := RunName(c.workflow, c.event)
		if got != c.want && (!strings.HasSuffix(c.want, "::") || !strings.HasPrefix(got, c.want) || len(got) != len(c.want)+32) {
			t.Errorf("RunName(%.10s, %.10s) = %s, want %s", c.workflow, c.event, got, c.want)
		}
		if len(got) > 100 {
			t.Errorf("RunName(%.10s, %.10s) has %d characters", c.workflow, c.event, len(got))
		}
	}
	if RunName("order", long) == RunName("order", long+"x") || RunName(long, "7") == RunName(long+"x", "7") {
		t.Error("two events share a name")
	}
}
