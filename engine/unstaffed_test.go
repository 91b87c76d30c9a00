package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/operator"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/story"
	"github.com/saga-engine/engine/sdk"
)

// agentAlerts counts the alerts that say that agents are missing.
func (w *world) agentAlerts(run status.RunID) []store.AlertRow {
	w.t.Helper()
	all, err := w.mem.Alerts(w.t.Context(), run, 100)
	if err != nil {
		w.t.Fatal(err)
	}
	var found []store.AlertRow
	for _, a := range all {
		if a.Kind == "overdue" && a.Code == engine.AlertAgentMissing {
			found = append(found, a)
		}
	}
	return found
}

// S85, E3: what a person says to a run whose agents no living engine has is
// decided all the same, soon, by one that has none of them; nothing of it is
// called, the run is nobody's afterwards, and goes on where the agents are.
func TestVerbsNeedNoAgent(t *testing.T) {
	const parking = "deadline = \"1h\"\n  compensation { mode = \"manual\" }"
	declined := func(context.Context, int) error { return &sdk.Failure{Code: "card_declined", Permanent: true} }
	for _, c := range []struct {
		name  string
		flow  string
		setup func(w *world) status.RunID
		verbs []machine.Event
		want  status.RunState
		ends  status.RunState // once an engine has the agents
	}{
		{name: "cancel of a run with nothing to undo", setup: (*world).queued,
			verbs: []machine.Event{machine.CancelRequested{By: "ann"}}, want: status.RunCancelled, ends: status.RunCancelled},
		{name: "pause", setup: (*world).queued,
			verbs: []machine.Event{machine.PauseRequested{By: "ann"}}, want: status.RunPaused},
		{name: "pause and resume", setup: (*world).queued,
			verbs: []machine.Event{machine.PauseRequested{By: "ann"}, machine.ResumeRequested{By: "ann"}}, want: status.RunRunning, ends: status.RunSucceeded},
		{name: "pause of a run whose owner died", setup: func(w *world) status.RunID { return w.orphaned(status.RunRunning, "charge", block) },
			verbs: []machine.Event{machine.PauseRequested{By: "ann"}}, want: status.RunPaused},
		{name: "cancel of a run with something to undo", setup: func(w *world) status.RunID { return w.orphaned(status.RunRunning, "charge", block) },
			verbs: []machine.Event{machine.CancelRequested{By: "ann"}}, want: status.RunCompensating, ends: status.RunCancelled},
		{name: "retry of a parked run", flow: parking, setup: func(w *world) status.RunID { return w.orphaned(status.RunParked, "charge", declined) },
			verbs: []machine.Event{machine.RetryRequested{Step: "charge", By: "ann"}}, want: status.RunRunning, ends: status.RunSucceeded},
		{name: "settle of a parked run", flow: parking, setup: func(w *world) status.RunID {
			return w.orphaned(status.RunParked, "book", func(context.Context, int) error { return errors.New("who knows") })
		}, verbs: []machine.Event{machine.SettleRequested{Step: "book", As: machine.SettleNotDone, Reason: "looked", By: "ann"}}, want: status.RunParked},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				flow := orderFlow
				if c.flow != "" {
					flow = strings.Replace(orderFlow, `deadline = "1h"`, c.flow, 1)
				}
				w := newWorld(t, flow)
				run := c.setup(w)
				poor := w.poor()
				time.Sleep(3 * w.opts.Lease) // it has looked at the run, and left it alone
				calls := len(w.shop.calls)
				for _, verb := range c.verbs {
					if err := w.ask(run, verb); err != nil {
						t.Fatalf("%T: %v", verb, err)
					}
				}
				if s := w.check(run); s.Status() != c.want {
					t.Errorf("the run is %v, want %v", s.Status(), c.want)
				}
				head, _, err := store.LoadRun(t.Context(), w.mem, run)
				if err != nil || head.Owner != 0 {
					t.Errorf("head = %+v, %v, want it nobody's", head, err)
				}
				w.empty(run)
				if len(w.shop.calls) != calls {
					t.Error("an agent was called")
				}
				w.shop.on("charge", nil)
				if c.ends != status.RunInvalid {
					rich := w.start()
					w.wait(rich, run, c.ends)
					rich.drain(t)
				}
				poor.drain(t)
			})
		})
	}
}

// A verb that does not apply any more is refused by an engine without the
// agents too, and an answer that came in time counts although nobody could take
// the run then.
func TestAnswerCountsBeforeAVerb(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		run := w.orphaned(status.RunRunning, "charge", block)
		w.post(run, store.MessageReply, found(t, w, 1, 1, "elsewhere"), time.Now())
		poor := w.poor()
		time.Sleep(time.Minute) // long past its complete-by
		if err := w.ask(run, machine.PauseRequested{By: "ann"}); err != nil {
			t.Fatal(err)
		}
		s := w.check(run)
		if got := story.Node(s, nil, 1).State; got != status.StepSucceeded {
			t.Errorf("charge is %v, want what the answer says", got)
		}
		lost := w.post(run, store.MessageVerb, machine.PauseRequested{By: "bob"}, time.Time{})
		var refused *operator.RefusedError
		within(t, 5*time.Second, "answer", func(ctx context.Context) error {
			if err := w.operator().Answer(ctx, run, lost); !errors.As(err, &refused) {
				return errors.Join(errors.New("not refused"), err)
			}
			return nil
		})
		poor.drain(t)
	})
}

