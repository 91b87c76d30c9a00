package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/sdk"
)

// importFlow is one step whose agent says how far it has come.
const importFlow = `
workflow "import" {
  deadline = "1h"
  step "load" {
    action  = agent.shop.load
    timeout = "1m"
    retry {
      max_attempts     = 3
      initial_interval = "1s"
      jitter           = "none"
    }
    input { name = "load" }
    compensation = "none"
  }
}
workflow "watched" {
  deadline = "1h"
  step "load" {
    action            = agent.shop.load
    timeout           = "10m"
    heartbeat_timeout = "10s"
    retry { max_attempts = 2 }
    input { name = "load" }
    compensation = "none"
  }
}
workflow "once" {
  deadline = "1h"
  step "load" {
    action  = agent.shop.load_once
    timeout = "1m"
    input { name = "load" }
    compensation = "none"
  }
}`

// importer makes a world whose shop can also load, with checkpoints.
func importer(t *testing.T, do func(ctx context.Context, call invoke.Call) (sdk.Reply, bool)) *world {
	t.Helper()
	s := newShop()
	sdk.Action(s.agent, "load", s.do, sdk.Idempotent(), sdk.Checkpoints(), sdk.Heartbeats())
	sdk.Action(s.agent, "load_once", s.do, sdk.Checkpoints(), sdk.Heartbeats())
	w := newWorld(t, oneStep)
	w.shop = s
	w.inv.agents["shop"] = s.agent
	w.def = define(t, importFlow, s.agent)
	w.inv.around = do
	return w
}

// progressed returns the checkpoints in a run's journal.
func (w *world) progressed(run status.RunID) []string {
	w.t.Helper()
	var list []string
	for _, rec := range w.records(run) {
		if p, ok := rec.Event().(machine.AttemptProgress); ok {
			list = append(list, fmt.Sprintf("%d %s", p.Number, p.Blob))
		}
	}
	return list
}

// S81, S82, S83: what an agent says it has done is in the journal before its
// answer is, in order, and the next attempt gets the last of it.
func TestCheckpointsReachTheNextAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		w := importer(t, func(_ context.Context, call invoke.Call) (sdk.Reply, bool) {
			last := "none"
			if c := call.Request.Checkpoint; c != nil {
				last = fmt.Sprintf("%d %s", c.Number, c.Blob)
			}
			got = append(got, last)
			switch call.Request.Attempt {
			case 1: // slowly: each is stored
				for n := 1; n <= 3; n++ {
					call.OnProgress(invoke.Progress{Number: n, Blob: []byte{byte('a' + n - 1)}})
					time.Sleep(time.Second)
				}
				return sdk.Reply{Outcome: sdk.OutcomeUnknown, Code: sdk.CodeAgentLost}, true
			case 2: // faster than anything can be stored, and answers at once
				for n := 4; n <= 100; n++ {
					call.OnProgress(invoke.Progress{Number: n, Blob: []byte("fast")})
				}
				return sdk.Reply{Outcome: sdk.OutcomeUnknown, Code: sdk.CodeAgentLost}, true
			}
			return sdk.Reply{}, false
		})
		n := w.start()
		run := w.submit(n, "import", nil)
		w.wait(n, run, status.RunSucceeded)
		if want := []string{"none", "3 c", "100 fast"}; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("attempts got %v, want %v", got, want)
		}
		list := w.progressed(run)
		if len(list) < 5 || len(list) > 20 || fmt.Sprint(list[:3]) != "[1 a 2 b 3 c]" || list[len(list)-1] != "100 fast" {
			t.Errorf("journal has %v, want 1 to 3, few of the fast ones, and the last", list)
		}
		n.drain(t)
	})
}

// I13: a checkpoint is sealed when there is a key: it may hold what the agent was
// told in confidence, and only the agent knows.
func TestCheckpointsAreSealed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := importer(t, func(_ context.Context, call invoke.Call) (sdk.Reply, bool) {
			call.OnProgress(invoke.Progress{Number: 1, Blob: []byte("canary")})
			time.Sleep(time.Second)
			return sdk.Reply{}, false
		})
		sealer := newSealer(t, newKey(t))
		w.cfg = func(c *engine.Config) { c.Sealer = sealer }
		n := w.start()
		run := w.submit(n, "import", nil)
		w.wait(n, run, status.RunSucceeded)
		if list := w.progressed(run); len(list) != 1 || list[0] != "1 canary" {
			t.Errorf("journal has %v, want the checkpoint", list)
		}
		if bytes.Contains(w.stored(run), []byte("canary")) {
			t.Error("a checkpoint is stored in the clear")
		}
		n.drain(t)
	})
}

