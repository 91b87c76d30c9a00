package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/replies"
	"github.com/saga-engine/engine/sdk"
)

// A clerk is an agent that takes replies. It notes each reply once, by its idempotency key.
type clerk struct {
	agent *sdk.Agent

	mu    sync.Mutex
	heard []string
	keys  map[string]bool
	calls int
	fail  func(n int) error // nil = never
}

type toldIn struct {
	Run         string `agent:"run"`
	Seq         int    `agent:"seq"`
	Status      string `agent:"status"`
	Workflow    string `agent:"workflow"`
	Correlation string `agent:"correlation,optional"`
	At          string `agent:"at"`
}

func newClerk() *clerk {
	c := &clerk{keys: map[string]bool{}, agent: sdk.New("clerk", "1.0.0")}
	sdk.Action(c.agent, "told", c.told, sdk.Idempotent())
	sdk.Action(c.agent, "paid", func(context.Context, *sdk.Call, shopIn) (sdk.None, error) { return sdk.None{}, nil })
	return c
}

func (c *clerk) told(_ context.Context, call *sdk.Call, in toldIn) (sdk.None, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	if c.fail != nil {
		if err := c.fail(c.calls); err != nil {
			return sdk.None{}, err
		}
	}
	if !c.keys[call.IdempotencyKey] {
		c.keys[call.IdempotencyKey] = true
		c.heard = append(c.heard, fmt.Sprintf("%s %d %s %s %s", in.Run, in.Seq, in.Status, in.Workflow, in.Correlation))
	}
	if _, err := time.Parse(time.RFC3339Nano, in.At); err != nil || in.Run != call.Run {
		return sdk.None{}, fmt.Errorf("a reply of run %q in a call of run %q at %q", in.Run, call.Run, in.At)
	}
	return sdk.None{}, nil
}

// wantHeard checks what a run has told the clerk, each reply once and in order.
func (c *clerk) wantHeard(t *testing.T, run status.RunID, want ...string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	var got, lines []string
	for i, text := range want {
		lines = append(lines, fmt.Sprintf("r-%s %d %s order c", base36(run), i+1, text))
	}
	for _, text := range c.heard {
		if strings.HasPrefix(text, "r-"+base36(run)+" ") {
			got = append(got, text)
		}
	}
	if !slices.Equal(got, lines) {
		t.Errorf("the clerk heard %q, want %q", got, lines)
	}
}

// clerked returns a world with a clerk.
func clerked(t *testing.T) (*world, *clerk) {
	w := newWorld(t, orderFlow)
	c := newClerk()
	w.inv.agents["clerk"] = c.agent
	w.def = define(t, bellFlow("", `"overdue"`)+"\nagent \"clerk\" {}\n", w.shop.agent, newBell().agent, c.agent)
	return w, c
}

// An action of an agent is a sink: it gets each reply, in order, although calls fail, their answers are
// lost and the engine is killed. The idempotency key shows that a call is repeated (S67).
func TestAgentTakesReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, c := clerked(t)
		c.fail = func(n int) error {
			if n%3 == 1 {
				return errors.New("busy")
			}
			return nil
		}
		var lost atomic.Int64 // answers of the clerk; each fourth one is lost
		w.inv.after = func(call invoke.Call, reply sdk.Reply) (sdk.Reply, bool) {
			if call.Agent.Name == "clerk" {
				return reply, lost.Add(1)%4 != 3
			}
			return reply, true
		}
		w.shop.on("book", declined("no_carrier"))
		first := w.start()
		run, other := w.posted(first, "agent:clerk.told"), w.posted(first, "agent:clerk.told")
		time.Sleep(10 * time.Millisecond)
		first.kill(t)
		second := w.start()
		w.wait(second, run, status.RunCompensated)
		w.wait(second, other, status.RunCompensated)
		time.Sleep(2 * time.Hour)
		c.wantHeard(t, run, "accepted", "started", "compensated")
		c.wantHeard(t, other, "accepted", "started", "compensated")
		if n := lost.Load(); c.calls <= 6 || n < 3 {
			t.Errorf("%d calls, %d answers: nothing failed in this test", c.calls, n)
		}
		second.drain(t)
	})
}

