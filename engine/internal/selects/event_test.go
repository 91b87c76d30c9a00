package selects

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl/cron"
	"github.com/saga-engine/engine/engine/internal/inbox"
	"github.com/saga-engine/engine/engine/store/firings"
	"github.com/saga-engine/engine/engine/store/naming"
)

// open opens the firing of an event, with a value for the parameter most.
func (s *shop) open(event, most string) bool {
	s.Helper()
	f := firings.Firing{Workflow: "w", Schedule: "closed", Event: event, Tick: tick, WorkflowID: s.id, By: "shop", Args: []byte(`{"most": "` + most + `"}`)}
	f.Runs = Begin(&f)
	added, err := s.role.Fire(s.Context(), f, false)
	if err != nil {
		s.Fatal(err)
	}
	return added
}

// wantEvent checks the firing of an event.
func (s *shop) wantEvent(event, state string, report firings.Report) *firings.Firing {
	s.Helper()
	f, err := s.role.FindEvent(s.Context(), "w", event)
	if err != nil || f == nil {
		s.Fatalf("firing of %s: %v, %v", event, f, err)
	}
	if f.State != state || f.Report != report || f.Event != event || f.By != "shop" {
		s.Errorf("firing = %+v, want %s, %+v", f, state, report)
	}
	return f
}

