package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store/replies"
)

// A postbox is a webhook. It notes what each run has told it, without duplicates.
type postbox struct {
	mu   sync.Mutex
	got  map[status.RunID][]string
	down bool
}

func (p *postbox) Check(sink string) error {
	if sink != "webhook:shop" {
		return errors.New("no such sink")
	}
	return nil
}

func (p *postbox) Send(_ context.Context, r replies.Reply) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		return errors.New("down")
	}
	if text := fmt.Sprintf("%d %s %s", r.N, r.State, r.Correlation); !slices.Contains(p.got[r.Run], text) {
		p.got[r.Run] = append(p.got[r.Run], text)
	}
	return nil
}

// told returns what a run has told the postbox.
func (p *postbox) told(run status.RunID) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.got[run])
}

// posted starts a run whose replies go to a sink.
func (w *world) posted(n *testNode, sink string) status.RunID {
	w.t.Helper()
	s, err := n.Submit(w.t.Context(), engine.Submission{Definition: w.def, Workflow: "order", Vars: w.vars("order", nil), ReplyTo: sink, Correlation: "c"})
	if err != nil {
		w.t.Fatalf("Submit: %v", err)
	}
	return s.Run
}

// A run tells its sink what becomes of it, in order, also if its engine is killed and another one
// takes the run over (S66, S67). A run without a sink tells nothing.
func TestRepliesOfTwoEngines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := belled(t, bellFlow("", `"overdue"`))
		w.shop.on("book", declined("no_carrier"))
		box := &postbox{got: map[status.RunID][]string{}}
		w.cfg = func(c *engine.Config) { c.Replies = box }
		first := w.start()
		run, other, plain := w.posted(first, "webhook:shop"), w.posted(first, "table:shop"), w.submit(first, "order", nil)
		first.kill(t)
		second := w.start()
		w.wait(second, run, status.RunCompensated)
		w.wait(second, other, status.RunCompensated)
		w.wait(second, plain, status.RunCompensated)
		time.Sleep(10 * time.Minute)
		want := []string{"1 accepted c", "2 started c", "3 compensated c"}
		if got := box.told(run); !slices.Equal(got, want) {
			t.Errorf("the run has told %q, want %q", got, want)
		}
		queue, _ := replies.Of(w.mem)
		for i, text := range want {
			list, err := queue.Take(t.Context(), "table:shop", 10)
			if err != nil || len(list) != 1 || list[0].Run != other || !strings.Contains(text, list[0].State) || int(list[0].N) != i+1 {
				t.Errorf("taken %+v, %v, want %q", list, err, text)
			}
		}
		if list, err := queue.OfRun(t.Context(), plain); err != nil || len(list) > 0 || len(box.told(plain)) > 0 {
			t.Errorf("a run without a sink has %+v, %v", list, err)
		}
		if _, err := second.Submit(t.Context(), engine.Submission{Definition: w.def, Workflow: "order", Vars: w.vars("order", nil), ReplyTo: "webhook:evil"}); err == nil {
			t.Error("a sink that the engine does not know is accepted")
		}
		second.drain(t)
	})
}

// A sink that is down for a day holds up no run. Its replies wait, and are delivered afterwards.
func TestRepliesWaitForTheirSink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := belled(t, bellFlow("", `"overdue"`))
		box := &postbox{got: map[status.RunID][]string{}, down: true}
		w.cfg = func(c *engine.Config) { c.Replies = box }
		n := w.start()
		run := w.posted(n, "webhook:shop")
		w.wait(n, run, status.RunSucceeded)
		time.Sleep(24 * time.Hour)
		queue, _ := replies.Of(w.mem)
		lag, err := queue.Lag(t.Context())
		if err != nil || len(lag) != 1 || lag[0].Waiting != 3 || time.Since(lag[0].Oldest) < 24*time.Hour {
			t.Errorf("lag %+v, %v", lag, err)
		}
		box.mu.Lock()
		box.down = false
		box.mu.Unlock()
		time.Sleep(10 * time.Minute)
		if got := box.told(run); !slices.Equal(got, []string{"1 accepted c", "2 started c", "3 succeeded c"}) {
			t.Errorf("the run has told %q", got)
		}
		n.drain(t)
	})
}
