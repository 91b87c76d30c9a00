package sim

import (
	"context"
	"log/slog"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/story"
	"github.com/saga-engine/engine/sdk"
)

// A line (this type, not the line of runs that wait) connects one engine to the remote service. It
// implements invoke.Invoker.
type line struct {
	world *world
	node  *node
}

type answer struct {
	reply sdk.Reply
	ok    bool
}

// Invoke implements invoke.Invoker. A call may have its effect even if its answer is lost or
// late. An answer may be delivered a second time, to any engine.
func (l *line) Invoke(ctx context.Context, call invoke.Call) (sdk.Reply, error) {
	w := l.world
	id, err := w.registry().called(l.node, call)
	if err != nil {
		return sdk.Reply{}, err
	}
	n := l.node.n
	if err := w.agentGates[n].wait(ctx); err != nil { // the call waits while the gate is closed
		return sdk.Reply{}, err
	}
	work, cancel := ctx, context.CancelFunc(func() {})
	if w.conditions.orphans { // the agent continues the call even if the engine ends
		work, cancel = context.WithDeadline(context.WithoutCancel(ctx), call.Request.CompleteBy)
	}
	work, interrupt := context.WithCancel(work)
	if call.Stop != nil {
		go func() {
			select {
			case <-call.Stop:
				w.registry().interrupted(call.Request)
				interrupt()
			case <-work.Done():
			}
		}()
	}
	answers := make(chan answer, 1)
	opts := sdk.InvokeOptions{Logger: slog.New(slog.DiscardHandler)}
	landed := func() {}
	if w.kin != nil {
		landed = w.kin.departs(call)
		opts.OnEvent = progress(ctx, call)
	}
	go func() {
		defer cancel()
		defer interrupt()
		defer landed()
		reply, ok := w.remote.agent.Invoke(work, call.Request, opts)
		answers <- answer{reply, ok}
	}()
	select {
	case a := <-answers:
		if a.ok {
			return l.back(ctx, call, id, a.reply)
		}
	case <-ctx.Done():
		return sdk.Reply{}, ctx.Err()
	}
	<-ctx.Done()
	return sdk.Reply{}, ctx.Err()
}

// interrupted checks a call that the engine asked the agent to stop. The action must declare that
// it may be interrupted, because the outcome of an interrupted call of any other action is unknown.
// An action with heartbeats may be stopped, too: the engine stops its call when the heartbeats are
// missing, and then the outcome is unknown already.
func (w registry) interrupted(req sdk.Request) {
	w.trace("told to stop %s %s %s", req.Run, req.Step, req.Action)
	schema, err := w.remote.agent.Schema()
	if a := schema.Actions[req.Action]; err != nil || req.Purpose != sdk.PurposeDo || !a.Cancellable && !a.ReadOnly && !a.Heartbeats && req.Action != "raw" {
		w.fault("%s: %s is told to stop although %s may not be interrupted (%v)", req.Run, req.Step, req.Action, err)
	}
}

// back returns an agent's answer to the engine. At random, it loses the answer, delays the answer
// until complete-by has passed, or delivers it a second time.
func (l *line) back(ctx context.Context, call invoke.Call, id machine.AttemptID, reply sdk.Reply) (sdk.Reply, error) {
	w := l.world
	if err := w.agentGates[l.node.n].wait(ctx); err != nil {
		return sdk.Reply{}, err
	}
	if w.draws(w.conditions.double) {
		w.kin.hitCall("reply twice", call)
		w.registry().again(call, id, reply)
	}
	switch {
	case w.draws(w.conditions.loseReplies):
		w.kin.hitCall("reply lost", call)
		<-ctx.Done()
		return sdk.Reply{}, ctx.Err()
	case w.draws(w.conditions.late):
		w.kin.hitCall("reply late", call)
		<-ctx.Done()
		if w.draw(2) == 0 { // the transport returns the late reply as if it had come in time
			w.registry().hear(l.node, call, id)
			return reply, nil
		}
		if call.OnLate != nil {
			w.trace("e%d hears late of %s %s", l.node.n, call.Request.Run, call.Request.Step)
			call.OnLate(reply)
		}
		return sdk.Reply{}, ctx.Err()
	}
	w.registry().hear(l.node, call, id)
	w.trace("e%d hears of %s %s: %d %s", l.node.n, call.Request.Run, call.Request.Step, reply.Outcome, reply.Code)
	return reply, nil
}