// A lacking Invoker lacks an agent.
type lacking struct {
	*direct
	agent string
}

func (l lacking) Check(_ context.Context, spec invoke.AgentSpec) error {
	if spec.Plugin == l.agent {
		return errors.New("agent " + l.agent + " is not installed")
	}
	return nil
}

// An engine without the agent leaves the replies to an engine that has it. Until then they wait, and say
// why.
func TestAgentOfAnotherEngineTakesReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, c := clerked(t)
		w.cfg = func(cfg *engine.Config) { cfg.Invoker = lacking{direct: w.inv, agent: "clerk"} }
		first := w.start()
		run := w.posted(first, "agent:clerk.told")
		w.wait(first, run, status.RunSucceeded)
		time.Sleep(5 * time.Minute)
		box, _ := replies.Of(w.mem)
		if list, err := box.OfRun(t.Context(), run); err != nil || list[0].Done || !strings.Contains(list[0].Why, "agent clerk is not installed") {
			t.Errorf("replies without the agent: %+v, %v", list, err)
		}
		w.cfg = nil
		second := w.start()
		time.Sleep(5 * time.Minute)
		c.wantHeard(t, run, "accepted", "started", "succeeded")
		first.drain(t)
		second.drain(t)
	})
}

// A sink that is no action for replies is refused at the submission, with the reason. Nothing is stored.
func TestActionsThatTakeNoReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := clerked(t)
		n := w.start()
		for sink, want := range map[string]string{
			"agent:clerc.told":   `the definition has no agent "clerc". Did you mean "clerk"?`,
			"agent:clerk.tolt":   `agent "clerk" has no action "tolt". Did you mean "told"?`,
			"agent:clerk.paid":   `action "paid" of agent "clerk" takes no replies: it has no argument "run"`,
			"agent:shop.release": `action "release" of agent "shop" takes no replies`,
			"agent:clerk":        "is no reply sink",
		} {
			s := engine.Submission{Definition: w.def, Workflow: "order", Vars: w.vars("order", nil), ReplyTo: sink}
			if _, err := n.Submit(t.Context(), s); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", sink, err, want)
			}
			if _, err := engine.Enqueue(t.Context(), engine.Config{Store: w.mem}, s); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("enqueue %s: %v, want %q", sink, err, want)
			}
		}
		if rows, err := w.mem.Runs(t.Context(), store.RunFilter{}); err != nil || len(rows) > 0 {
			t.Errorf("runs of refused submissions: %+v, %v", rows, err)
		}
		n.drain(t)
	})
}

// A submission may set its priority, from 0 to 100. Without it the workflow decides (S71).
func TestPriorityOfASubmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := clerked(t)
		w.def = define(t, bellFlow("priority = 70", `"overdue"`), w.shop.agent, newBell().agent)
		n := w.start()
		of := func(p *int) (int, error) {
			s, err := n.Submit(t.Context(), engine.Submission{Definition: w.def, Workflow: "order", Vars: w.vars("order", nil), Priority: p})
			if err != nil {
				return 0, err
			}
			return w.wait(n, s.Run, status.RunSucceeded).Run().Line.Priority(), nil
		}
		for _, given := range []int{0, 90, 100} {
			if got, err := of(&given); err != nil || got != given {
				t.Errorf("priority %d, %v, want %d", got, err, given)
			}
		}
		if got, err := of(nil); err != nil || got != 70 {
			t.Errorf("priority %d, %v, want that of the workflow", got, err)
		}
		for _, given := range []int{-1, 101} {
			if _, err := of(&given); err == nil || !strings.Contains(err.Error(), "priority is from 0 to 100") {
				t.Errorf("priority %d: %v", given, err)
			}
		}
		n.drain(t)
	})
}
