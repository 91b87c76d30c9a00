package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/story"
	"github.com/saga-engine/engine/sdk"
)

// A lateSayer says something to a run just after an engine has read it to take it
// over, and before that engine commits.
type lateSayer struct {
	store.Full
	say func(run status.RunID)

	mu   sync.Mutex // protects the field below
	said map[status.RunID]bool
}

func (s *lateSayer) once(run status.RunID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.said[run] {
		s.said[run] = true
		s.say(run)
	}
}

func (s *lateSayer) Load(ctx context.Context, runs ...status.RunID) ([]store.Loaded, error) {
	loaded, err := s.Full.Load(ctx, runs...)
	for _, l := range loaded {
		s.once(l.Head.Run)
	}
	return loaded, err
}

func (s *lateSayer) Messages(ctx context.Context, run status.RunID, after store.MessageID, limit int) ([]store.Message, error) {
	messages, err := s.Full.Messages(ctx, run, after, limit)
	s.once(run)
	return messages, err
}

// startedAfter counts the verbs of a run's journal, and the attempts that started
// after the first of them.
func (w *world) startedAfter(run status.RunID) (starts, answers int) {
	w.t.Helper()
	wf := w.def.Workflow("order")
	state := machine.NewState()
	for _, rec := range w.records(run) {
		for _, f := range story.Facts(wf, state, rec) {
			switch {
			case f.Kind == story.FactVerb:
				answers++
			case f.Kind == story.FactAttemptStarted && answers > 0:
				starts++
			}
		}
		state.Apply(rec)
	}
	return starts, answers
}

// S85 (Verbs before work): a cancel that waits in the inbox of a run that nobody
// owns is obeyed before the first call, and a pause holds, whichever way an
// engine comes to own the run, and also if it is said while the engine takes it.
func TestVerbsBeforeTheClaim(t *testing.T) {
	takes := map[string]func(t *testing.T, n *testNode, run status.RunID){
		"found by a scan": func(*testing.T, *testNode, status.RunID) {},
		"taken over": func(t *testing.T, n *testNode, _ status.RunID) {
			if _, err := n.TakeOver(t.Context()); err != nil {
				t.Errorf("TakeOver = %v", err)
			}
		},
		"adopted": func(t *testing.T, n *testNode, run status.RunID) {
			if err := n.Adopt(t.Context(), run); err != nil {
				t.Errorf("Adopt = %v", err)
			}
		},
	}
	for name, take := range takes {
		for _, late := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, orderFlow)
					verbs := map[status.RunID]machine.Event{}
					var runs []status.RunID
					for i := range 12 {
						run := w.queued()
						runs = append(runs, run)
						verbs[run] = machine.Event(machine.CancelRequested{By: "ann"})
						if i%2 == 1 {
							verbs[run] = machine.PauseRequested{By: "ann"}
						}
					}
					say := func(run status.RunID) { w.post(run, store.MessageVerb, verbs[run], time.Time{}) }
					if late {
						w.store = &lateSayer{Full: store.Complete(w.mem), say: say, said: map[status.RunID]bool{}}
					} else {
						for _, run := range runs {
							say(run)
						}
					}
					w.opts.OnlyOwnRuns = name != "found by a scan"
					n := w.start()
					for _, run := range runs {
						take(t, n, run)
					}
					time.Sleep(5 * time.Second)
					for i, run := range runs {
						want := status.RunCancelled
						if i%2 == 1 {
							want = status.RunPaused
						}
						if s := w.check(run); s.Status() != want {
							t.Errorf("run %d is %v, want %v\n%s", run, s.Status(), want, w.transcript(run))
						}
						w.empty(run)
					}
					if calls := w.shop.called("reserve"); len(calls) > 0 {
						t.Errorf("the agent was called %d times", len(calls))
					}
					n.drain(t)
				})
			})
		}
	}
}

// S49: an engine that takes up no runs by itself has seen a message to a run that
// nobody owns and left the run to others. A takeover that is asked of it takes the
// run all the same.
func TestTakeOverOfARunLeftToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		run := w.queued()
		w.post(run, store.MessageVerb, machine.CancelRequested{By: "ann"}, time.Time{})
		w.opts.OnlyOwnRuns = true
		n := w.start()
		time.Sleep(100 * time.Millisecond)
		if s := w.check(run); s.Status() != status.RunQueued {
			t.Fatalf("run is %v although the engine takes up no runs", s.Status())
		}
		if taken, err := n.TakeOver(t.Context()); taken != 1 || err != nil {
			t.Errorf("TakeOver = %d, %v, want 1", taken, err)
		}
		w.wait(n, run, status.RunCancelled)
		n.drain(t)
	})
}

