package machine_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/story"
)

var gone = machine.EngineLost{Deaths: 3, Why: "3 engines ended one after the other"}

// A run with which engines died is held until a person says how it goes on:
// nothing starts, answers count, and a second mark changes nothing.
func TestEngineLostHoldsTheRun(t *testing.T) {
	p := start(t, flow(do("a"), do("b", after("a")), do("c", tries(2))), "do a", "do c")
	p.event(gone, "alert parked").is("parked").failure(machine.CodeEngineLost)
	p.event(gone)
	p.ok("a").state("b held").is("parked")
	p.fail("c", "flaky").state("c backoff")
	p.wait(second(10)).state("c backoff")
	p.event(machine.TakenOver{By: 9, From: 8}).is("parked")
	p.event(machine.PauseRequested{}).refused("parked")
	p.event(machine.ResumeRequested{}).refused("parked")
	p.event(machine.RetryRequested{By: "ann"}, "do b", "do c").is("running")
	p.ok("b").ok("c").is("succeeded")
	p.event(gone).is("succeeded")
}

// Whatever the run was doing, each of the verbs that end the state lets it go on.
func TestEngineLostVerbs(t *testing.T) {
	t.Run("a run in which nothing has started does not return to the queue", func(t *testing.T) {
		p := startWith(t, flow(do("a")), map[string]machine.Slot{"shop": {Why: "full"}})
		p.is("queued").event(gone, "alert parked").is("parked")
		p.event(machine.RetryRequested{}).is("running")
	})
	t.Run("cancel", func(t *testing.T) {
		p := start(t, flow(do("a"), do("b", after("a"))), "do a")
		p.ok("a", "do b")
		p.event(gone, "alert parked")
		p.event(machine.CancelRequested{By: "ann"}).is("compensating")
		p.ok("b", "undo b").ok("b", "undo a").ok("a").is("cancelled")
	})
	t.Run("compensate", func(t *testing.T) {
		p := start(t, flow(do("a"), do("b", after("a"))), "do a")
		p.ok("a", "do b")
		p.event(gone, "alert parked")
		p.event(machine.CompensateRequested{By: "ann"}).is("compensating").failure(machine.CodeEngineLost)
		p.ok("b", "undo b").ok("b", "undo a").ok("a").is("compensated")
	})
	t.Run("a run that is being undone", func(t *testing.T) {
		p := start(t, flow(do("a"), do("b", after("a"))), "do a")
		p.ok("a", "do b")
		p.fail("b", "declined", "undo a")
		p.event(gone, "alert parked").is("parked")
		p.event(machine.CompensateRequested{}).refused("retry")
		p.event(machine.RetryRequested{}).is("compensating")
		p.ok("a").is("compensated")
	})
	t.Run("a run that was parked before", func(t *testing.T) {
		p := start(t, flow(do("a"), manual), "do a")
		p.fail("a", "declined", "alert parked")
		p.event(gone).is("parked").failure(machine.CodeEngineLost) // it needs a person already
		p.event(machine.RetryRequested{}).is("parked").failure("a declined")
		p.event(machine.RetryRequested{}, "do a").is("running")
	})
	t.Run("a run whose deadline passes meanwhile", func(t *testing.T) {
		p := start(t, flow(do("a"), do("b", after("a")), runDeadline(second(20))), "do a")
		p.event(gone, "alert parked")
		p.ok("a").state("b held")
		p.wait(second(30)).is("parked").failure(machine.CodeEngineLost)
		p.event(machine.RetryRequested{}, "undo a").is("compensating")
		p.ok("a").is("compensated").failure(machine.CodeDeadlineExceeded)
	})
}

// People are told what happened and what they can do about it.
func TestEngineLostIsExplained(t *testing.T) {
	p := start(t, flow(do("a")), "do a")
	p.event(gone, "alert parked")
	x := story.Explain(p.s, p.wf, p.now)
	text := x.String()
	if !x.NeedsHuman || !strings.Contains(text, "engine_lost") || !strings.Contains(text, gone.Why) {
		t.Errorf("the explanation is %q", text)
	}
	for _, want := range []string{"engine retry o-42", "engine compensate o-42"} {
		if !slices.Contains(x.Remedies, want) {
			t.Errorf("the remedies are %q, want %q among them", x.Remedies, want)
		}
	}
	if f := p.facts[len(p.facts)-1]; f.Kind != story.FactRunParked || f.Code != machine.CodeEngineLost || f.Message != gone.Why {
		t.Errorf("the last fact is %+v", f)
	}
}

var updateLost = flag.Bool("update-lost", false, "write the golden journal of a lost run anew")

// A journal with such a run, as the first engine that knew it wrote it, folds to
// the same states for ever.
func TestEngineLostGoldenJournal(t *testing.T) {
	path := filepath.Join("testdata", "journal-v3-lost.txt")
	if *updateLost {
		p := start(t, flow(do("a"), do("b", after("a")), do("c"), runDeadline(second(600))), "do a", "do c")
		p.event(gone, "alert parked")
		p.ok("a")
		p.event(machine.RetryRequested{By: "ann", Reason: "the bug is mended", Ask: 3}, "do b")
		p.ok("b")
		p.event(machine.EngineLost{Why: "a decision took more than 30s"}, "alert parked")
		p.event(machine.PauseRequested{By: "ann"}).refused("parked")
		p.wait(time.Second)
		p.event(machine.TakenOver{By: 4, From: 3})
		p.event(machine.CompensateRequested{By: "ann", Ask: 5}, "undo b")
		p.ok("b", "undo a")
		p.ok("c", "undo c")
		p.ok("c")
		p.ok("a").is("compensated")
		if err := os.WriteFile(path, []byte(p.golden()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	foldGolden(t, path, 3)
}
