package chaos

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine/status"
)

// load submits perSecond short runs in each second, until the caller calls stop. Nine of ten runs
// succeed, and one of ten is undone. Each run gets a name, so that load can repeat a submission
// whose outcome is not known. load pauses while 10 * perSecond runs or more are open.
//
// stop waits until each submitted run is accepted. It returns the number of accepted runs per
// second. In `make chaos`, the test fails if this number is less than 70 % of perSecond. In
// `make test` one accepted run is enough, because the machine may be busy.
func (w *World) load(perSecond int) (stop func() int) {
	w.T.Helper()
	well := flowOf(w.URL, head,
		flowStep{Step{Name: "s0", Action: "do"}, "", "", ""},
		flowStep{Step{Name: "s1", Action: "do", After: []int{0}}, "", "", ""},
		flowStep{Step{Name: "s2", Action: "do", After: []int{1}}, "", "", ""},
	)
	undone := flowOf(w.URL, head,
		flowStep{Step{Name: "s0", Action: "do"}, "", "", ""},
		flowStep{Step{Name: "s1", Action: "do", After: []int{0}}, "refuse", "", ""},
		flowStep{Step{Name: "s2", Action: "do", After: []int{1}}, "deny", "", ""},
	)
	l := &load{w: w, flows: []Flow{well, undone}, every: 200 * time.Millisecond, limit: 10 * perSecond}
	l.batch = max(1, int(float64(perSecond)*l.every.Seconds()))
	for _, f := range l.flows {
		def := w.Define(f.Source)
		vars, diags := def.Workflow("w").Bind(nil)
		if diags.HasErrors() {
			w.T.Fatalf("bind: %v", diags.Err())
		}
		l.defs, l.vars = append(l.defs, def), append(l.vars, vars)
	}
	done := make(chan struct{})
	var wait sync.WaitGroup
	wait.Add(1)
	go func() {
		defer wait.Done()
		l.run(done)
	}()
	began := time.Now()
	halt := sync.OnceFunc(func() {
		close(done)
		wait.Wait()
	})
	w.T.Cleanup(halt)
	return func() int {
		w.T.Helper()
		halt()
		took := time.Since(began).Seconds()
		least := 1.0
		if full {
			least = 0.7 * float64(perSecond) * took
		}
		if float64(l.accepted) < least {
			w.T.Errorf("void: %d runs in %.0f s, %d a second were wanted; it waited %d times", l.accepted, took, perSecond, l.waited)
		}
		w.Note("%d runs accepted, %d submissions repeated, waited %d times", l.accepted, l.again, l.waited)
		return int(float64(l.accepted) / took)
	}
}

// A load is the state of World.load. The elements of the fields `flows`, `defs` and `vars` with the
// same index belong to the same workflow.
type load struct {
	w     *World
	flows []Flow // the workflow that succeeds, and the one that is undone
	defs  []*dsl.Definition
	vars  []dsl.Value
	every time.Duration // time between two batches
	batch int           // number of runs in a batch
	limit int           // number of open runs at which load pauses

	open []status.RunID // accepted runs that may still be open, oldest first
	// Numbers of accepted runs, of repeated submissions, and of pauses.
	accepted, again, waited int
}

// run submits batches of runs until the channel `done` is closed.
func (l *load) run(done <-chan struct{}) {
	ticker := time.NewTicker(l.every)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
		}
		if len(l.open) >= l.limit {
			if l.look(); len(l.open) >= l.limit {
				l.waited++
				time.Sleep(time.Second) // pause, because a call of look takes much time
				continue
			}
		}
		var all []engine.Submission
		var flows []Flow
		for i := range l.batch {
			k := 0
			if i%10 == 9 {
				k = 1
			}
			all = append(all, engine.Submission{Definition: l.defs[k], Workflow: "w", Vars: l.vars[k], By: "chaos", Name: fmt.Sprintf("load-%d", l.accepted+i)})
			flows = append(flows, l.flows[k])
		}
		l.submit(all, flows)
	}
}

// submit submits a batch of runs. It repeats the submission until all these runs are accepted
// (I1).
func (l *load) submit(all []engine.Submission, flows []Flow) {
	deadline := time.Now().Add(patience(time.Minute))
	for {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(l.w.T.Context()), 10*time.Second)
		out, err := engine.EnqueueAll(ctx, engine.Config{Store: l.w.store}, all)
		cancel()
		if err == nil && len(out) == len(all) {
			for i, sub := range out {
				l.w.adopt(Run{ID: sub.Run, Name: sub.Name, Flow: flows[i]})
				l.open = append(l.open, sub.Run)
			}
			l.accepted += len(out)
			return
		}
		if l.w.T.Context().Err() != nil { // the test has ended early
			return
		}
		if time.Now().After(deadline) {
			l.w.T.Errorf("nothing was accepted for so long: %v", err)
			return
		}
		l.again++
		time.Sleep(100 * time.Millisecond) // the database may be starting
	}
}

// look removes runs from the list of open runs if they have ended or need a person.
func (l *load) look() {
	kept := l.open[:0]
	for i, run := range l.open {
		head, err := l.w.head(run)
		if err != nil { // keep the run in the list, so that the next call of look reads it
			kept = append(kept, l.open[i:]...)
			break
		}
		if !head.State.Final() && !head.State.NeedsHuman() {
			kept = append(kept, run)
		}
	}
	l.open = kept
}
