package machine_test

import (
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/story"
)

func undoFirst(s *spec)  { s.OnRerun = dsl.RerunUndoFirst }
func continueIt(s *spec) { s.OnRerun = dsl.RerunContinue }
func undoAgent(s *spec)  { s.Undo.Do.Agent = "depot" }
func heartbeat(d time.Duration) option {
	return func(s *spec) { s.settings.HeartbeatTimeout = d }
}

func (p *play) checkpoint(node string, number int, blob string) *play {
	p.t.Helper()
	return p.event(machine.AttemptProgress{Attempt: p.call(node, 0).Attempt, Number: number, Blob: []byte(blob)})
}

func (p *play) beat(node string) *play {
	p.t.Helper()
	return p.event(machine.AttemptProgress{Attempt: p.call(node, 0).Attempt})
}

// lastKey returns the idempotency key of the newest call of a node.
func (p *play) lastKey(node string) string {
	p.t.Helper()
	return p.call(node, 0).IdempotencyKey
}

// S81, S82, S83: another attempt continues after the last checkpoint.
func TestRerunContinues(t *testing.T) {
	t.Run("after a definite failure, under the same key", func(t *testing.T) {
		p := start(t, flow(do("a", continueIt, tries(2))), "do a")
		if p.call("a", 0).Checkpoint != nil {
			t.Error("the first attempt has a checkpoint")
		}
		key := p.lastKey("a")
		p.checkpoint("a", 29, "at 29").checkpoint("a", 30, "at 30")
		p.fail("a", "flaky").effects("a maybe") // thirty of a hundred are done, whatever it vouches for
		p.wait(second(1), "do a")
		c := p.call("a", 0)
		if c.Checkpoint == nil || c.Checkpoint.Number != 30 || string(c.Checkpoint.Blob) != "at 30" || c.IdempotencyKey != key {
			t.Errorf("got %+v under %s", c.Checkpoint, c.IdempotencyKey)
		}
		p.ok("a").is("succeeded")
	})
	t.Run("after a takeover, and an older attempt does not turn it back", func(t *testing.T) {
		p := start(t, flow(do("a", continueIt, idempotent)), "do a")
		p.checkpoint("a", 10, "at 10")
		p.event(machine.TakenOver{By: 2, From: 1}, "do a")
		if c := p.call("a", 2).Checkpoint; c == nil || c.Number != 10 {
			t.Fatalf("got %+v", c)
		}
		p.event(machine.AttemptProgress{Attempt: p.call("a", 2).Attempt, Number: 20, Blob: []byte{}})
		p.event(machine.AttemptProgress{Attempt: p.call("a", 1).Attempt, Number: 11, Blob: []byte("at 11")})
		p.event(machine.AttemptFailed{Attempt: p.call("a", 1).Attempt, Code: "flaky"})
		p.event(machine.AttemptFailed{Attempt: p.call("a", 2).Attempt, Code: "flaky"})
		p.wait(second(2), "do a")
		if c := p.call("a", 0).Checkpoint; c == nil || c.Number != 20 || len(c.Blob) != 0 {
			t.Errorf("got %+v", c)
		}
	})
	t.Run("by an operator, S60", func(t *testing.T) {
		p := start(t, flow(do("a", continueIt, idempotent, tries(1)), manual), "do a")
		p.checkpoint("a", 3, "at 3")
		p.permanent("a", "disk_full", "alert parked").effects("a maybe")
		p.event(machine.RetryRequested{NewKey: true}).refused("settle that first")
		p.event(machine.RetryRequested{}, "do a")
		if c := p.call("a", 0).Checkpoint; c == nil || c.Number != 3 {
			t.Errorf("got %+v", c)
		}
	})
	t.Run("not after it is known that nothing was done", func(t *testing.T) {
		p := start(t, flow(do("a", continueIt, lookup, tries(2))), "do a")
		p.checkpoint("a", 3, "at 3")
		p.unknown("a", "agent_lost", "lookup a")
		p.notDone("a").effects("a none")
		p.wait(second(1), "do a")
		if c := p.call("a", 0).Checkpoint; c != nil {
			t.Errorf("got %+v", c)
		}
	})
	t.Run("and so does its undo", func(t *testing.T) {
		p := start(t, flow(do("a"), do("b", after("a"))), "do a")
		p.ok("a", "do b")
		p.fail("b", "declined", "undo a")
		p.checkpoint("a", 5, "undone 5")
		p.fail("a", "flaky")
		p.wait(second(1), "undo a")
		if c := p.call("a", 0).Checkpoint; c == nil || c.Number != 5 || string(c.Blob) != "undone 5" {
			t.Errorf("got %+v", c)
		}
		p.ok("a").is("compensated")
	})
}

