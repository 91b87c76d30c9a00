package intake

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

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/intake"
)

// A desk is a store with submissions, and an engine that accepts them.
type desk struct {
	*testing.T
	intake.Store // nil: an Intake calls only the methods below
	def          *dsl.Definition

	mu      sync.Mutex // protects the fields below
	list    []intake.Submission
	refused map[int64]string
	runs    map[string]Run
	order   []string         // names of the runs in the order in which they were submitted
	answers map[string]error // errors of Submit by name of the run
	lasting bool             // the errors are about the submission
	lost    bool             // Accept fails once
}

const source = `
workflow "w" {
  deadline = "1h"
  variable "n" {
    type = number
    validation {
      condition     = var.n > 0
      error_message = "n must be above 0."
    }
  }
  step "a" { value = var.n }
}
workflow "keyed" {
  deadline = "1h"
  variable "n" { type = number }
  variable "order" { type = string }
  unique {
    key         = var.order
    on_conflict = "replace"
  }
  step "a" { value = var.n }
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
	return &desk{T: t, def: def, refused: map[int64]string{}, runs: map[string]Run{}, answers: map[string]error{}}
}

// add adds submissions with these inputs. Their runs are named a, b, c and so on.
func (d *desk) add(inputs ...string) {
	for _, input := range inputs {
		id := int64(len(d.list) + 1)
		d.list = append(d.list, intake.Submission{ID: id, Run: string(rune('a' + id - 1)), Workflow: "w", Input: []byte(input), WorkflowID: 1})
	}
}

// Submissions is a method of intake.Store.
func (d *desk) Submissions(_ context.Context, after int64, limit int) ([]intake.Submission, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := slices.DeleteFunc(slices.Clone(d.list), func(s intake.Submission) bool { return s.ID <= after })
	return list[:min(limit, len(list))], nil
}

// Accept is a method of intake.Store.
func (d *desk) Accept(_ context.Context, ids ...int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lost {
		d.lost = false
		return errors.New("the connection is lost")
	}
	d.list = slices.DeleteFunc(d.list, func(s intake.Submission) bool { return slices.Contains(ids, s.ID) })
	return nil
}

// Refuse is a method of intake.Store.
func (d *desk) Refuse(_ context.Context, id int64, why string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refused[id] = why
	d.list = slices.DeleteFunc(d.list, func(s intake.Submission) bool { return s.ID == id })
	return nil
}

func (d *desk) intake() *Intake {
	return New(Config{
		Store: d, Logger: slog.New(slog.DiscardHandler),
		Definition: func(context.Context, store.WorkflowID) (*dsl.Definition, error) { return d.def, nil },
		Submit: func(_ context.Context, r Run) (bool, error) {
			d.mu.Lock()
			defer d.mu.Unlock()
			if err := d.answers[r.Name]; err != nil {
				return d.lasting, err
			}
			d.runs[r.Name] = r
			d.order = append(d.order, r.Name)
			return false, nil
		},
	})
}

func (d *desk) want(runs string, waiting int, refused map[int64]string) {
	d.Helper()
	if got := strings.Join(slices.Sorted(maps.Keys(d.runs)), " "); got != runs {
		d.Errorf("runs = %s, want %s", got, runs)
	}
	if len(d.list) != waiting {
		d.Errorf("%d submissions wait, want %d", len(d.list), waiting)
	}
	for id, why := range refused {
		if !strings.Contains(d.refused[id], why) {
			d.Errorf("submission %d is refused with %q, want %q", id, d.refused[id], why)
		}
	}
	if len(d.refused) != len(refused) {
		d.Errorf("refused = %v, want %v", d.refused, refused)
	}
}

// Submissions become runs. Those that never can are refused with a reason, and stop no other one.
func TestSubmissionsBecomeRuns(t *testing.T) {
	d := newDesk(t)
	d.add(`{"n":1}`, `{"n":0}`, `{"n":"x"}`, `{}`, `{"n":5}`, `not JSON`)
	d.add(`{"n":6}`)
	d.list[6].WorkflowID = 0
	if n, err := d.intake().Scan(t.Context()); err != nil || n != 7 {
		t.Errorf("Scan = %d, %v", n, err)
	}
	d.want("a e", 0, map[int64]string{2: "n must be above 0", 3: "a number is required", 4: `"n" has no default`, 6: "no JSON object", 7: "not published any more"})
	if got := string(d.runs["e"].Vars.JSON()); got != `{"n":5}` {
		t.Errorf("variables = %s", got)
	}
}

// An engine that cannot tell leaves the submission to the next try; it refuses one that no try can
// accept.
func TestSubmissionThatFails(t *testing.T) {
	d := newDesk(t)
	d.add(`{"n":1}`, `{"n":2}`)
	d.answers["a"] = errors.New("the store does not answer")
	x := d.intake()
	if _, err := x.Scan(t.Context()); err == nil {
		t.Error("no error")
	}
	d.want("b", 1, nil)
	d.lasting = true
	if _, err := x.Scan(t.Context()); err != nil {
		t.Error(err)
	}
	d.want("b", 0, map[int64]string{1: "does not answer"})
}

// S54: an engine that ends after it has submitted the runs leaves submissions that the next scan removes.
func TestSubmissionsAreRemovedLater(t *testing.T) {
	d := newDesk(t)
	d.add(`{"n":1}`)
	d.lost = true
	if _, err := d.intake().Scan(t.Context()); err == nil {
		t.Error("no error")
	}
	d.want("a", 1, nil)
	if _, err := d.intake().Scan(t.Context()); err != nil {
		t.Error(err)
	}
	d.want("a", 0, nil)
}

// Submissions that can be neither accepted nor refused now do not hold up those behind them, however
// many they are.
func TestLaterSubmissionsAreNotHeldUp(t *testing.T) {
	d := newDesk(t)
	for id := int64(1); id <= page; id++ {
		d.list = append(d.list, intake.Submission{ID: id, Run: "stuck", Workflow: "w", Input: []byte(`{"n":1}`), WorkflowID: 1})
	}
	d.list = append(d.list, intake.Submission{ID: page + 1, Run: "last", Workflow: "w", Input: []byte(`{"n":2}`), WorkflowID: 1})
	d.answers["stuck"] = errors.New("a key is missing")
	x := d.intake()
	for range 2 {
		if _, err := x.Scan(t.Context()); err != nil && !strings.Contains(err.Error(), "a key is missing") {
			t.Fatal(err)
		}
	}
	d.want("last", page, nil)
	if _, err := x.Scan(t.Context()); err == nil {
		t.Error("the third scan does not begin again with the first submissions")
	}
}

// S95: submissions with one unique key become runs in the order in which they were made, so that the newest
// one replaces the others. If the engine cannot decide on one of them, the later ones wait for it.
func TestSubmissionsOfOneKeyKeepTheirOrder(t *testing.T) {
	d := newDesk(t)
	want := map[string]string{}
	for id := int64(1); id <= 300; id++ {
		order := fmt.Sprint("o-", id%3)
		name := fmt.Sprintf("%s-%03d", order, id)
		d.list = append(d.list, intake.Submission{ID: id, Run: name, Workflow: "keyed", Input: fmt.Appendf(nil, `{"n":%d,"order":"%s"}`, id, order), WorkflowID: 1})
		if order != "o-1" || id < 151 {
			want[order] += name + " "
		}
	}
	d.answers["o-1-151"] = errors.New("the store does not answer")
	if _, err := d.intake().Scan(t.Context()); err == nil {
		t.Error("no error")
	}
	got := map[string]string{}
	for _, name := range d.order {
		got[name[:3]] += name + " "
	}
	if !maps.Equal(got, want) {
		t.Errorf("submitted %v\nwant %v", got, want)
	}
	if len(d.list) != 50 {
		t.Errorf("%d submissions wait, want 50", len(d.list))
	}
}

// S91: a submission that stays in the store holds up later ones with the same key, also on the next page.
func TestSubmissionsOfOneKeyKeepTheirOrderOverPages(t *testing.T) {
	d := newDesk(t)
	submission := func(id int64, name, order string) {
		d.list = append(d.list, intake.Submission{ID: id, Run: name, Workflow: "keyed", Input: fmt.Appendf(nil, `{"n":1,"order":"%s"}`, order), WorkflowID: 1})
	}
	submission(1, "first", "o-1")
	for id := int64(2); id <= 1000; id++ {
		submission(id, fmt.Sprint("between-", id), fmt.Sprint("x-", id))
	}
	submission(1001, "second", "o-1")
	d.answers["first"] = errors.New("the store does not answer")
	x := d.intake()
	scan := func(failed bool) {
		t.Helper()
		if _, err := x.Scan(t.Context()); (err != nil) != failed {
			t.Errorf("scan: %v", err)
		}
	}
	scan(true)
	delete(d.answers, "first")
	scan(false)
	if slices.Contains(d.order, "second") {
		t.Error("the second submission of the key went first")
	}
	scan(false)
	if n := len(d.order); len(d.list) != 0 || n < 2 || d.order[n-2] != "first" || d.order[n-1] != "second" {
		t.Errorf("%d submissions wait; the last runs: %v", len(d.list), d.order[max(0, n-2):])
	}
}

// S91: if this engine cannot prepare a submission, its unique key is not known. So the later
// submissions of its workflow that have a unique key wait, too. A submission without a key, and a
// submission of another workflow, does not wait.
func TestSubmissionThatCannotBePreparedKeepsItsTurn(t *testing.T) {
	d := newDesk(t)
	for id, name := range []string{"first", "second", "other"} {
		d.list = append(d.list, intake.Submission{ID: int64(id + 1), Run: name, Workflow: "keyed", Input: []byte(`{"n":1,"order":"o-1"}`), WorkflowID: 2})
	}
	d.list[2].Input = []byte(`{"n":1,"order":""}`)
	d.add(`{"n":1}`)
	x, calls := d.intake(), 0
	x.cfg.Definition = func(_ context.Context, id store.WorkflowID) (*dsl.Definition, error) {
		if id == 2 {
			if calls++; calls == 1 {
				return nil, errors.New("the store does not answer")
			}
		}
		return d.def, nil
	}
	if _, err := x.Scan(t.Context()); err == nil {
		t.Error("no error")
	}
	slices.Sort(d.order)
	if got := strings.Join(d.order, " "); got != "d other" {
		t.Errorf("the first scan submitted %s, want d other", got)
	}
	d.order = nil
	if _, err := x.Scan(t.Context()); err != nil {
		t.Error(err)
	}
	if got := strings.Join(d.order, " "); got != "first second" || len(d.list) != 0 {
		t.Errorf("the second scan submitted %s, want first second; %d submissions wait", got, len(d.list))
	}
}