// S91: an event opens one firing, and each row that its parameters select starts one run. An engine that
// dies in the middle changes nothing in that.
func TestEventFiring(t *testing.T) {
	s := newShop(t, `sql = "SELECT id, total FROM public.orders"`)
	s.exec(`INSERT INTO public.orders SELECT n, n FROM generate_series(1, 7) n`)
	if !s.open("e-1", "6") || s.open("e-1", "100") || !s.open("e:2", "3") {
		t.Fatal("an event opens one firing, and another event opens its own at the same time")
	}
	if added := s.fire(tick); !added {
		t.Error("the firing of a schedule and that of an event do not exclude each other")
	}
	dead := errors.New("the engine is dead")
	s.after = func(page int) error {
		if page == 2 {
			return dead
		}
		return nil
	}
	var triggers []string
	s.before = func(_ int, runs []Run) {
		for _, r := range runs {
			triggers = append(triggers, r.Trigger)
		}
	}
	s.work()
	if f := s.wantEvent("e-1", firings.Open, firings.Report{Selected: 2, Started: 2}); !strings.Contains(f.Error, "dead") {
		t.Errorf("error = %q", f.Error)
	}
	s.wantEvent("e:2", firings.Complete, firings.Report{Selected: 2, Started: 2}) // it does not wait for e-1
	s.exec(`UPDATE engine.firing SET held_until = '-infinity'`)
	s.work()
	s.wantEvent("e-1", firings.Complete, firings.Report{Selected: 5, Started: 5})
	s.wantEvent("e:2", firings.Complete, firings.Report{Selected: 2, Started: 2})
	var names []string
	for name := range maps.Keys(s.runs) {
		if strings.Contains(name, ":") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	want := []string{"w:e-1::1", "w:e-1::2", "w:e-1::3", "w:e-1::4", "w:e-1::5", "w:e:2::1", "w:e:2::2"}
	if !slices.Equal(names, want) {
		t.Errorf("runs = %v, want %v", names, want)
	}
	slices.Sort(triggers)
	if got, want := slices.Compact(triggers), []string{inbox.Trigger("shop.closed", "e-1"), inbox.Trigger("shop.closed", "e:2"), cron.Trigger("s", tick)}; !slices.Equal(got, want) {
		t.Errorf("triggers = %v, want %v", got, want)
	}
	if s.open("e-1", "6") {
		t.Error("the event opened a second firing")
	}
}

// A cancelled firing of an event stays cancelled, also if an engine works on the event again.
func TestCancelledEventFiring(t *testing.T) {
	s := newShop(t, `sql = "SELECT id, total FROM public.orders"`)
	s.exec(`INSERT INTO public.orders VALUES (1)`)
	s.open("e-1", "6")
	f := s.wantEvent("e-1", firings.Open, firings.Report{})
	if done, err := s.role.Cancel(t.Context(), f.ID, "test"); err != nil || !done {
		t.Fatalf("cancel: %t, %v", done, err)
	}
	if s.open("e-1", "6") {
		t.Error("the firing was opened again")
	}
	s.work()
	s.wantEvent("e-1", firings.Cancelled, firings.Report{})
}

// Old firings are removed with their quarantined rows, by the rule of runs. A firing stays while one of
// its runs exists, and so does the last interval of a schedule.
func TestRetainFirings(t *testing.T) {
	s := newShop(t, `
      strategy = "window"
      sql      = "SELECT id, total FROM public.orders WHERE at >= $from AND at < $to"`)
	s.exec(`INSERT INTO public.orders VALUES (1, 1, $1), (2, -1, $1)`, tick.Add(-time.Minute))
	s.fire(tick)                    // has a run and a quarantined row
	s.fire(tick.Add(time.Hour))     // has no row
	s.fire(tick.Add(2 * time.Hour)) // the last interval
	s.open("e-1", "0")              // has a quarantined row
	s.open("e-2", "6")              // is open
	s.work()
	s.exec(`UPDATE engine.firing SET state = 'open', ended_at = NULL WHERE event = 'e-2'`)
	id := int64(naming.FirstRunOf(time.Now()))
	s.exec(`INSERT INTO engine.run_name (run_id, name) VALUES ($1, 'w.s.20260329T010000Z.1'), ($1 + 1, 'w.s.20260329T020000Zx'), ($1 + 2, 'w.s.20260329T0200')`, id)
	kept := func(want ...string) {
		t.Helper()
		list, err := s.role.Firings(t.Context(), 100)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range slices.Backward(list) {
			got = append(got, f.Event+f.Tick.Format("15"))
		}
		if !slices.Equal(got, want) {
			t.Errorf("firings = %v, want %v", got, want)
		}
	}
	retain := func(before time.Time) {
		t.Helper()
		if _, err := s.st.Retain(t.Context(), before, 100); err != nil {
			t.Fatal(err)
		}
	}
	retain(time.Now().Add(-time.Hour))
	kept("01", "02", "03", "e-101", "e-201")
	retain(time.Now().Add(time.Hour))
	kept("01", "03", "e-201")
	s.exec(`DELETE FROM engine.run_name WHERE run_id = $1`, id)
	s.exec(`UPDATE engine.workflow SET retention = 3600000000`)
	retain(time.Now().Add(time.Hour)) // the workflow's own retention counts, and is not over
	kept("01", "03", "e-201")
	s.exec(`UPDATE engine.firing SET ended_at = ended_at - interval '2 hours'`)
	retain(time.Time{})
	kept("03", "e-201")
	var left int
	if err := s.db.QueryRowContext(t.Context(), `SELECT count(*) FROM engine.quarantine WHERE firing_id NOT IN (SELECT firing_id FROM engine.firing)`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d quarantined rows are left, %v", left, err)
	}
}

// The name of each run of a firing begins with the text that retention looks for.
func TestBegin(t *testing.T) {
	long := strings.Repeat("x", 60)
	for _, f := range []firings.Firing{
		{Workflow: "w", Schedule: "s", Tick: tick}, {Workflow: long, Schedule: "s", Tick: tick}, {Workflow: long, Schedule: long, Tick: tick},
		{Workflow: "w", Event: "e"}, {Workflow: long, Event: long}, {Workflow: "w", Event: "é"},
	} {
		for _, key := range []string{"1", "é", strings.Repeat("k", 80), hashed} {
			if name := runName(&f, key); !strings.HasPrefix(name, Begin(&f)) || len(name) > 100 {
				t.Errorf("%s does not begin with %s", name, Begin(&f))
			}
		}
	}
}