// S81: what was done in part is rolled back although the attempt failed for
// certain.
func TestRerunCheckpointIsUndone(t *testing.T) {
	p := start(t, flow(do("a", undoByKey)), "do a")
	p.checkpoint("a", 30, "")
	p.permanent("a", "disk_full", "undo a")
	p.ok("a").is("compensated")
}

// S83: what earlier attempts did is undone before the step starts anew, under
// a new key.
func TestRerunUndoesFirst(t *testing.T) {
	wf := func(more ...option) *dsl.Workflow {
		return flow(do("a", append([]option{undoByKey, undoFirst, tries(3)}, more...)...), do("b", after("a")))
	}
	t.Run("a definite failure needs no undo", func(t *testing.T) {
		p := start(t, wf(), "do a")
		key := p.lastKey("a")
		p.fail("a", "flaky")
		p.wait(second(1), "do a")
		if p.lastKey("a") != key {
			t.Error("the key changed")
		}
	})
	t.Run("an unknown outcome", func(t *testing.T) {
		p := start(t, wf(), "do a")
		key := p.lastKey("a")
		p.unknown("a", "agent_lost").state("a backoff").effects("a maybe")
		p.wait(second(1), "undo a").state("a undoing", "b pending").is("running")
		u := p.call("a", 0)
		if u.ForwardKey != key || string(u.Input.JSON()) != `{"undo":"a","of":null}` {
			t.Errorf("got undo of %s with %s", u.ForwardKey, u.Input.JSON())
		}
		p.ok("a", "do a").state("a running").effects("a maybe")
		again := p.call("a", 0)
		if again.IdempotencyKey == key || again.Number != 2 || again.Checkpoint != nil {
			t.Errorf("got attempt %d under %s", again.Number, again.IdempotencyKey)
		}
		if f := p.told(story.FactUndoFinished, "a")[0]; f.Status != "undone" || f.Attempt != 1 {
			t.Errorf("got %+v", f)
		}
		p.ok("a", "do b")
		p.fail("b", "declined", "undo a")
		if u := p.call("a", 0); u.ForwardKey != again.IdempotencyKey || u.Number != 1 {
			t.Errorf("got undo %d of %s", u.Number, u.ForwardKey)
		}
		p.ok("a").is("compensated")
		if int(p.s.Run().Undone) != 1 {
			t.Errorf("got %d undone, want one", int(p.s.Run().Undone))
		}
	})
	t.Run("a checkpoint", func(t *testing.T) {
		p := start(t, wf(), "do a")
		p.checkpoint("a", 30, "at 30")
		p.fail("a", "flaky")
		p.wait(second(1), "undo a")
		p.ok("a", "do a")
		if c := p.call("a", 0).Checkpoint; c != nil {
			t.Errorf("got %+v, want a new beginning", c)
		}
	})
	t.Run("not before nobody can be at work", func(t *testing.T) {
		p := start(t, wf(), "do a")
		p.wait(second(30)).state("a backoff")
		p.wait(1900 * time.Millisecond)
		p.wait(100*time.Millisecond, "undo a")
	})
	t.Run("a takeover waits for the attempt in flight, and its answer counts", func(t *testing.T) {
		p := start(t, wf(idempotent), "do a")
		p.event(machine.TakenOver{By: 2, From: 1}).state("a running")
		p.ok("a", "do b")
	})
	t.Run("the undo is repeated under its own rules", func(t *testing.T) {
		p := start(t, wf(), "do a")
		p.unknown("a", "agent_lost")
		p.wait(second(1), "undo a")
		p.fail("a", "flaky").state("a undoing")
		p.wait(second(1), "undo a")
		p.unknown("a", "agent_lost")
		p.wait(second(2), "undo a")
		p.event(machine.TakenOver{By: 2, From: 1}, "undo a")
		p.ok("a", "do a")
	})
	t.Run("nothing was done: asked first", func(t *testing.T) {
		p := start(t, wf(lookup), "do a")
		key := p.lastKey("a")
		p.checkpoint("a", 3, "")
		p.fail("a", "flaky")
		p.wait(second(1), "lookup a")
		p.notDone("a", "do a")
		if p.lastKey("a") != key {
			t.Error("the key changed though nothing was undone under it")
		}
	})
	t.Run("it was done all along: asked first", func(t *testing.T) {
		p := start(t, wf(lookup), "do a")
		p.checkpoint("a", 3, "")
		p.fail("a", "flaky")
		p.wait(second(1), "lookup a")
		p.ok("a", "do b").state("a succeeded").effects("a done")
	})
	t.Run("the undo waits for its agent", func(t *testing.T) {
		p := start(t, wf(undoAgent), "do a")
		p.unknown("a", "agent_lost")
		p.slots = map[string]machine.Slot{"depot": {Why: "full"}}
		p.wait(second(1))
		if v := p.view("a"); v.HeldBy != "depot" {
			t.Errorf("held by %q", v.HeldBy)
		}
		p.slots = nil
		p.event(machine.SlotsFreed{}, "undo a")
		p.event(machine.AttemptDeferred{Attempt: p.call("a", 0).Attempt, Until: p.now.Add(second(3)), Why: "circuit open"})
		p.wait(second(3), "undo a")
		p.ok("a", "do a")
	})
	t.Run("instances", func(t *testing.T) {
		p := start(t, flow(do("a", each("k", "l"), undoByKey, undoFirst, tries(2))), "do a[k]", "do a[l]")
		p.unknown("a[k]", "agent_lost")
		p.ok("a[l]")
		p.wait(second(1), "undo a[k]")
		p.ok("a[k]", "do a[k]")
		p.ok("a[k]").is("succeeded")
	})
}