// S19 (Verbs before work): the same of a run whose owner has died, at the
// takeover by another engine and by the next membership; what was done before
// is undone.
func TestVerbsBeforeTheTakeover(t *testing.T) {
	for name, c := range map[string]struct {
		verb machine.Event
		want status.RunState
	}{
		"cancel": {machine.CancelRequested{By: "ann"}, status.RunCancelled},
		"pause":  {machine.PauseRequested{By: "ann"}, status.RunPaused},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, orderFlow)
				run := w.orphaned(status.RunRunning, "charge", block)
				w.shop.on("charge", nil)
				w.post(run, store.MessageVerb, c.verb, time.Time{})
				charged := len(w.shop.called("charge"))
				n := w.start()
				time.Sleep(time.Minute)
				if s := w.check(run); s.Status() != c.want {
					t.Errorf("run is %v, want %v\n%s", s.Status(), c.want, w.transcript(run))
				}
				if got := len(w.shop.called("charge")); got != charged {
					t.Errorf("charge was called %d times after the %s", got-charged, name)
				}
				if got := w.shop.called("book"); len(got) > 0 {
					t.Errorf("book was called %d times", len(got))
				}
				w.empty(run)
				n.drain(t)
			})
		})
	}
}

// S85: messages that wait at a claim are decided in the order in which they
// arrived, however many there are and whatever they say, and nothing starts
// before the last of them.
func TestMessagesBeforeTheClaimInOrder(t *testing.T) {
	for _, many := range []int{3, 255, 256, 257, 600} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, orderFlow)
			run := w.queued()
			var ids []store.MessageID
			for i := range many {
				var e machine.Event = machine.PauseRequested{By: "ann"}
				if i%2 == 1 {
					e = machine.ResumeRequested{By: "ann"}
				}
				ids = append(ids, w.post(run, store.MessageVerb, e, time.Time{}))
			}
			last := w.post(run, store.MessageVerb, machine.CancelRequested{By: "ann"}, time.Time{})
			ids = append(ids, last)
			n := w.start()
			w.wait(n, run, status.RunCancelled)
			var answered []store.MessageID
			for _, r := range w.records(run) {
				if ask, _, ok := machine.Asked(r.Event()); ok {
					answered = append(answered, store.MessageID(ask))
				}
			}
			if len(answered) != len(ids) {
				t.Fatalf("%d answers to %d messages", len(answered), len(ids))
			}
			for i := range ids {
				if answered[i] != ids[i] {
					t.Fatalf("answer %d is of message %d, want %d", i, answered[i], ids[i])
				}
			}
			if calls := w.shop.called("reserve"); len(calls) > 0 {
				t.Errorf("%d messages: the agent was called %d times", many, len(calls))
			}
			n.drain(t)
		})
	}
}

// An answer and a verb wait at a takeover: what the answer makes possible does not
// start before the verb is decided, and the answer counts. A verb that came
// before the answer is decided before it.
func TestAnswerAndVerbAtATakeover(t *testing.T) {
	for name, verbFirst := range map[string]bool{"answer, then verb": false, "verb, then answer": true, "answer, posted after the verb": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, orderFlow)
				run := w.orphaned(status.RunRunning, "charge", block)
				answer := func() { w.post(run, store.MessageReply, found(t, w, 1, 1, "elsewhere"), time.Now()) }
				verb := func() {
					w.post(run, store.MessageVerb, machine.CancelRequested{NoCompensate: true, By: "ann"}, time.Time{})
				}
				arrived := time.Now()
				switch {
				case name == "answer, posted after the verb": // what counts is when it reached an engine
					time.Sleep(time.Millisecond)
					verb()
					w.post(run, store.MessageReply, found(t, w, 1, 1, "elsewhere"), arrived)
				case verbFirst:
					verb()
					time.Sleep(time.Millisecond)
					answer()
				default:
					answer()
					time.Sleep(time.Millisecond)
					verb()
				}
				n := w.start()
				w.wait(n, run, status.RunCancelled)
				if starts, answers := w.startedAfter(run); starts > 0 || answers != 1 {
					t.Errorf("%d attempts started after %d verbs\n%s", starts, answers, w.transcript(run))
				}
				if calls := w.shop.called("book"); len(calls) > 0 {
					t.Errorf("book was called %d times", len(calls))
				}
				var order []string
				for _, rec := range w.records(run) {
					switch rec.Event().(type) {
					case machine.AttemptOK:
						order = append(order, "answer")
					case machine.CancelRequested:
						order = append(order, "verb")
					}
				}
				if n := len(order); n < 2 || (order[n-1] == "answer") != verbFirst {
					t.Errorf("decided in the order %v", order)
				}
				w.empty(run)
				n.drain(t)
			})
		})
	}
}

