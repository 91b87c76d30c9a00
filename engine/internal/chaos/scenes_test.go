package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/operator"
	"github.com/saga-engine/engine/engine/store"
)

// A scene is a way to make an engine pass certain places. It ends when the
// engine has died at the place and another one has brought everything to rest.
type scene struct {
	passes []string // what the places' names contain
	play   func(t *testing.T, w *World, point string)
}

// scenes are tried in order; the last one is the ordinary life of a run.
var scenes = []scene{
	{[]string{"/Started", "store.Submit", "store.PutDefinition", "submit.prepared"}, playApply},
	{[]string{"store.Leave", "drain.begun", "drain.flushed"}, playTerminate},
	{[]string{"inbox.read"}, verbOn(slow, func(r Run) machine.Event { return machine.CancelRequested{By: "test", Reason: "test"} })},
	{[]string{"store.Fence", "store.Pass"}, playTakeover},
	{[]string{"store.Hold"}, playHands},
	{[]string{"store.Absolve"}, playAbsolve},
	{[]string{"/EngineLost"}, playLost},
	{[]string{"store.Delivered"}, playHook},
	{[]string{"notify.submitted", "store.Announced"}, playNotify},
	{[]string{"store.KeepSnapshot"}, playLong},
	{[]string{"event.claimed", "event.submitted", "event.kept", "event.removed"}, playEvents},
	{[]string{"store.ResetGoal"}, playReset},
	{[]string{"select.submitted"}, playSelect},
	{[]string{"tick.submitted"}, playTick},
	{[]string{"intake.submitted"}, playIntake},
	{[]string{"store.KeepLate"}, playLate},
	{[]string{"store.Post"}, playCommand},
	{[]string{"store.Discard"}, playDiscard},
	{[]string{"/CancelRequested"}, verbOn(slow, func(r Run) machine.Event { return machine.CancelRequested{By: "test", Reason: "test"} })},
	{[]string{"/PauseRequested"}, verbOn(slow, func(r Run) machine.Event { return machine.PauseRequested{By: "test"} })},
	{[]string{"/ResumeRequested"}, playResume},
	{[]string{"/RetryRequested"}, verbOn(parks, func(r Run) machine.Event { return machine.RetryRequested{By: "test"} })},
	{[]string{"/CompensateRequested"}, verbOn(parks, func(r Run) machine.Event { return machine.CompensateRequested{By: "test"} })},
	{[]string{"/SettleRequested"}, verbOn(doubts, func(r Run) machine.Event {
		return machine.SettleRequested{Step: "s1", As: machine.SettleNotDone, By: "test", Reason: "test"}
	})},
	{[]string{"/SignalReceived"}, verbOn(waits, func(r Run) machine.Event { return machine.SignalReceived{Name: "go", ID: "1", By: "test"} })},
	{[]string{"child.submitted", "child.ended", "child.undo_posted"}, playFamily},
	{[]string{"/Refused"}, playRefused},
	{[]string{"/AttemptDeferred"}, playDeferred},
	{[]string{"/SlotsFreed"}, playCrowded},
	{nil, playLife},
}

func sceneOf(point string) *scene {
	for i, s := range scenes {
		if s.passes == nil {
			return &scenes[i]
		}
		for _, p := range s.passes {
			if strings.HasSuffix(point, p) || strings.Contains(point, p+".") {
				return &scenes[i]
			}
		}
	}
	return nil
}

// everything makes an engine pass most places: results, failures, unknown
// outcomes, lookups, checkpoints, waits for a signal, and the undo of it all.
func everything(url string) Flow {
	return flowOf(url, head,
		flowStep{Step{Name: "s0", Action: "do"}, "refuse", "refuse", ""},
		flowStep{Step{Name: "s1", Action: "once", After: []int{0}}, "lose", "lose", ""},
		flowStep{Step{Name: "s2", Action: "many", After: []int{0}}, "lose", "", ""},
		flowStep{Step{Name: "s3", Action: "do", After: []int{0}, Keys: []string{"a", "b", "c"}}, "linger:50ms", "", ""},
		flowStep{Step{Name: "s4", Action: "once", After: []int{1}, Gate: gateSignal}, "vanish", "", ""},
		flowStep{Step{Name: "s5", Action: "do", After: []int{1, 2, 3}}, "hang", "", ""},
		flowStep{Step{Name: "s6", Action: "do", After: []int{4, 5}}, "deny", "", ""},
	)
}