// S82: a checkpoint outlives the engine's membership in which it was sent; the
// answer that follows it does too.
func TestCheckpointAcrossIncarnations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store *faultStore
		w := importer(t, func(_ context.Context, call invoke.Call) (sdk.Reply, bool) {
			store.down.Store(true)
			call.OnProgress(invoke.Progress{Number: 7, Blob: []byte("seven")})
			time.Sleep(10 * time.Second) // the lease is lost
			store.down.Store(false)
			time.Sleep(5 * time.Second) // and the run is taken over again
			return sdk.Reply{Outcome: sdk.OutcomeResult, Output: []byte(`{"id":"x"}`)}, true
		})
		store = w.faulty()
		n := w.start()
		run := w.submit(n, "once", nil)
		time.Sleep(20 * time.Second)
		w.wait(n, run, status.RunSucceeded)
		list := w.progressed(run)
		if len(list) == 0 || list[0] != "7 seven" {
			t.Errorf("journal has %v, want the checkpoint", list)
		}
		n.drain(t)
	})
}

// S10, S37: an agent that falls silent for heartbeat_timeout is given up long
// before complete-by; one that goes on saying so is not. Of many heartbeats few
// reach the journal: one in half of that time.
func TestHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := importer(t, func(ctx context.Context, call invoke.Call) (sdk.Reply, bool) {
			beats := 900 // for 90 s
			if call.Request.Attempt > 1 {
				beats = 600
			}
			for range beats {
				call.OnProgress(invoke.Progress{Number: 10, Note: "working"})
				time.Sleep(100 * time.Millisecond)
			}
			if call.Request.Attempt > 1 {
				return sdk.Reply{}, false
			}
			<-ctx.Done() // silence
			return sdk.Reply{Outcome: sdk.OutcomeFailed, Code: "busy"}, true
		})
		n := w.start()
		run := w.submit(n, "watched", nil)
		start := time.Now()
		w.wait(n, run, status.RunSucceeded)
		if took := time.Since(start).Round(time.Second); took < 155*time.Second || took > 165*time.Second {
			t.Errorf("the run took %s, want 90 s, the silence of 10 s and 60 s", took)
		}
		if n := len(w.progressed(run)); n < 20 || n > 40 {
			t.Errorf("%d heartbeats in the journal for 150 s, want one in 5 s", n)
		}
		n.drain(t)
	})
}

// S28: what an agent says of its work after complete-by changes nothing.
func TestCheckpointAfterTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := importer(t, func(_ context.Context, call invoke.Call) (sdk.Reply, bool) {
			if call.Request.Attempt > 1 {
				return sdk.Reply{}, false
			}
			time.Sleep(call.Request.Remaining)
			call.OnProgress(invoke.Progress{Number: 1, Blob: []byte("late")})
			time.Sleep(time.Second)
			call.OnProgress(invoke.Progress{Number: 2, Blob: []byte("later")})
			return sdk.Reply{Outcome: sdk.OutcomeFailed, Code: "busy"}, true
		})
		n := w.start()
		run := w.submit(n, "import", nil)
		w.wait(n, run, status.RunSucceeded)
		synctest.Wait()
		if list := w.progressed(run); len(list) != 0 {
			t.Errorf("journal has %v, want nothing", list)
		}
		if late := w.story.lateReplies(); late != 1 {
			t.Errorf("%d late replies, want the answer only", late)
		}
		n.drain(t)
	})
}