// again delivers an answer a second time, after a pause and to any engine.
func (w registry) again(call invoke.Call, id machine.AttemptID, reply sdk.Reply) {
	if id.Call == 0 {
		return
	}
	var event machine.Event
	switch reply.Outcome {
	case sdk.OutcomeFailed:
		event = machine.AttemptFailed{Attempt: id, Code: reply.Code, Message: reply.Message, Permanent: reply.Permanent}
	case sdk.OutcomeUnknown:
		event = machine.AttemptUnknown{Attempt: id, Code: reply.Code, Message: reply.Message}
	case sdk.OutcomeNotDone:
		event = machine.AttemptNotDone{Attempt: id}
	case sdk.OutcomeResult:
		ok := machine.AttemptOK{Attempt: id}
		if call.Request.Purpose == sdk.PurposeDo {
			value, err := w.output(call.Request, reply)
			if err != nil {
				w.fault("read what %s answered: %v", call.Request.Step, err)
				return
			}
			ok.Output = value
		}
		event = ok
	default:
		return
	}
	after := time.Duration(w.draw(8000)) * time.Millisecond
	go func() {
		if wait.For(w.ctx, after) != nil {
			return
		}
		n := w.nodes[w.draw(len(w.nodes))]
		if node := n.get(); node != nil {
			ctx, cancel := context.WithTimeout(w.ctx, 5*time.Second)
			defer cancel()
			w.hear(n, call, id)
			err := node.Deliver(ctx, call.Run, event)
			w.trace("e%d hears again of %s %s: %v", n.n, call.Request.Run, call.Request.Step, err)
		}
	}()
}

// hear records that an answer reached an engine before complete-by. If the attempt is open, hear
// compares store time with the complete-by of the attempt. If no attempt is open, it compares this
// process's time with the complete-by in the request, which is a time on the clock of the engine
// that sent the request.
func (w registry) hear(n *node, call invoke.Call, id machine.AttemptID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.stories[call.Run]
	if s == nil {
		return
	}
	now, by := time.Now(), call.Request.CompleteBy
	if a, ok := s.state.OpenAttempt(s.flow, id); ok && id.Call != 0 {
		now, by = w.now(), a.CompleteBy
	}
	if now.Before(by.Add(n.lag)) {
		s.heard[attempt{s.kin.first(call.Request.Step), call.Request.Attempt}]++
	}
}

// called checks a call before it is sent. By the engine's clock, the lease of the engine must not
// have expired, and complete-by must not have passed. The journal must have the attempt, because
// commits come before calls. No other engine may make calls with the same Request.Fence (I2, I4).
//
// called returns the id of the attempt. At random, it returns an *invoke.Deferred as the error, and
// the call is not sent.
func (w registry) called(n *node, call invoke.Call) (machine.AttemptID, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	req, now := call.Request, time.Now()
	w.traceLocked("e%d calls %s %s %s %d #%d fence %d key %s", n.n, req.Run, req.Step, req.Action, req.Purpose, req.Attempt, req.Fence, req.IdempotencyKey)
	if !now.Before(n.lease) {
		w.faultLocked("%s: engine %d calls %s after its lease lapsed", req.Run, n.n, req.Step)
	}
	if !now.Before(req.CompleteBy) {
		w.faultLocked("%s: engine %d calls %s after its complete-by", req.Run, n.n, req.Step)
	}
	if req.CompleteBy.After(w.latest) {
		w.latest = req.CompleteBy
	}
	id := machine.AttemptID{}
	s := w.stories[call.Run]
	if s == nil {
		w.faultLocked("%s: engine %d calls %s of a run that the journal does not know (I4)", req.Run, n.n, req.Step)
		return id, nil
	}
	id = s.find(s.flow, req)
	if w.healedAt.IsZero() && w.conditions.defers > 0 && w.rng.IntN(w.conditions.defers) == 0 {
		return id, &invoke.Deferred{Until: now.Add(time.Duration(w.rng.IntN(3000)) * time.Millisecond), Why: "circuit open"}
	}
	if !call.StartBy.IsZero() && now.After(call.StartBy) {
		return id, &invoke.Deferred{Until: now, Why: invoke.WhyTooSlow}
	}
	k := attempt{s.kin.first(req.Step), req.Attempt}
	if s.sent[k]++; s.sent[k] > s.started[k] {
		w.faultLocked("%s: attempt %d of %s is called %d times, the journal knows %d (I4)", req.Run, req.Attempt, req.Step, s.sent[k], s.started[k])
	}
	if fences := w.fences[call.Run]; fences == nil {
		w.fences[call.Run] = map[int64]int{req.Fence: n.n}
	} else if other, ok := fences[req.Fence]; ok && other != n.n {
		w.faultLocked("%s: engines %d and %d call under one fencing token %d (I2)", req.Run, other, n.n, req.Fence)
	} else {
		fences[req.Fence] = n.n
	}
	if w.kin != nil {
		w.kin.calledLocked(call)
	}
	return id, nil
}

// find returns the id of the open attempt to which a request belongs. It returns the zero id if
// no attempt or more than one attempt fits.
func (s *runLog) find(wf *dsl.Workflow, req sdk.Request) (id machine.AttemptID) {
	i, ok := s.state.FindNode(wf, s.kin.now(req.Step))
	if !ok {
		return id
	}
	for _, c := range story.Node(s.state, wf, i).Calls {
		does := c.Purpose == story.PurposeDo || c.Purpose == story.PurposeLearn
		if c.Status != "open" || c.Number != req.Attempt || does != (req.Purpose == sdk.PurposeDo) {
			continue
		}
		if id.Call != 0 {
			return machine.AttemptID{}
		}
		id = machine.AttemptID{Node: i, Call: c.Call}
	}
	return id
}
