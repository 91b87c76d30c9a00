package machine_test

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/saga-engine/engine/dsl"
)

// randomFlow makes a workflow that the linker could have made: sequences,
// diamonds, random graphs, loops over keys, with all kinds of actions, undos
// and limits.
func randomFlow(c *chooser) *dsl.Workflow {
	n := 1 + c.n(6)
	pivotAt := -1
	if c.chance(15) {
		pivotAt = c.n(n)
	}
	var items []any
	for i := range n {
		items = append(items, randomStep(c, i, n, pivotAt))
	}
	if c.chance(30) {
		items = append(items, runDeadline(time.Duration(20+c.n(280))*time.Second))
	}
	if c.chance(15) {
		items = append(items, manual)
	}
	if c.chance(20) {
		items = append(items, compensationDeadline(time.Duration(60+c.n(600))*time.Second))
	}
	return flow(items...)
}

func stepName(i int) string { return "s" + string(rune('a'+i)) }

// signalNames are those that random waits listen for.
var signalNames = []string{"go", "stop", "go stop", "inside"}

// randomQuiet makes a step that calls no agent.
func randomQuiet(c *chooser, i int) *spec {
	var options []option
	if c.chance(25) {
		keys := strings.Split("k,l,m,n", ",")
		options = append(options, each(keys[:c.n(5)]...))
		if c.chance(40) {
			options = append(options, parallel(1+c.n(3)))
		}
		if c.chance(40) {
			options = append(options, maxFailures(1+c.n(2)))
		}
	}
	if c.chance(40) {
		options = append(options, deadline(time.Duration(5+c.n(90))*time.Second))
	}
	if c.chance(25) {
		code := []string{"*", "no", "deadline_exceeded", "postcondition_failed"}[c.n(4)]
		options = append(options, catch(`{"instead":true}`, code))
	}
	if c.chance(15) {
		options = append(options, post)
	}
	if c.chance(5) {
		options = append(options, when(false))
	}
	if c.chance(3) {
		options = append(options, pre(false))
	}
	kind := c.n(3)
	if c.chance(40) {
		options = append(options, randomLoop(c))
		if c.chance(50) {
			kind = 2
		}
	}
	switch kind {
	case 1:
		return timer(stepName(i), time.Duration(c.n(60))*time.Second, options...)
	case 2:
		if c.chance(40) {
			options = append(options, goesOn)
		}
		s := await(stepName(i), signalNames[c.n(4)], options...)
		if c.chance(30) {
			s.Wait.Payload = rich
		}
		return s
	}
	return value(stepName(i), options...)
}

// rich is the type of a payload that other steps may take.
func rich(data []byte) (dsl.Value, error) {
	if string(data) == `"poor"` {
		return dsl.Value{}, errors.New("not what the step waits for")
	}
	return anyOutput(data)
}

func randomStep(c *chooser, i, n, pivotAt int) *spec {
	if i != pivotAt && c.chance(20) {
		s := randomQuiet(c, i)
		for j := range i {
			if j == pivotAt || c.chance(35) {
				after(stepName(j))(s)
			}
		}
		return s
	}
	s := do(stepName(i))
	kid := i != pivotAt && c.chance(15)
	if kid {
		s = randomChild(c, i)
	}
	for j := range i {
		switch {
		case i == pivotAt, j == pivotAt: // nothing runs beside the pivot
			after(stepName(j))(s)
		case c.chance(35):
			after(stepName(j))(s)
		}
	}
	if kid {
		return s
	}
	if c.chance(30) {
		agent("bank")(s)
	}
	switch c.pick(4, 4, 1) {
	case 1:
		idempotent(s)
	case 2:
		readOnly(s)
	}
	if c.chance(25) {
		lookup(s)
	}
	if c.chance(25) {
		cancellable(s)
	}
	if s.Undo != nil {
		randomUndo(c, s)
	}
	if i != pivotAt && c.chance(25) {
		keys := strings.Split("k,l,m,n", ",")
		each(keys[:c.n(5)]...)(s)
		if c.chance(40) {
			parallel(1 + c.n(3))(s)
		}
		if c.chance(40) {
			maxFailures(1 + c.n(2))(s)
		}
		switch {
		case c.chance(20):
			whenKey("k", "m")(s)
		case c.chance(8):
			when(false)(s)
		}
	} else if c.chance(8) {
		when(false)(s)
	}
	randomLimits(c, s)
	randomRerun(c, s, i == pivotAt)
	if i == pivotAt {
		pivot(s)
		return s
	}
	if c.chance(25) {
		randomLoop(c)(s)
		if i%2 == 1 { // without a choice, so that the other parts of the world stay as they were
			storesArguments(s)
		}
		if s.OnRerun == dsl.RerunUndoFirst {
			s.OnRerun = dsl.RerunDefault
		}
		if s.Undo != nil {
			s.Undo.Do.ByKey = false
		}
	}
	if c.chance(20) {
		code := []string{"*", "declined", "timeout", "deadline_exceeded", "postcondition_failed"}[c.n(5)]
		catch(`{"instead":true}`, code)(s)
	}
	if c.chance(15) {
		post(s)
	}
	if c.chance(15) {
		failWhen(c.chance(30))(s)
	}
	return s
}