// S24, S83: the undo before another attempt fails.
func TestRerunUndoFails(t *testing.T) {
	begin := func(t *testing.T, more ...option) *play {
		p := start(t, flow(do("z"), do("a", append([]option{after("z"), undoByKey, undoFirst, tries(3)}, more...)...)), "do z")
		p.ok("z", "do a")
		p.checkpoint("a", 1, "x")
		if p.wf.Steps[1].Do.Lookup {
			p.fail("a", "flaky")
			p.wait(second(1), "lookup a")
			p.fail("a", "unavailable")
			p.wait(second(1), "lookup a")
			p.fail("a", "unavailable")
			p.wait(second(2), "lookup a")
			return p.fail("a", "unavailable", "undo a")
		}
		p.unknown("a", "agent_lost")
		return p.wait(second(1), "undo a")
	}
	t.Run("parks, and a retry undoes again", func(t *testing.T) {
		p := begin(t)
		p.permanent("a", "locked", "alert parked").is("parked").failure("a locked").state("a failed").effects("a maybe")
		p.event(machine.RetryRequested{By: "ann"}, "undo a").is("running")
		p.ok("a", "do a")
		p.ok("a").is("succeeded")
	})
	t.Run("unknown: neither retried nor called again until it is settled", func(t *testing.T) {
		p := begin(t, undoOnce)
		p.unknown("a", "agent_lost", "alert parked").is("parked")
		p.event(machine.RetryRequested{}).refused("settle")
		q := *p
		q.s, q.twin, q.plain = p.s.Clone(), p.twin.Clone(), p.plain.Clone()
		key := p.calls[1].IdempotencyKey
		p.event(machine.SettleRequested{Step: "a", As: machine.SettleNotDone}).effects("a none").is("parked")
		p.event(machine.RetryRequested{}, "do a")
		if p.lastKey("a") == key {
			t.Error("the key under which it may have been undone is used again")
		}
		q.event(machine.CompensateRequested{}, "alert compensation_failed").is("compensation_failed").state("a undo_failed")
	})
	t.Run("unknown: the step itself is not asked any more", func(t *testing.T) { // it may have been undone since
		p := begin(t, lookup, tries(2))
		p.unknown("a", "agent_lost")
		p.wait(second(1), "undo a")
		p.permanent("a", "locked", "alert parked")
		p.event(machine.RetryRequested{}, "undo a")
		p.ok("a", "do a")
	})
	t.Run("unknown: asked", func(t *testing.T) {
		p := begin(t, undoOnce, undoLookup)
		p.unknown("a", "agent_lost", "lookup a")
		p.ok("a", "do a")
	})
	t.Run("caught", func(t *testing.T) {
		p := begin(t, catch("", "agent_lost"))
		p.permanent("a", "locked").is("succeeded").state("a caught").effects("a maybe")
	})
	t.Run("then everything is compensated", func(t *testing.T) {
		p := begin(t)
		p.permanent("a", "locked", "alert parked")
		p.event(machine.CompensateRequested{}, "undo a")
		p.ok("a", "undo z")
		p.ok("z").is("compensated")
	})
	t.Run("an instance too many", func(t *testing.T) {
		p := start(t, flow(do("a", each("k", "l"), maxFailures(1), undoByKey, undoFirst, tries(2))), "do a[k]", "do a[l]")
		p.unknown("a[k]", "agent_lost")
		p.unknown("a[l]", "agent_lost")
		p.wait(second(1), "undo a[k]", "undo a[l]")
		p.permanent("a[k]", "locked").is("running")
		p.permanent("a[l]", "locked", "alert parked").is("parked")
	})
}

