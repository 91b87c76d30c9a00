//go:build !steady

package sim

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A mutant is a deliberate fault: one piece of source replaced by another. The random
// worlds alone must notice it.
type mutant struct {
	name, file, old, new string
	also                 []mutant // further pieces, in other files
}

var mutants = []mutant{
	{"the fence does not keep writers out", "store/memory/journal.go",
		"return m != nil && m.fence[w.n]", "return m != nil || w.n >= 0", nil},
	{"a number is taken twice", "store/memory/journal.go",
		"case r != nil && int(t.Seq) < len(r.rows):\n\t\treturn store.ErrStale", "case r != nil && int(t.Seq) < len(r.rows):\n\t\treturn nil", nil},
	{"a stale row counts as landed", "internal/commit/commit.go",
		"Submitted: outcomes[i].Submitted, Unsure: it.unsure}\n", "Submitted: outcomes[i].Submitted, Unsure: it.unsure}\n\t\t\t\tif errors.Is(it.Landing.Err, store.ErrStale) {\n\t\t\t\t\tit.Landing.Err = nil\n\t\t\t\t\tcontinue\n\t\t\t\t}\n", nil},
	{"an error of the store counts as a commit", "internal/commit/commit.go",
		"outcomes, err := w.store.Commit(ctx, batch)\n", "outcomes, err := w.store.Commit(ctx, batch)\n\t\tif err != nil && !errors.Is(err, store.ErrFenced) && ctx.Err() == nil {\n\t\t\toutcomes, err = make([]store.Outcome, len(batch)), nil\n\t\t\tfor i := range outcomes {\n\t\t\t\toutcomes[i].Landed = true\n\t\t\t}\n\t\t}\n", nil},
	{"calls are made before the commit", "internal/owner/run.go",
		"r.commit = f\n\tfor _, e :=", "r.commit = f\n\tfor _, c := range f.commands {\n\t\tif inv, ok := c.(machine.Invoke); ok {\n\t\t\tsh.s.n.Calls.StartCall(r.callSpec(inv, sh.s.capacity, f.sendBy(r.specs[inv.Agent])))\n\t\t}\n\t}\n\tfor _, e :=", nil},
	{"the process's clock is believed", "internal/owner/decision.go",
		"at := decidedAt(r.state, d, now.Store)\n", "at := decidedAt(r.state, d, now.Local)\n", nil},
	{"a late answer counts as in time", "internal/owner/delivery.go",
		"if d.cameInTime(at) {\n\t\tat = d.Arrived", "if d.answers() && !at.Before(d.CompleteBy) {\n\t\tat = d.CompleteBy.Add(-1)", []mutant{
			{file: "internal/call/send.go", old: "if !a.Arrived.Before(a.CompleteBy) {", new: "if false {"}}},
	{"calls are made without a lease", "internal/call/send.go",
		"case !now.Leased:", "case false:", nil},
	{"the bound is too late", "internal/owner/bound.go",
		"return c.due\n}\n\n// next", "return c.due.Add(time.Minute)\n}\n\n// next", nil},
	{"a bound is never lowered", "internal/owner/bound.go",
		"early := c.hasDue && !c.final && c.due.Before(present)", "early := false", nil},
	{"what was sent is recalled", "internal/call/caller.go",
		"if c == nil || c.phase != callPreparing {", "if c == nil {", nil},
	{"a call keeps its slot for ever", "internal/call/report.go",
		"\tc.reservation.Release()\n\tfailpoint", "\tfailpoint", nil},
	{"a slot is given back twice", "internal/call/reservation.go",
		"return s != nil && s.capacity != nil && !s.gone.Swap(true)", "return s != nil && s.capacity != nil && !(s.gone.Swap(true) && s.spec.Agent == nil)", nil},
	{"no slot is reserved", "internal/owner/gate.go",
		"if !has && !g.capacity.Reserve(spec, 1) {", "if false {", nil},
	{"messages are not consumed", "internal/owner/decision.go",
		"x.f.Transition.Consumed = append(x.f.Transition.Consumed, d.message)", "_ = append(x.f.Transition.Consumed, d.message)", nil},
	{"a message that is read again is decided again", "internal/owner/loop.go",
		"case b.received[l.ID] || gone[l.ID]:\n", "case b.received[l.ID] && gone[l.ID]:\n", nil},
	{"inboxes are not looked into", "internal/cluster/lease.go",
		"\t\tt.Runs.InboxChanged(run)\n", "", nil},
	{"the inbox of a run that ended is left", "internal/owner/run.go",
		"if r.inbox.wanted {\n\t\t\t\tsh.clear(ctx, r)", "if false {\n\t\t\t\tsh.clear(ctx, r)", nil},
	{"runs are taken from engines that are alive", "internal/cluster/scanner.go",
		"grace := o.grace()", "grace := o.Lease / 100", nil},
	{"runs of the dead are left", "internal/cluster/scanner.go",
		"taken, err := p.by.orphans(ctx, dead, takeoverScope{", "taken, err := p.by.orphans(ctx, nil, takeoverScope{", nil},
	{"runs of nobody are left", "internal/cluster/scanner.go",
		"note(p.claim(ctx, unowned))", "note(0, nil)", nil},
	{"every engine makes every pass", "internal/cluster/scanner.go",
		"may, err := n.cfg.Store.Pass(ctx, passForeign, n.cfg.Options.MaxScan)", "may, err := true, error(nil)", nil},
	{"a takeover does not say who the owner is", "internal/owner/decision.go",
		"x.f.Transition.Owner, x.f.adopting = &engine, true", "x.f.adopting = true", nil},
	{"a claim overlooks what was said while it was on its way", "internal/owner/decision.go",
		"x.f.Transition.Heard = x.r.messagesRead", "_ = x.r.messagesRead", nil},
	{"a takeover starts work before it reads what was said", "internal/owner/run.go",
		"noCalls: len(messages) > 0}", "noCalls: false}", nil},
	{"alerts are not written", "internal/owner/record.go",
		"t.Alerts = append(t.Alerts, store.Alert{", "_ = append(t.Alerts, store.Alert{", nil},
	{"deaths of engines are not counted", "store/memory/hands.go",
		"s.deaths[run]++\n", "_ = s.deaths[run]\n", nil},
	{"what an engine has in hand is not noted before it is read", "internal/owner/hands.go",
		"	select {\n	case <-w.done:\n		return nil\n	case <-ctx.Done():\n		return ctx.Err()\n	case <-k.ctx.Done():", "	select {\n	case <-w.done:\n		return nil\n	default:\n		return nil\n	case <-ctx.Done():\n		return ctx.Err()\n	case <-k.ctx.Done():", nil},
	{"a run that engines die of is taken over for ever", "internal/cluster/takeover.go",
		"case x.Deaths >= store.MaxDeaths:", "case x.Deaths >= store.MaxDeaths && run < 0:", nil},
	{"a run is let go of when the engine that has it in hand ends", "internal/owner/hands.go",
		"	if k.ctx.Err() != nil {\n		return\n	}\n	k.mu.Lock()", "	k.mu.Lock()", nil},
	{"an engine one of whose shards hangs keeps its lease", "internal/cluster/lease.go",
		"age > t.n.cfg.Options.Lease {", "age > 1000*t.n.cfg.Options.Lease {", nil},
	{"a shard that hangs keeps the slots of its runs", "internal/owner/scheduler.go",
		"				l.close()\n", "				_ = l\n", nil},
	{"a slot that was given back is used by the next membership", "internal/owner/gate.go",
		"if d.Slot.Of(g.capacity) && d.Slot.Take() {", "if d.Slot.Take() {", nil},
	{"calls that may not be interrupted are told to stop", "machine/attempt.go",
		"!do.ReadOnly && !do.Cancellable {", "false && do.ReadOnly {", nil},
	{"an engine that lapsed does not join again", "internal/cluster/lease.go",
		"if overFor(err) {\n\t\tt.end(err)\n\t\treturn store.Tick{}, err", "if overFor(err) {\n\t\treturn store.Tick{}, err", nil},
	// Families, notifications and limits over all engines.
	{"a child that has succeeded is not undone with its parent", "internal/children/step.go",
		"case e.status != status.RunSucceeded:", "case e.status.Final():", nil},
	{"an undo ends before its child run is undone", "internal/children/step.go",
		"case w.undone:\n\t\treturn nil", "case w.undone:\n\t\tw.finish(sdk.Reply{Outcome: sdk.OutcomeResult}, nil)\n\t\treturn nil", nil},
	{"a deadline ends the call for an open child run", "machine/expire.go",
		"if d.caller().outlast(i) {\n\t\treturn\n\t}\n\tn := d.edit(i)", "n := d.edit(i)", nil},
	{"a takeover does not send the calls for child runs again", "machine/verbs.go",
		"if d.get(i).Open() && !d.caller().attach(i) {", "if d.get(i).Open() {", nil},
	{"a run in line starts its steps", "machine/forward.go",
		"if r.Awaits {\n\t\treturn\n\t}\n\td.first()", "d.first()", []mutant{
			{file: "machine/decider.go", old: "d.run.Finished == 0 && !d.run.Awaits\n", new: "d.run.Finished == 0\n"}}},
	{"a limit of open runs admits one more", "store/memory/rooms.go",
		"if taken >= int(r.share.Limit) {", "if taken > int(r.share.Limit) {", []mutant{
			{file: "store/memory/rooms.go", old: "if len(holders) >= int(p.Limit) ||", new: "if len(holders) > int(p.Limit) ||"}}},
	{"max_concurrency does not count", "internal/limits/limits.go",
		"if a.slots.free(now) < n {", "if false {", []mutant{
			{file: "internal/limits/slots.go", old: "return max(0, s.limit-s.used)", new: "return max(1, s.limit-s.used)"}}},
	{"rate_limit does not count", "internal/limits/calls.go",
		"\tc.used++\n\tc.last", "\tc.last", nil},
	{"a state is not announced", "internal/owner/record.go",
		"t.Announce = append(t.Announce, state)", "_ = append(t.Announce, state)", nil},
	{"a parked run waits in line for a slot", "internal/owner/run.go",
		" && current != status.RunParked", "", nil},
	{"a call does not find the child run that was submitted before", "internal/children/step.go",
		"\tchild, err = w.attach(ctx, sub.Run)\n\treturn child, false, err\n}", "\treturn 0, false, err\n}", nil},
	{"catch.output reads another failure", "machine/scope.go",
		"ErrorCode: m.Code,", "ErrorCode: m.Message,", nil},
	// Migrations.
	{"a child run has the first definition of its parent", "internal/submit/maker.go",
		"\tdigest := s.Child.Flow.Digest\n", "\tdigest := s.Child.Flow.Digest\n\tif s.Child.Priority == nil {\n\t\tif row, err := store.Complete(m.cfg.Store).Run(ctx, s.Child.Parent); err == nil {\n\t\t\tif wf, err := m.cfg.Defs.Workflow(ctx, row.Workflow); err == nil {\n\t\t\t\tdigest = wf.Digest\n\t\t\t}\n\t\t}\n\t}\n", nil},
	{"a group has the first definition of its run", "internal/submit/maker.go",
		"\tdigest := s.Child.Flow.Digest\n", "\tdigest := s.Child.Flow.Digest\n\tif s.Child.Priority != nil {\n\t\tif row, err := store.Complete(m.cfg.Store).Run(ctx, s.Child.Parent); err == nil {\n\t\t\tif wf, err := m.cfg.Defs.Workflow(ctx, row.Workflow); err == nil {\n\t\t\t\tdigest = wf.Digest\n\t\t\t}\n\t\t}\n\t}\n", nil},
	{"a notification has the first definition of its run", "internal/notify/notify.go",
		"defs.Beside(ctx, run.Workflow(), block.Flow.Name)", "defs.Beside(ctx, run.Head.Workflow, block.Flow.Name)", nil},
	{"a snapshot forgets the migrations", "journal/snapshot.go",
		"for _, m := range p.State.Run().Moves {", "for _, m := range p.State.Run().Moves[:0] {", nil},
	{"the name of a child run follows the new name of its step", "internal/children/step.go",
		"naming.ChildName(w.Name, step.KeyName()+", "naming.ChildName(w.Name, step.Name+", nil},
	{"the row of a run keeps its first definition", "internal/owner/record.go",
		"t.Moved = store.WorkflowID(to)", "_ = store.WorkflowID(to)", nil},
	{"a step that is in flight may be removed", "moving/plan.go",
		"\tcase c.open(n):\n\t\tc.inFlight(s, \"the new definition does not have the step\")", "\tcase c.open(n) && n == nil:\n\t\tc.inFlight(s, \"the new definition does not have the step\")", []mutant{
			{file: "moving/plan.go", old: "!untouched(n) && !harmless(n) || n.Clearing:", new: "!untouched(n) && !harmless(n) && !c.open(n) || n.Clearing:"}}},
	{"a finished step may be removed", "moving/plan.go",
		"case n.State != status.StepSkipped && !untouched(n) && !harmless(n) || n.Clearing:", "case n.Clearing:", nil},
}