// S28: an answer past complete-by is kept beside the run, with its outcome and
// what it says, whether the engine heard it while it waited or afterwards; it
// raises one alert and changes nothing.
func TestLateAnswersAreKept(t *testing.T) {
	late := sdk.Reply{Outcome: sdk.OutcomeResult, Output: []byte(`{"id":"late"}`)}
	tests := map[string]struct {
		say     func(call invoke.Call)
		reply   sdk.Reply
		outcome string
	}{
		"by an invoker that waits too long": {func(invoke.Call) {}, late, "ok"},
		"by one that listens on": {func(call invoke.Call) {
			go func() {
				time.Sleep(5 * time.Second)
				call.OnLate(late)
			}()
		}, sdk.Reply{}, "ok"},
		"failure": {func(invoke.Call) {}, sdk.Reply{Outcome: sdk.OutcomeFailed, Code: "busy"}, "failed"},
		"unknown": {func(invoke.Call) {}, sdk.Reply{Outcome: sdk.OutcomeUnknown, Code: "agent_lost"}, "unknown"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := importer(t, nil)
				w.cfg = func(c *engine.Config) {
					c.Invoker = invokerFunc(func(ctx context.Context, call invoke.Call) (sdk.Reply, error) {
						if call.Request.Attempt > 1 {
							return w.inv.Invoke(ctx, call)
						}
						time.Sleep(call.Request.Remaining + time.Second)
						tt.say(call)
						if tt.reply.Outcome == sdk.OutcomeInvalid {
							return sdk.Reply{}, context.DeadlineExceeded
						}
						return tt.reply, nil
					})
				}
				n := w.start()
				run := w.submit(n, "import", nil)
				w.wait(n, run, status.RunSucceeded)
				time.Sleep(10 * time.Second)
				kept, err := w.mem.LateReplies(t.Context(), run)
				if err != nil || len(kept) != 1 {
					t.Fatalf("late replies: %+v, %v, want one", kept, err)
				}
				if l := kept[0]; l.Outcome != tt.outcome || l.Step != "load" || l.Call != 1 || l.Run != run {
					t.Errorf("kept %+v, want %s of the first call of load", l, tt.outcome)
				}
				event, err := journal.DecodeLate(nil, kept[0])
				if ok, is := event.(machine.AttemptOK); err != nil || is != (tt.outcome == "ok") || is && string(ok.Output.JSON()) != `{"id":"late"}` {
					t.Errorf("evidence: %+v, %v", event, err)
				}
				if alerts, err := w.mem.Alerts(t.Context(), run, 10); err != nil || len(alerts) != 1 || alerts[0].Kind != "late_reply" {
					t.Errorf("alerts: %+v, %v, want one of kind late_reply", alerts, err)
				}
				if got := w.story.lateReplies(); got != 1 {
					t.Errorf("counted %d, want 1", got)
				}
				n.drain(t)
			})
		})
	}
}

// keepFails refuses evidence as often as it is told.
type keepFails struct {
	store.Full
	mu    sync.Mutex
	left  int
	asked int
}

func (s *keepFails) KeepLate(ctx context.Context, l store.LateReply) error {
	s.mu.Lock()
	s.asked++
	fail := s.left > 0
	s.left--
	s.mu.Unlock()
	if fail {
		return errors.New("no room")
	}
	return s.Full.KeepLate(ctx, l)
}

// S28: evidence that cannot be stored at once is tried again, not for ever, and
// holds up neither the run nor the end of the engine.
func TestEvidenceIsTriedAgain(t *testing.T) {
	for name, tt := range map[string]struct{ fails, kept int }{"a few times": {3, 1}, "always": {1 << 20, 0}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := importer(t, func(_ context.Context, call invoke.Call) (sdk.Reply, bool) {
					if call.Request.Attempt > 1 {
						return sdk.Reply{}, false
					}
					time.Sleep(call.Request.Remaining + time.Second)
					return sdk.Reply{Outcome: sdk.OutcomeFailed, Code: "busy"}, true
				})
				store := &keepFails{Full: store.Complete(w.mem), left: tt.fails}
				w.store = store
				n := w.start()
				run := w.submit(n, "import", nil)
				w.wait(n, run, status.RunSucceeded)
				time.Sleep(time.Minute)
				n.drain(t)
				kept, err := w.mem.LateReplies(t.Context(), run)
				if err != nil || len(kept) != tt.kept {
					t.Errorf("late replies: %+v, %v, want %d", kept, err, tt.kept)
				}
				if store.asked > 20 {
					t.Errorf("asked %d times", store.asked)
				}
			})
		})
	}
}