// A store that does not hand out an inbox keeps a run from being taken over, as
// long as that lasts: what waits there may be a cancel.
func TestInboxThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		run := w.queued()
		w.post(run, store.MessageVerb, machine.CancelRequested{By: "ann"}, time.Time{})
		store := &muteInbox{Full: store.Complete(w.mem)}
		store.set(true)
		w.store, w.opts.OnlyOwnRuns = store, true
		n := w.start()
		done := make(chan error, 1)
		go func() { done <- n.Adopt(t.Context(), run) }()
		time.Sleep(10 * time.Second)
		if calls := w.shop.called("reserve"); len(calls) > 0 {
			t.Errorf("the agent was called %d times", len(calls))
		}
		store.set(false)
		if err := <-done; err != nil {
			t.Errorf("Adopt = %v", err)
		}
		w.wait(n, run, status.RunCancelled)
		n.drain(t)
	})
}

type muteInbox struct {
	store.Full
	mu   sync.Mutex // protects the field below
	mute bool
}

func (s *muteInbox) set(mute bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mute = mute
}

func (s *muteInbox) Messages(ctx context.Context, run status.RunID, after store.MessageID, limit int) ([]store.Message, error) {
	s.mu.Lock()
	mute := s.mute
	s.mu.Unlock()
	if mute {
		return nil, errors.New("cannot be read now")
	}
	return s.Full.Messages(ctx, run, after, limit)
}

// Claiming runs to which nothing was said reads no inbox.
func TestClaimWithoutMessagesReadsNoInbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		store := &countStore{Full: store.Complete(w.mem)}
		w.store = store
		var runs []status.RunID
		for range 20 {
			runs = append(runs, w.queued())
		}
		n := w.start()
		for _, run := range runs {
			w.wait(n, run, status.RunSucceeded)
		}
		if got := store.count("Messages"); got > 0 {
			t.Errorf("inboxes were read %d times", got)
		}
		n.drain(t)
	})
}

// A retry that waits at a takeover starts in the row that answers it: verbs that
// ask for work are not held up.
func TestRetryAtATakeover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, strings.Replace(orderFlow, `deadline = "1h"`, "deadline = \"1h\"\n  compensation { mode = \"manual\" }", 1))
		run := w.orphaned(status.RunParked, "charge", func(context.Context, int) error {
			return &sdk.Failure{Code: "card_declined", Permanent: true}
		})
		w.shop.on("charge", nil)
		w.post(run, store.MessageVerb, machine.RetryRequested{Step: "charge", By: "ann"}, time.Time{})
		n := w.start()
		time.Sleep(time.Minute)
		if s := w.check(run); s.Status() != status.RunSucceeded {
			t.Errorf("run is %v, want succeeded\n%s", s.Status(), w.transcript(run))
		}
		if calls := w.shop.called("charge"); len(calls) != 2 {
			t.Errorf("charge was called %d times, want 2", len(calls))
		}
		n.drain(t)
	})
}

// A deafStore does not tell engines that messages wait for their runs.
type deafStore struct{ store.Full }

func (s deafStore) Tick(ctx context.Context, e store.EngineID, lease time.Duration, limit int) (store.Tick, error) {
	tick, err := s.Full.Tick(ctx, e, lease, limit)
	tick.Inbox = nil
	return tick, err
}

// S28 (What counts): before an engine lets an attempt expire that the former owner
// started, it looks for an answer that reached another engine in time, although
// nothing has told it of one. The answer counts from when it arrived.
func TestAnswerInTimeIsReadBeforeTheExpiry(t *testing.T) {
	for name, late := range map[string]bool{"in time": false, "late": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, orderFlow)
				run := w.orphaned(status.RunRunning, "book", block)
				began := w.shop.called("book")[0]
				w.store = deafStore{store.Complete(w.mem)}
				second := w.start()
				time.Sleep(2 * w.opts.Lease) // it has taken the run over
				at := began.completeBy.Add(-time.Millisecond)
				if late {
					at = began.completeBy.Add(time.Millisecond)
				}
				time.Sleep(time.Until(at))
				w.post(run, store.MessageReply, found(t, w, 2, 1, "elsewhere"), time.Now())
				time.Sleep(time.Minute)
				s := w.check(run)
				counted := s.Status() == status.RunSucceeded
				if counted == late {
					t.Errorf("the run is %v\n%s", s.Status(), w.transcript(run))
				}
				if counted && output(t, s, "id") != "elsewhere" {
					t.Errorf("output = %q", output(t, s, "id"))
				}
				second.drain(t)
			})
		})
	}
}