// What turns the run while the undo before another attempt is in flight goes on
// with that undo.
func TestRerunTurns(t *testing.T) {
	begin := func(t *testing.T, items ...any) *play {
		items = append([]any{do("z")}, items...)
		p := start(t, flow(items...), "do z")
		p.ok("z", "do a")
		p.unknown("a", "agent_lost")
		return p.wait(second(1), "undo a")
	}
	a := func(more ...option) *spec {
		return do("a", append([]option{after("z"), undoByKey, undoFirst, tries(3)}, more...)...)
	}
	t.Run("cancel, and it succeeds", func(t *testing.T) {
		p := begin(t, a())
		p.event(machine.CancelRequested{}).is("compensating")
		p.ok("a", "undo z")
		p.ok("z").is("cancelled")
	})
	t.Run("cancel, and it fails", func(t *testing.T) {
		p := begin(t, a())
		p.event(machine.CancelRequested{})
		p.fail("a", "flaky", "undo a")
		p.ok("a", "undo z")
		p.ok("z").is("cancelled")
	})
	t.Run("cancel --no-compensate leaves what it does not undo", func(t *testing.T) {
		p := begin(t, a())
		p.event(machine.CancelRequested{NoCompensate: true})
		p.fail("a", "flaky").is("cancelled")
		if int(p.s.Run().Left) != 2 {
			t.Errorf("got %d left as is", int(p.s.Run().Left))
		}
	})
	t.Run("the run's deadline", func(t *testing.T) {
		p := begin(t, a(), runDeadline(second(20)))
		p.wait(second(19)) // the undo's complete-by is the run's deadline
		p.is("compensating").failure("deadline_exceeded")
		p.wait(second(2), "undo a")
		p.ok("a", "undo z")
	})
	t.Run("the step's deadline", func(t *testing.T) {
		p := begin(t, a(deadline(second(20))))
		p.wait(second(19)).is("compensating").failure("a deadline_exceeded")
		p.wait(second(2), "undo a")
		p.ok("a", "undo z")
	})
	t.Run("no time for another try", func(t *testing.T) {
		p := begin(t, a(deadline(second(2))))
		p.fail("a", "flaky", "undo a").is("compensating").failure("a deadline_exceeded")
		p.ok("a", "undo z")
	})
	t.Run("a parked run waits with it", func(t *testing.T) {
		p := start(t, flow(do("p", exhausted(dsl.ExhaustedPark)), a2("a"), a2("b")), "do a", "do b", "do p")
		p.unknown("a", "agent_lost")
		p.unknown("b", "agent_lost")
		p.wait(second(1), "undo a", "undo b")
		p.fail("p", "flaky", "alert parked")
		p.ok("a").state("a held") // what is in flight ends and is recorded
		p.fail("b", "flaky")
		p.wait(second(100)).is("parked")
		p.event(machine.RetryRequested{}, "do a", "undo b", "do p").is("running")
		p.ok("b", "do b")
		p.ok("a")
		p.ok("b")
		p.ok("p").is("succeeded")
	})
	t.Run("so does a paused one", func(t *testing.T) {
		p := begin(t, a())
		p.event(machine.PauseRequested{})
		p.fail("a", "flaky")
		p.wait(second(10))
		p.event(machine.ResumeRequested{}, "undo a")
		p.event(machine.PauseRequested{})
		p.ok("a").state("a held")
		p.event(machine.ResumeRequested{}, "do a")
	})
}