// slow takes long enough that a verb can be sent while it runs.
func slow(url string) Flow {
	return flowOf(url, head,
		flowStep{Step{Name: "s0", Action: "do"}, "", "", ""},
		flowStep{Step{Name: "s1", Action: "do", After: []int{0}}, "linger:700ms", "", ""},
		flowStep{Step{Name: "s2", Action: "do", After: []int{1}}, "linger:700ms", "", ""},
	)
}

// parks is parked after its attempts, and succeeds in a fresh round of attempts.
func parks(url string) Flow {
	return flowOf(url, head,
		flowStep{Step{Name: "s0", Action: "do"}, "", "", ""},
		flowStep{Step{Name: "s1", Action: "do", After: []int{0}}, "refuse,refuse,refuse,refuse,refuse,refuse", "", "      on_exhausted = \"park\"\n"},
	)
}

// doubts is parked because the outcome of its second step is unknown.
func doubts(url string) Flow {
	return flowOf(url, head,
		flowStep{Step{Name: "s0", Action: "do"}, "", "", ""},
		flowStep{Step{Name: "s1", Action: "blind", After: []int{0}}, "vanish", "", ""},
		flowStep{Step{Name: "s2", Action: "do", After: []int{1}}, "", "", ""},
	)
}

// waits has two calls and a step that waits for a signal.
func waits(url string) Flow {
	withWait := func(b *strings.Builder, url string) {
		head(b, url)
		b.WriteString("  step \"w\" {\n    wait { signal = \"go\" }\n  }\n")
	}
	return flowOf(url, withWait,
		flowStep{Step{Name: "s0", Action: "do"}, "", "", ""},
		flowStep{Step{Name: "s1", Action: "do", After: []int{0}}, "linger:700ms", "", ""},
	)
}

// long has a loop whose rows are together so large that its run gets snapshots.
func long(url string) Flow {
	withLoop := func(b *strings.Builder, url string) {
		head(b, url)
		fmt.Fprintf(b, "  step \"w\" {\n    value = { n = try(self.previous.n + 1, 1), text = %q }\n    repeat { max_iterations = 10000 }\n  }\n", strings.Repeat("x", 60_000))
	}
	return flowOf(url, withLoop,
		flowStep{Step{Name: "s0", Action: "do"}, "", "", ""},
		flowStep{Step{Name: "s1", Action: "do", After: []int{0}}, "linger:700ms", "", ""},
	)
}

// playLong lets an engine die while it stores a snapshot of a long run.
func playLong(t *testing.T, w *World, point string) {
	w.Submit(long(w.URL), 1)
	rescue(w, w.StartEngine("a", kill(point)), point)
}

// rescue waits for the first engine to die at the place and lets another one
// finish.
func rescue(w *World, a *Process, point string) {
	w.T.Helper()
	w.Await("the engine to die at "+point, time.Minute, a.Ended)
	w.Note("%s is dead", a.Name)
	w.StartEngine("b", "")
	w.AwaitRest(90 * time.Second)
}

func kill(point string) string { return point + "=kill" }

// crowd submits what every place is passed by, and what the seed makes of it:
// up to two random workflows beside.
func (w *World) crowd() {
	w.T.Helper()
	w.Submit(everything(w.URL), 2)
	for range w.Seed % 3 {
		w.Submit(NewFlow(w.Rng, w.URL), 1)
	}
}

// playLife is the ordinary life of runs.
func playLife(t *testing.T, w *World, point string) {
	w.crowd()
	rescue(w, w.StartEngine("a", kill(point)), point)
}

// playTakeover has an engine die while it takes over from one that died.
func playTakeover(t *testing.T, w *World, point string) {
	w.crowd()
	if !w.Embedded() {
		x := w.StartEngine("x", "")
		w.awaitCalls(3)
		x.Kill()
		w.Note("x is dead")
	}
	rescue(w, w.StartEngine("a", kill(point)), point)
}

// awaitCalls waits until the far side has seen n calls.
func (w *World) awaitCalls(n int) {
	w.T.Helper()
	w.Await(fmt.Sprintf("%d calls", n), 20*time.Second, func() bool {
		calls, err := w.Ledger.Count(w.T.Context())
		return err == nil && calls >= n
	})
}

// playTerminate has an engine die on its way out.
func playTerminate(t *testing.T, w *World, point string) {
	w.Submit(slow(w.URL), 2)
	a := w.StartEngine("a", kill(point))
	w.awaitCalls(1)
	if err := a.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	rescue(w, a, point)
}