// What counts is when an answer reached an engine, whoever holds the run: one
// that reaches a former owner is durable in the run's inbox at once, with the
// time of its arrival, also when it says that the call was not sent.
func TestAnswerAtAFormerOwner(t *testing.T) {
	tests := map[string]struct {
		reply sdk.Reply
		err   error
		want  machine.Event
	}{
		"result":   {sdk.Reply{Outcome: sdk.OutcomeResult, Output: []byte(`{"id":"x"}`)}, nil, machine.AttemptOK{}},
		"failure":  {sdk.Reply{Outcome: sdk.OutcomeFailed, Code: "busy"}, nil, machine.AttemptFailed{}},
		"unknown":  {sdk.Reply{Outcome: sdk.OutcomeUnknown, Code: "internal"}, nil, machine.AttemptUnknown{}},
		"not sent": {sdk.Reply{}, &invoke.Deferred{Why: "full"}, machine.AttemptDeferred{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := importer(t, nil)
				stolen := make(chan struct{})
				var arrived time.Time
				w.cfg = func(c *engine.Config) {
					c.Invoker = invokerFunc(func(context.Context, invoke.Call) (sdk.Reply, error) {
						<-stolen
						arrived = time.Now()
						return tt.reply, tt.err
					})
				}
				st := w.faulty()
				n := w.start()
				run := w.submit(n, "import", nil)
				synctest.Wait()
				// Another engine, of which nothing is asked, takes the run.
				st.down.Store(true)
				time.Sleep(2 * w.opts.Lease)
				other, err := w.mem.Join(t.Context(), "other", time.Hour, 1)
				if err != nil {
					t.Fatal(err)
				}
				if dead, err := w.mem.Fence(t.Context(), 1); err != nil || !dead {
					t.Fatalf("fence: %t, %v", dead, err)
				}
				steal(t, w, run, other)
				st.down.Store(false)
				time.Sleep(time.Second)
				close(stolen)
				synctest.Wait()
				time.Sleep(100 * time.Millisecond)
				messages, err := w.mem.Messages(t.Context(), run, 0, 10)
				if err != nil || len(messages) != 1 {
					t.Fatalf("inbox: %+v, %v, want the answer", messages, err)
				}
				m := messages[0]
				if m.Kind != store.MessageReply || m.At.Sub(arrived).Abs() > time.Millisecond || m.By != "agent shop" {
					t.Errorf("message %+v, want an answer of %s", m, arrived)
				}
				event, err := journal.DecodeMessage(nil, run, m.Data)
				if err != nil || fmt.Sprintf("%T", event) != fmt.Sprintf("%T", tt.want) {
					t.Errorf("it says %T, %v, want %T", event, err, tt.want)
				}
				n.kill(t)
			})
		})
	}
}

// steal makes another engine the owner of a run, by an empty row.
func steal(t *testing.T, w *world, run status.RunID, owner store.EngineID) {
	t.Helper()
	_, rows, err := store.LoadRun(t.Context(), w.mem, run)
	if err != nil {
		t.Fatal(err)
	}
	writer, err := w.mem.OpenWriter(t.Context(), owner, 0)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now()
	out, err := writer.Commit(t.Context(), []store.Transition{{
		Run: run, Seq: int32(len(rows)), At: at, Owner: &owner, Data: emptyRow(t, run, rows, at),
	}})
	if err != nil || !out[0].Landed {
		t.Fatalf("steal: %+v, %v", out, err)
	}
}

// emptyRow returns the data of a row without records that follows others.
func emptyRow(t *testing.T, run status.RunID, rows []store.Row, at time.Time) []byte {
	t.Helper()
	e := journal.RowEncoder{Run: run}
	if err := e.Follow(rows); err != nil {
		t.Fatal(err)
	}
	data, err := e.Encode(at, nil)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// S82: a checkpoint that reaches a former owner of the run counts: it is in the
// run's inbox before the answer that follows it, and the next attempt goes on
// from it, whoever makes that.
func TestCheckpointAtAFormerOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var (
			mu    sync.Mutex
			calls int
			got   []string
		)
		taken, said := make(chan struct{}), make(chan struct{})
		w := importer(t, func(_ context.Context, call invoke.Call) (sdk.Reply, bool) {
			mu.Lock()
			calls++
			n := calls
			last := "none"
			if c := call.Request.Checkpoint; c != nil {
				last = fmt.Sprintf("%d %s", c.Number, c.Blob)
			}
			got = append(got, last)
			mu.Unlock()
			lost := sdk.Reply{Outcome: sdk.OutcomeUnknown, Code: sdk.CodeAgentLost}
			switch n {
			case 1: // at the engine that loses the run
				<-taken
				for n := 1; n <= 50; n++ {
					call.OnProgress(invoke.Progress{Number: n, Blob: []byte("early")})
				}
				time.Sleep(5 * time.Second)
				call.OnProgress(invoke.Progress{Number: 51, Blob: []byte("last")})
				close(said)
				return lost, true
			case 2: // beside it, at the engine that has taken the run
				<-said
				time.Sleep(5 * time.Second)
				return lost, true
			}
			return sdk.Reply{}, false
		})
		faults := w.faulty()
		former := w.start()
		run := w.submit(former, "import", nil)
		synctest.Wait()
		faults.down.Store(true)
		time.Sleep(2 * w.opts.Lease)
		w.store = w.mem
		next := w.start()
		time.Sleep(2 * w.opts.Lease)
		if head, _, err := store.LoadRun(t.Context(), w.mem, run); err != nil || head.Owner != next.Engine() {
			t.Fatalf("head = %+v, %v, want it taken", head, err)
		}
		faults.down.Store(false)
		time.Sleep(time.Second)
		close(taken)
		w.wait(next, run, status.RunSucceeded)
		mu.Lock()
		if want := "[none none 51 last]"; fmt.Sprint(got) != want {
			t.Errorf("attempts went on from %v, want %v", got, want)
		}
		mu.Unlock()
		if list := w.progressed(run); len(list) < 2 || len(list) > 10 || list[len(list)-1] != "51 last" {
			t.Errorf("the journal has the checkpoints %v, want few and the last", list)
		}
		w.empty(run)
		former.drain(t)
		next.drain(t)
	})
}