// T30: the faults are planted one by one, and worlds are run until one of
// them notices. MUTANTS=all plants all of them; without it only a few are
// planted, and the list is checked to fit the source.
func TestMutants(t *testing.T) {
	all := os.Getenv("MUTANTS") == "all"
	engine, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for k, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			dir := t.TempDir()
			replace := plant(t, m, engine, dir)
			if !all && k%20 != 1 {
				return
			}
			bin := build(t, dir, replace)
			const enough = 4000
			for from := uint64(1); from < enough; from += block {
				out, err := hunt(t.Context(), 2*time.Minute, bin, from, block)
				if err == nil {
					continue
				}
				if errors.Is(err, errRestless) {
					t.Logf("from %d: it never comes to rest", from)
					return
				}
				if !strings.Contains(out, "--- FAIL: TestWorlds") && !strings.Contains(out, "panic: ") && !strings.Contains(out, "fatal error: ") {
					t.Fatalf("the mutant was not tried: %v\n%s", err, out)
				}
				for line := range strings.Lines(out) {
					if strings.Contains(line, "FAULT") || strings.HasPrefix(line, "panic: ") {
						t.Logf("from %d: %s", from, strings.TrimSpace(line))
						return
					}
				}
				t.Logf("from %d: %.300s", from, out)
				return
			}
			t.Error("the mutant survives")
		})
	}
}

// plant writes the changed sources into dir. It returns for each original file the path
// of its changed copy.
func plant(t *testing.T, m mutant, engine, dir string) map[string]string {
	t.Helper()
	replace, texts := map[string]string{}, map[string]string{}
	for _, e := range append([]mutant{m}, m.also...) {
		path := filepath.Join(engine, filepath.FromSlash(e.file))
		if texts[path] == "" {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			texts[path] = string(data)
		}
		if n := strings.Count(texts[path], e.old); n != 1 {
			t.Fatalf("the piece to replace occurs %d times in %s: %q", n, e.file, e.old)
		}
		texts[path] = strings.Replace(texts[path], e.old, e.new, 1)
		replace[path] = filepath.Join(dir, strings.ReplaceAll(e.file, "/", "_"))
		if err := os.WriteFile(replace[path], []byte(texts[path]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return replace
}