// playLate lets an engine die while it stores a late reply. The engine was frozen while
// its agent worked, and another engine went on with the run.
func playLate(t *testing.T, w *World, point string) {
	w.Submit(slow(w.URL), 1)
	a := w.StartEngine("a", kill(point))
	w.awaitCalls(2)
	if err := a.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	w.Note("a is frozen")
	w.StartEngine("b", "")
	w.AwaitRest(30 * time.Second)
	time.Sleep(stepTimeout) // before its complete-by the answer would go to the other engine
	if err := a.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	w.Note("a thaws")
	w.Await("the engine to die at "+point, time.Minute, a.Ended)
}

// playHook lets an engine die while it pushes an alert.
func playHook(t *testing.T, w *World, point string) {
	w.Submit(parks(w.URL), 1)
	a := w.StartEngine("a", kill(point), "--on-alert", "/bin/true")
	rescue(w, a, point)
}

// playCrowded lets runs wait for the slots of an agent.
func playCrowded(t *testing.T, w *World, point string) {
	crowded := func(b *strings.Builder, url string) {
		var open strings.Builder
		head(&open, url)
		b.WriteString(strings.Replace(open.String(), "max_concurrency = 64", "max_concurrency = 1", 1))
	}
	w.Submit(flowOf(w.URL, crowded,
		flowStep{Step{Name: "s0", Action: "do", Keys: []string{"a", "b", "c"}}, "linger:100ms", "", ""},
		flowStep{Step{Name: "s1", Action: "do", After: []int{0}}, "", "", ""},
	), 3)
	rescue(w, w.StartEngine("a", kill(point)), point)
}

// playDeferred removes the agent's binary, and then lets the agent die: calls cannot be
// sent until the binary is back.
func playDeferred(t *testing.T, w *World, point string) {
	agents, err := filepath.Glob(filepath.Join(w.bins.Dir, "engine-agent-*"))
	if err != nil || len(agents) == 0 {
		t.Fatalf("agents: %v, %v", agents, err)
	}
	own := *w.bins
	own.Dir = t.TempDir()
	w.bins = &own
	install := func() {
		for _, from := range agents {
			if err := os.Link(from, filepath.Join(own.Dir, filepath.Base(from))); err != nil {
				t.Fatal(err)
			}
		}
	}
	install()
	w.Submit(flowOf(w.URL, head,
		flowStep{Step{Name: "s0", Action: "do", Keys: []string{"a", "b"}}, "slow:1s", "", ""},
		flowStep{Step{Name: "s1", Action: "do", After: []int{0}}, "die", "", ""},
		flowStep{Step{Name: "s2", Action: "do", After: []int{1}}, "", "", ""},
	), 3)
	a := w.StartEngine("a", kill(point))
	w.awaitCalls(1)
	for _, from := range agents {
		if err := os.Remove(filepath.Join(own.Dir, filepath.Base(from))); err != nil {
			t.Fatal(err)
		}
	}
	w.Await("the engine to die at "+point, time.Minute, a.Ended)
	w.Note("%s is dead", a.Name)
	install()
	w.StartEngine("b", "")
	w.AwaitRest(90 * time.Second)
}

// say sends a verb to a run as another process would.
func (w *World) say(r Run, e machine.Event) {
	w.T.Helper()
	op := &operator.Operator{Store: w.store, Defs: w.defs}
	if _, err := op.Ask(w.T.Context(), r.ID, e, "test"); err != nil {
		w.T.Fatalf("%T to %s: %v", e, r.Name, err)
	}
	w.Note("%T said to %s", e, r.Name)
}

// verbOn sends a verb to a run of the flow once the run would accept it. The engine that
// receives the verb dies. A paused run is resumed in the end.
func verbOn(flow func(string) Flow, verb func(Run) machine.Event) func(*testing.T, *World, string) {
	return func(t *testing.T, w *World, point string) {
		r := w.Submit(flow(w.URL), 1)[0]
		a := w.StartEngine("a", kill(point))
		op := &operator.Operator{Store: w.store, Defs: w.defs}
		w.awaitCalls(1)
		w.Await("the verb to apply", 30*time.Second, func() bool { return op.Try(t.Context(), r.ID, verb(r)) == nil })
		w.say(r, verb(r))
		w.Await("the engine to die at "+point, time.Minute, a.Ended)
		w.Note("a is dead")
		w.StartEngine("b", "")
		if _, ok := verb(r).(machine.PauseRequested); ok {
			w.Await("the pause", 30*time.Second, func() bool { return op.Try(t.Context(), r.ID, machine.ResumeRequested{}) == nil })
			w.say(r, machine.ResumeRequested{By: "test"})
		}
		w.AwaitInbox(r)
		w.AwaitRest(90 * time.Second)
	}
}