// a2 is a step that is undone before another attempt, with a step deadline.
func a2(name string) *spec {
	return do(name, undoByKey, undoFirst, tries(3), deadline(second(50)))
}

// heartbeat_timeout: an attempt of which nothing is heard is over like one whose
// time is up, but may be at work until its complete-by (S17, S29).
func TestHeartbeats(t *testing.T) {
	t.Run("each one starts the time anew", func(t *testing.T) {
		p := start(t, flow(do("a", heartbeat(second(5)), idempotent, timeout(second(60)))), "do a")
		if c := p.call("a", 0); !c.CompleteBy.Equal(noon.Add(second(60))) {
			t.Errorf("the agent is told %v", c.CompleteBy)
		}
		p.wait(second(4)).beat("a")
		p.wait(second(4)).state("a running").checkpoint("a", 1, "x")
		if v := p.view("a"); !v.Calls[0].Silent.Equal(noon.Add(second(13))) || !v.CompleteBy.Equal(noon.Add(second(60))) {
			t.Errorf("got %v, %v", v.Calls[0].Silent, v.CompleteBy)
		}
		p.wait(second(4)).state("a running")
		p.wait(second(1), "stop a").state("a backoff").effects("a maybe")
		if v := p.view("a"); v.Code != "timeout" || v.Message != "no heartbeat in time" || v.Failures != 1 {
			t.Errorf("got %q %q %d", v.Code, v.Message, v.Failures)
		}
		p.event(machine.AttemptOK{Attempt: p.calls[0].Attempt, Output: js(`{}`)}).nothing()
		if !p.last.Late() {
			t.Error("want its answer reported as late")
		}
		p.wait(second(1), "do a") // idempotent: beside the silent one
	})
	t.Run("undo waits for the complete-by", func(t *testing.T) {
		p := start(t, flow(do("a", heartbeat(second(5)), undoByKey, timeout(second(60)))), "do a")
		p.wait(second(5), "stop a").is("compensating")
		p.wait(second(56)).state("a failed")
		p.wait(second(1), "undo a")
		p.ok("a").is("compensated")
	})
	t.Run("a lookup, too", func(t *testing.T) {
		p := start(t, flow(do("a", heartbeat(second(5)), lookup)), "do a")
		p.wait(second(5), "stop a")
		p.wait(second(27), "lookup a")
	})
	t.Run("read-only: an ordinary failure", func(t *testing.T) {
		p := start(t, flow(do("a", heartbeat(second(5)), readOnly)), "do a")
		p.wait(second(5), "stop a").effects("a none")
		p.wait(second(1), "do a")
	})
	t.Run("longer than the attempt: complete-by counts", func(t *testing.T) {
		p := start(t, flow(do("a", heartbeat(second(50)), idempotent)), "do a")
		p.wait(second(20)).beat("a").nothing()
		p.wait(second(10)).state("a backoff")
	})
	t.Run("of no open attempt", func(t *testing.T) {
		p := start(t, flow(do("a", heartbeat(second(5)))), "do a")
		id := p.call("a", 0).Attempt
		p.ok("a")
		p.event(machine.AttemptProgress{Attempt: id}).nothing()
		if p.last.Late() {
			t.Error("a heartbeat is no answer")
		}
	})
	t.Run("parked and paused", func(t *testing.T) {
		p := start(t, flow(do("a", heartbeat(second(5)), idempotent), do("b")), "do a", "do b")
		p.event(machine.PauseRequested{})
		p.wait(second(5), "stop a").state("a backoff").is("paused")
	})
}

