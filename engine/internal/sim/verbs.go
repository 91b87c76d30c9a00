package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/operator"
	"github.com/saga-engine/engine/engine/story"
)

// meddle sends verbs to runs at random times until the faults have ended.
func (w people) meddle(ctx context.Context) {
	for wait.For(ctx, time.Duration(300+w.draw(4000))*time.Millisecond) == nil && !w.isHealed() {
		s := w.some()
		if s == nil {
			continue
		}
		switch w.draw(11) {
		case 8, 9, 10:
			if early := w.early(); early != nil {
				s = early
			}
			w.signal(ctx, s)
		case 0:
			w.ask(ctx, s.id, "cancel", machine.CancelRequested{})
		case 1:
			w.ask(ctx, s.id, "cancel --no-compensate", machine.CancelRequested{NoCompensate: true})
		case 2, 3:
			w.ask(ctx, s.id, "pause", machine.PauseRequested{})
		case 4, 5:
			w.ask(ctx, s.id, "resume", machine.ResumeRequested{})
		case 6:
			w.ask(ctx, s.id, "retry", machine.RetryRequested{})
		default:
			w.mend(ctx, s)
		}
	}
}

// hasten sends a verb to a run that was just submitted and has no owner yet. The verb is
// cancel, pause or none, at random. hasten simulates a person who notices a mistake at once.
func (w registry) hasten(ctx context.Context, run status.RunID) {
	if !w.conditions.detached || !w.conditions.verbs {
		return
	}
	switch w.draw(4) {
	case 0:
		w.people().ask(ctx, run, "cancel", machine.CancelRequested{})
	case 1:
		w.people().ask(ctx, run, "pause", machine.PauseRequested{})
	}
}

// signal sends the signal of a wait step, whether or not a step waits for it. On average, one
// signal of eight makes the step fail, and one of four is sent twice with the same id.
func (w people) signal(ctx context.Context, s *runLog) {
	sig := machine.SignalReceived{Name: "go"}
	switch w.draw(8) {
	case 0:
		sig.Fail = "not_now"
	case 1, 2:
		sig.ID = fmt.Sprintf("id-%d", w.draw(1000))
		w.ask(ctx, s.id, "signal go", sig)
	case 3:
		sig.Name = "stay"
	}
	if w.kin != nil {
		sig.Payload = w.kin.payload(w.draw(3))
	}
	w.ask(ctx, s.id, "signal "+sig.Name+" "+sig.Fail, sig)
}

// early returns a random run that has a group with a wait step for the signal "go", if this group
// has not started. In one of three calls, or if there is no such run, early returns nil.
func (w people) early() *runLog {
	if w.kin == nil || w.draw(3) == 0 {
		return nil
	}
	w.mu.Lock()
	var found []*runLog
	for _, s := range w.order {
		if s.flow == nil || s.state.Status().Final() || s.state.NodeCount() < len(s.flow.Steps) {
			continue
		}
		for i, step := range s.flow.Steps {
			if n := s.state.Nodes()[i]; step.AwaitsInside("go") && !n.Ended() && n.Fwd.Ready == 0 {
				found = append(found, s)
				break
			}
		}
	}
	w.mu.Unlock()
	if len(found) == 0 {
		return nil
	}
	return found[w.draw(len(found))]
}

func (w people) status(s *runLog) status.RunState {
	w.mu.Lock()
	defer w.mu.Unlock()
	return s.state.Status()
}

// some chooses a run at random and returns it. The result is nil if there is no run. It is also nil
// if the chosen run is the poisonous run or a notification: some does not choose again.
func (w people) some() *runLog {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.order) == 0 {
		return nil
	}
	// Verbs to the poisonous run are left out: a retry would start this run again.
	if s := w.order[w.rng.IntN(len(w.order))]; s.name != poisonName && !announces(s) {
		return s
	}
	return nil
}

// ask sends a verb to a run in the name of a random person, and records the verb in the field
// `questions`. It records nothing if the verb is refused at once.
func (w people) ask(ctx context.Context, run status.RunID, name string, verb machine.Event) {
	by := fmt.Sprintf("person-%d", w.draw(1000))
	w.kin.hitRun("verb", run)
	op := &operator.Operator{Store: w.store, Defs: definitions(w.world)}
	id, err := op.Ask(ctx, run, signed(verb, by), by)
	w.trace("%s asks run %d to %s: message %d %v", by, run, name, id, err)
	var refused *operator.RefusedError
	if errors.As(err, &refused) {
		w.kin.declined(verb)
	}
	switch {
	case err == nil:
		w.mu.Lock()
		w.questions = append(w.questions, question{id, run, name, by})
		w.mu.Unlock()
	case !errors.As(err, &refused) && ctx.Err() == nil:
		w.fault("ask run %d to %s: %v", run, name, err)
	}
}