// AwaitInbox waits until every verb to a run has been answered.
func (w *World) AwaitInbox(r Run) {
	w.T.Helper()
	w.Await("the inbox to be empty", 60*time.Second, func() bool {
		m, err := w.store.Messages(w.T.Context(), r.ID, 0, 10)
		return err == nil && len(m) == 0
	})
}

func playResume(t *testing.T, w *World, point string) {
	r := w.Submit(slow(w.URL), 1)[0]
	a := w.StartEngine("a", kill(point))
	w.awaitCalls(1)
	w.say(r, machine.PauseRequested{By: "test"})
	op := &operator.Operator{Store: w.store, Defs: w.defs}
	w.Await("the pause", 30*time.Second, func() bool { return op.Try(t.Context(), r.ID, machine.ResumeRequested{}) == nil })
	w.say(r, machine.ResumeRequested{By: "test"})
	rescue(w, a, point)
	w.AwaitInbox(r)
}

// playRefused posts a verb that does not apply, without the check of the sender.
func playRefused(t *testing.T, w *World, point string) {
	r := w.Submit(slow(w.URL), 1)[0]
	a := w.StartEngine("a", kill(point))
	w.awaitCalls(1)
	w.post(r, machine.RetryRequested{By: "test"})
	rescue(w, a, point)
	w.AwaitInbox(r)
}

// playDiscard posts a verb to a run that has ended.
func playDiscard(t *testing.T, w *World, point string) {
	r := w.Submit(flowOf(w.URL, head, flowStep{Step{Name: "s0", Action: "do"}, "", "", ""}), 1)[0]
	a := w.StartEngine("a", kill(point))
	w.AwaitRest(30 * time.Second)
	w.post(r, machine.CancelRequested{By: "test"})
	rescue(w, a, point)
	w.AwaitInbox(r)
}

// post puts a verb into a run's inbox without asking whether it applies.
func (w *World) post(r Run, e machine.Event) {
	w.T.Helper()
	data, err := journal.EncodeMessage(nil, r.ID, e)
	if err != nil {
		w.T.Fatal(err)
	}
	if _, err := w.store.Post(w.T.Context(), store.Message{Run: r.ID, Kind: store.MessageVerb, By: "test", Data: data}); err != nil {
		w.T.Fatal(err)
	}
	w.Note("%T posted to %s", e, r.Name)
}

// playCommand kills the command of an operator around its one durable act, and
// repeats it.
func playCommand(t *testing.T, w *World, point string) {
	r := w.Submit(slow(w.URL), 1)[0]
	w.StartEngine("a", "")
	w.awaitCalls(1)
	if out, code := w.CommandAt(kill(point), "cancel", r.Name, "--reason", "test"); code == 0 {
		t.Fatalf("the command lived: %s", out)
	}
	// The engine may have received the first verb; then the second one is refused.
	w.Command("cancel", r.Name, "--reason", "test")
	w.AwaitRest(60 * time.Second)
	w.AwaitInbox(r)
}

// playApply kills `engine apply` around the acceptance of its run, and repeats
// it under the same name (I1).
func playApply(t *testing.T, w *World, point string) {
	f := everything(w.URL)
	path := w.write("apply/w.hcl", f.Source)
	if out, code := w.CommandAt(kill(point), "apply", path, "--run-id", "first"); code != -1 {
		t.Fatalf("the command was not killed: exit %d\n%s", code, out)
	}
	if !w.Embedded() { // where apply has to hold the file itself
		w.StartEngine("b", "")
	}
	out, code := w.Command("apply", path, "--run-id", "first")
	if code != 4 {
		t.Fatalf("apply again: exit %d\n%s", code, out)
	}
	row, err := store.Complete(w.store).Find(t.Context(), "first")
	if err != nil {
		t.Fatalf("an accepted run is lost: %v (I1)", err)
	}
	w.adopt(Run{ID: row.Run, Name: row.Name, Flow: f})
	w.AwaitRest(30 * time.Second)
}