func randomUndo(c *chooser, s *spec) {
	switch c.pick(4, 2, 3, 2) {
	case 1:
		undoBlind(s)
	case 2:
		undoByKey(s)
	case 3:
		noUndo(s)
		return
	}
	if c.chance(25) {
		undoOnce(s)
	}
	if c.chance(20) {
		undoLookup(s)
	}
	if c.chance(25) {
		undoTries(1 + c.n(3))(s)
	}
	if c.chance(15) {
		undoDeadline(time.Duration(10+c.n(100)) * time.Second)(s)
	}
	if c.chance(3) {
		s.Undo.Input = func(*dsl.Scope) (dsl.Value, error) { return dsl.Value{}, errBroken }
	}
}

// randomRerun gives a step checkpoints, heartbeats, and something to do with
// what earlier attempts left behind.
func randomRerun(c *chooser, s *spec, pivot bool) {
	if c.chance(20) {
		heartbeat(time.Duration(1+c.n(8)) * time.Second)(s)
	}
	switch {
	case c.chance(30):
		continueIt(s)
	case s.Undo != nil && !pivot && (s.Undo.Do.ByKey || !s.Undo.UsesSelf) && c.chance(50):
		undoFirst(s)
		if c.chance(60) {
			tries(2 + c.n(3))(s)
		}
	}
}

func randomLimits(c *chooser, s *spec) {
	r := &s.settings.Retry
	if c.chance(40) {
		tries(1 + c.n(4))(s)
	}
	if c.chance(40) {
		timeout(time.Duration(2+c.n(30)) * time.Second)(s)
	}
	if c.chance(15) {
		deadline(time.Duration(5+c.n(90)) * time.Second)(s)
	}
	r.Jitter = c.chance(30)
	if c.chance(20) {
		exhausted(dsl.Exhausted(c.n(4)))(s)
		r.CoolDown, r.CoolDowns = time.Duration(5+c.n(60))*time.Second, 1+c.n(2)
	}
	if c.chance(10) {
		notOn([]string{"timeout", "flaky", "agent_lost"}[c.n(3)])(s)
	}
	if c.chance(10) {
		on([]string{"declined", "invalid", "postcondition_failed", "precondition_failed"}[c.n(4)])(s)
	}
	if c.chance(3) {
		pre(false)(s)
	}
	if c.chance(3) {
		s.Input = func(*dsl.Scope) (dsl.Value, error) { return dsl.Value{}, errBroken }
	}
}

// describe writes a workflow down for the report of a failure.
func describe(wf *dsl.Workflow) string {
	var b strings.Builder
	for _, s := range wf.Steps {
		set, _ := s.Settings(&dsl.Scope{})
		fmt.Fprintf(&b, "  %s after %v agent %s", s.Name, s.After, s.Do.Agent)
		for _, f := range []struct {
			on   bool
			word string
		}{
			{s.Do.Idempotent, "idempotent"}, {s.Do.ReadOnly, "read_only"}, {s.Do.Lookup, "lookup"}, {s.Do.Cancellable, "cancellable"}, {s.Pivot, "pivot"},
			{s.NoUndo, "no_undo"}, {s.When != nil, "when"}, {s.WhenEach != nil, "when_each"}, {s.ForEach != nil, "for_each"}, {s.Catch != nil, "catch"},
			{len(s.Pre) > 0, "pre"}, {len(s.Post) > 0, "post"}, {s.Repeat != nil, "repeat"}, {s.Repeat != nil && s.Repeat.Collect != nil, "collect"},
			{s.Repeat != nil && s.Repeat.Until != nil, "until"},
		} {
			if f.on {
				fmt.Fprintf(&b, " %s", f.word)
			}
		}
		fmt.Fprintf(&b, " on_rerun %q heartbeat %v", s.OnRerun, set.HeartbeatTimeout)
		fmt.Fprintf(&b, " iterations %d", set.MaxIterations)
		fmt.Fprintf(&b, " timeout %v deadline %v tries %d exhausted %d cool_downs %d on %v not_on %v parallel %d",
			set.Timeout, set.Deadline.After, set.Retry.MaxAttempts, set.Retry.OnExhausted, set.Retry.CoolDowns, set.Retry.On, set.Retry.NotOn, set.MaxParallel)
		if s.Undo != nil {
			us, _ := s.Undo.Settings(&dsl.Scope{})
			fmt.Fprintf(&b, " undo{idempotent %v by_key %v self %v lookup %v tries %d deadline %v}",
				s.Undo.Do.Idempotent, s.Undo.Do.ByKey, s.Undo.UsesSelf, s.Undo.Do.Lookup, us.Retry.MaxAttempts, us.Deadline.After)
		}
		fmt.Fprintln(&b)
	}
	fmt.Fprintf(&b, "  pivot %d mode %d run deadline %v\n", wf.Pivot, wf.CompensationMode, wf.Deadline != nil)
	return b.String()
}