// S39, S58, E1: a run whose agents no living engine has raises one alert when it
// is past its time by the usual grace, which names what is missing and who was
// seen; it raises none while others get on with runs of its kind.
func TestRunWithoutAgentRaisesAnAlert(t *testing.T) {
	for _, c := range []struct {
		name  string
		setup func(w *world) status.RunID
	}{
		{"of nobody", (*world).queued},
		{"whose owner died", func(w *world) status.RunID { return w.orphaned(status.RunRunning, "charge", block) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, orderFlow)
				run := c.setup(w)
				poor, second := w.poor(), w.poor()
				time.Sleep(w.opts.Lease / 2)
				if got := w.agentAlerts(run); len(got) > 0 {
					t.Errorf("alerts = %+v before the grace was over", got)
				}
				time.Sleep(time.Hour)
				got := w.agentAlerts(run)
				if len(got) != 1 {
					t.Fatalf("alerts = %+v, want one", got)
				}
				if m := got[0].Message; !strings.Contains(m, "shop 1.0.0 (no such agent here)") || !strings.Contains(m, "engine 2 at test") {
					t.Errorf("the alert says %q", m)
				}
				rows, err := w.mem.Rows(t.Context(), run, 0, 100)
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Hour)
				if again, err := w.mem.Rows(t.Context(), run, 0, 100); err != nil || len(again) != len(rows) {
					t.Errorf("%d rows became %d, %v", len(rows), len(again), err)
				}
				w.shop.on("charge", nil)
				rich := w.start()
				within(t, time.Minute, "the rest", func(ctx context.Context) error {
					_, err := rich.Wait(ctx, run)
					return err
				})
				for _, n := range []*testNode{poor, second, rich} {
					n.drain(t)
				}
			})
		})
	}
	t.Run("others are busy with such runs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, orderFlow)
			w.shop.on("reserve", block)
			w.opts.ClaimBatch = 1
			w.cfg = func(c *engine.Config) { c.Capacity = &seats{limit: 1} }
			rich := w.start()
			w.cfg = nil
			for range 3 {
				w.submit(rich, "order", nil)
			}
			waiting := w.queued()
			poor := w.poor()
			time.Sleep(20 * time.Second)
			if head, _, err := store.LoadRun(t.Context(), w.mem, waiting); err != nil || head.Owner != 0 {
				t.Fatalf("head = %+v, %v, want it in the line still", head, err)
			}
			if got := w.agentAlerts(waiting); len(got) > 0 {
				t.Errorf("alerts = %+v of a run that stands in line", got)
			}
			poor.drain(t)
			rich.kill(t)
		})
	})
}

// S39, S57: the deadline of a run ends it, soon and whether or not people were
// told before, although every engine that is alive lacks its agents. Nobody has
// to start another engine for that.
func TestDeadlineOfARunWithoutAgents(t *testing.T) {
	oneMinute := func(more string) string {
		return strings.Replace(orderFlow, `deadline = "1h"`, "deadline = \"1m\"\n"+more, 1)
	}
	for _, c := range []struct {
		name  string
		flow  string
		setup func(w *world) status.RunID
		want  status.RunState
	}{
		{"of nobody", oneMinute(""), (*world).queued, status.RunFailed},
		{"that is to be parked then", oneMinute(`compensation { mode = "manual" }`), (*world).queued, status.RunParked},
		{"that is paused", oneMinute(""), func(w *world) status.RunID {
			run := w.queued()
			w.post(run, store.MessageVerb, machine.PauseRequested{By: "ann"}, time.Time{})
			return run
		}, status.RunFailed},
		{"whose owner died", oneMinute(""), func(w *world) status.RunID { return w.orphaned(status.RunRunning, "charge", block) }, status.RunCompensating},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, c.flow)
				run := c.setup(w)
				nodes := []*testNode{w.poor(), w.poor(), w.poor()}
				time.Sleep(75 * time.Second)
				s := w.check(run)
				if s.Status() != c.want || s.Failure().Code != machine.CodeDeadlineExceeded {
					t.Errorf("the run is %v (%s), want %v because of its deadline\n%s", s.Status(), s.Failure().Code, c.want, w.transcript(run))
				}
				if n := len(w.shop.called("reserve")); c.want != status.RunCompensating && n > 0 {
					t.Errorf("an agent was called %d times", n)
				}
				rows, err := w.mem.Rows(t.Context(), run, 0, 100)
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Hour)
				again, err := w.mem.Rows(t.Context(), run, 0, 100)
				if err != nil || len(again) > len(rows)+3 {
					t.Errorf("%d rows became %d, %v: every visit writes one", len(rows), len(again), err)
				}
				for _, n := range nodes {
					n.drain(t)
				}
			})
		})
	}
}