// signed returns the verb with a reason added, and with the parameter `by` as the person's name.
func signed(verb machine.Event, by string) machine.Event {
	const why = "because"
	switch v := verb.(type) {
	case machine.CancelRequested:
		v.By, v.Reason = by, why
		return v
	case machine.PauseRequested:
		v.By, v.Reason = by, why
		return v
	case machine.ResumeRequested:
		v.By, v.Reason = by, why
		return v
	case machine.RetryRequested:
		v.By, v.Reason = by, why
		return v
	case machine.CompensateRequested:
		v.By, v.Reason = by, why
		return v
	case machine.SettleRequested:
		v.By, v.Reason = by, why
		return v
	case machine.Migrated:
		v.By, v.Reason = by, why
		return v
	case machine.SignalReceived:
		v.By, v.Reason = by, why
		return v
	}
	return verb
}

// mend sends a verb to a paused run or a run that needs a person, so that the run can continue. A
// verb may state the outcome of a step. Before mend sends such a verb, it waits until no call can
// be in flight, so that the stated outcome is true (settle).
func (w people) mend(ctx context.Context, s *runLog) {
	w.mu.Lock()
	ended := s.state.Status()
	var doubtful, undone []story.NodeView
	flow := s.flow
	latest := w.latest
	for v := range story.Nodes(s.state, s.flow) {
		switch {
		case v.Each:
		case v.State == status.StepUndoFailed:
			undone = append(undone, v)
		case v.Effect == status.EffectMaybe && s.flow.Steps[v.Step].Child == nil:
			doubtful = append(doubtful, v)
		}
	}
	w.mu.Unlock()
	switch {
	case ended == status.RunPaused:
		w.ask(ctx, s.id, "resume", machine.ResumeRequested{})
	case !ended.NeedsHuman():
	case len(undone) > 0:
		v := undone[w.draw(len(undone))]
		if w.draw(3) == 0 {
			w.ask(ctx, s.id, "compensate --skip "+v.Name, machine.CompensateRequested{Step: v.Name, Skip: true})
		} else {
			w.ask(ctx, s.id, "compensate --retry "+v.Name, machine.CompensateRequested{Step: v.Name, Retry: true})
		}
	case len(doubtful) > 0 && w.draw(2) == 0:
		if wait.For(ctx, time.Until(latest)+3*time.Second) == nil {
			w.settle(ctx, s, flow, doubtful[w.draw(len(doubtful))])
		}
	case w.draw(3) == 0:
		w.ask(ctx, s.id, "retry", machine.RetryRequested{})
	case w.draw(2) == 0:
		w.ask(ctx, s.id, "compensate", machine.CompensateRequested{})
	default:
		w.ask(ctx, s.id, "cancel", machine.CancelRequested{})
	}
}

// settle sends a verb that states the true outcome of a step. It reads the outcome in the ledger of
// the remote service. The parameter v is the node of the step, and the parameter `flow` is the
// workflow with this node.
func (w people) settle(ctx context.Context, s *runLog, flow *dsl.Workflow, v story.NodeView) {
	verb := machine.SettleRequested{Step: v.Name, As: machine.SettleNotDone}
	if w.remote.did(v.IdempotencyKey) {
		verb.As = machine.SettleSucceeded
		data, err := json.Marshal(w.remote.stated(v.IdempotencyKey))
		if err == nil {
			verb.Output, err = stated(flow.Steps[v.Step].Do, data)
		}
		if err != nil {
			w.fault("settle %s: %v", v.Name, err)
			return
		}
	}
	w.ask(ctx, s.id, fmt.Sprintf("settle %s as %d", v.Name, verb.As), verb)
}

// askedLocked reports whether a verb that was sent to the run still waits for its answer.
func (w people) askedLocked(s *runLog) bool {
	for _, q := range w.questions {
		if q.run == s.id && len(s.answers[int64(q.id)]) == 0 {
			return true
		}
	}
	return false
}
