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

// load submits short runs until stop is called: perSecond runs in each second. Nine of ten
// runs succeed, and the tenth is undone. load names the runs, so that it can repeat a
// submission whose outcome is not known. It pauses while more runs are open than it submits
// in ten seconds. stop waits until each run is accepted, and returns the number of accepted
// runs a second. In `make chaos`, the test fails if this is less than 70 % of perSecond,
// because then it proves nothing about that load. In `make test` one accepted run is enough,
// because the machine may be busy.
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

type load struct {
	w     *World
	flows []Flow
	defs  []*dsl.Definition
	vars  []dsl.Value
	every time.Duration
	batch int // number of runs submitted at once
	limit int // maximum number of open runs

	open                    []status.RunID
	accepted, again, waited int
}

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
				time.Sleep(time.Second) // asking the store for open runs costs more than submitting them
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

// submit sends the same batch again until all of its runs are accepted (I1).
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

// look removes runs that have ended from the list of open runs. Runs end approximately in the
// order in which they began.
func (l *load) look() {
	kept := l.open[:0]
	for i, run := range l.open {
		head, err := l.w.head(run)
		if err != nil { // the next call of look reads this run again
			kept = append(kept, l.open[i:]...)
			break
		}
		if !head.State.Final() && !head.State.NeedsHuman() {
			kept = append(kept, run)
		}
	}
	l.open = kept
}