// The agent's wish to be left alone holds for unknown outcomes as for definite
// failures, for lookups, and across a longer cool-down.
func TestRetryAfter(t *testing.T) {
	for name, c := range map[string]struct {
		wf   *dsl.Workflow
		ev   func(machine.AttemptID) machine.Event
		then string
	}{
		"definite": {flow(do("a", tries(2))), func(id machine.AttemptID) machine.Event {
			return machine.AttemptFailed{Attempt: id, Code: "flaky", RetryAfter: second(20)}
		}, "do a"},
		"unknown": {flow(do("a", idempotent)), func(id machine.AttemptID) machine.Event {
			return machine.AttemptUnknown{Attempt: id, Code: "unavailable", RetryAfter: second(20)}
		}, "do a"},
		"unknown, asked": {flow(do("a", lookup)), func(id machine.AttemptID) machine.Event {
			return machine.AttemptUnknown{Attempt: id, Code: "unavailable", RetryAfter: second(20)}
		}, "lookup a"},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, c.wf, "do a")
			p.event(c.ev(p.call("a", 0).Attempt))
			p.wait(second(19))
			p.wait(second(1), c.then)
		})
	}
	t.Run("undo", func(t *testing.T) {
		p := start(t, flow(do("a"), do("b", after("a"))), "do a")
		p.ok("a", "do b")
		p.fail("b", "declined", "undo a")
		p.event(machine.AttemptUnknown{Attempt: p.call("a", 0).Attempt, Code: "unavailable", RetryAfter: second(20)})
		p.wait(second(19))
		p.wait(second(1), "undo a")
	})
	t.Run("not slept beyond a deadline", func(t *testing.T) {
		p := start(t, flow(do("a", idempotent, undoByKey, deadline(second(10)))), "do a")
		p.event(machine.AttemptUnknown{Attempt: p.call("a", 0).Attempt, Code: "unavailable", RetryAfter: second(20)}, "undo a")
	})
	t.Run("an operator need not wait", func(t *testing.T) {
		p := start(t, flow(do("a", tries(1), exhausted(dsl.ExhaustedPark))), "do a")
		p.event(machine.AttemptFailed{Attempt: p.call("a", 0).Attempt, Code: "flaky", RetryAfter: second(500)}, "alert parked")
		p.event(machine.RetryRequested{}, "do a")
	})
}