// S28, S82: a checkpoint in the inbox that reached an engine after its attempt's
// complete-by counts nowhere, and is no evidence either; one in time does.
func TestCheckpointFromTheInbox(t *testing.T) {
	for name, tt := range map[string]struct {
		at   time.Duration // of its arrival, since the call began, which has a minute
		read time.Duration // when it is put into the inbox
		want int
	}{
		"in time":               {30 * time.Second, 30 * time.Second, 1},
		"in time but read late": {30 * time.Second, 2 * time.Minute, 0}, // the attempt was given up by then
		"late":                  {90 * time.Second, 2 * time.Minute, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := importer(t, func(ctx context.Context, _ invoke.Call) (sdk.Reply, bool) {
					<-ctx.Done()
					return sdk.Reply{}, false
				})
				n := w.start()
				began := time.Now()
				run := w.submit(n, "once", nil)
				time.Sleep(tt.read)
				w.post(run, store.MessageReply, machine.AttemptProgress{
					Attempt: machine.AttemptID{Node: 0, Call: 1}, Number: 3, Blob: []byte("three"),
				}, began.Add(tt.at))
				time.Sleep(5 * time.Minute)
				w.empty(run)
				if list := w.progressed(run); len(list) != tt.want {
					t.Errorf("the journal has the checkpoints %v, want %d", list, tt.want)
				}
				if late, err := w.mem.LateReplies(t.Context(), run); err != nil || len(late) > 0 {
					t.Errorf("late replies = %+v, %v, want none", late, err)
				}
				n.drain(t)
			})
		})
	}
}

// A postTwice store loses its answer to the first message, after it has stored it.
type postTwice struct {
	store.Full
	posts atomic.Int32
}

func (s *postTwice) Post(ctx context.Context, m store.Message) (store.MessageID, error) {
	id, err := s.Full.Post(ctx, m)
	if s.posts.Add(1) == 1 && err == nil {
		err = errDown
	}
	return id, err
}

// T3: an answer for a run of another engine is put into the run's inbox. Where
// the store's answer to that is lost, it is put there again, and is there once.
func TestAnswerIsInTheInboxOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := importer(t, nil)
		stolen := make(chan struct{})
		w.cfg = func(c *engine.Config) {
			c.Invoker = invokerFunc(func(context.Context, invoke.Call) (sdk.Reply, error) {
				<-stolen
				return sdk.Reply{Outcome: sdk.OutcomeResult, Output: []byte(`{"id":"x"}`)}, nil
			})
		}
		faults := w.faulty()
		twice := &postTwice{Full: store.Complete(w.mem)}
		faults.Full = store.Complete(twice)
		n := w.start()
		run := w.submit(n, "import", nil)
		synctest.Wait()
		faults.down.Store(true)
		time.Sleep(2 * w.opts.Lease)
		other, err := w.mem.Join(t.Context(), "other", time.Hour, 1)
		if err != nil {
			t.Fatal(err)
		}
		if dead, err := w.mem.Fence(t.Context(), 1); err != nil || !dead {
			t.Fatalf("fence: %t, %v", dead, err)
		}
		steal(t, w, run, other)
		faults.down.Store(false)
		time.Sleep(time.Second)
		close(stolen)
		for range 100 { // of 10 ms each: the answer is put there again after a pause
			if twice.posts.Load() > 1 {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		synctest.Wait()
		messages, err := w.mem.Messages(t.Context(), run, 0, 10)
		if err != nil || len(messages) != 1 || twice.posts.Load() != 2 {
			t.Errorf("inbox after %d posts: %+v, %v, want one answer that was posted twice", twice.posts.Load(), messages, err)
		}
		n.drain(t)
	})
}
