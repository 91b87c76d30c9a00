package agents

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/sdk"
	"github.com/saga-engine/engine/sdk/plugin"
)

var _ invoke.Started = (*activeCall)(nil)

// Invoke sends a call to a process of its agent and waits for the reply. See invoke.Invoker.
func (p *Pool) Invoke(ctx context.Context, call invoke.Call) (sdk.Reply, error) {
	if err := ctx.Err(); err != nil {
		return sdk.Reply{}, notSent(err)
	}
	type result struct {
		reply sdk.Reply
		err   error
	}
	done := make(chan result, 1)
	f := &activeCall{call: call, done: func(reply sdk.Reply, err error) { done <- result{reply, err} }}
	p.launch(f)
	for stop := call.Stop; ; {
		select {
		case r := <-done:
			return r.reply, r.err
		case <-stop:
			f.Stop()
			stop = nil
		case <-ctx.Done():
			f.cut(ctx.Err())
			r := <-done
			return r.reply, r.err
		}
	}
}

// Start sends a call to a process of its agent and does not wait for the reply. The Pool passes the
// reply or an error to the function in the parameter `done`, perhaps before Start returns. See
// invoke.AsyncInvoker.
func (p *Pool) Start(ctx context.Context, call invoke.Call, done func(sdk.Reply, error)) invoke.Started {
	f := &activeCall{call: call, done: done}
	if err := ctx.Err(); err != nil {
		f.fail(notSent(err))
		return nil
	}
	if ctx.Done() != nil {
		f.ctx = ctx
		p.watch(ctx)
	}
	p.launch(f)
	if err := ctx.Err(); err != nil {
		f.cut(err) // ctx may have ended before the call was in agent.watched
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over && !f.sent {
		return nil
	}
	return f
}

func (p *Pool) launch(f *activeCall) {
	p.mu.Lock()
	a, err := p.agentLocked(&f.call.Agent)
	if err != nil {
		p.mu.Unlock()
		f.fail(&invoke.Deferred{Why: err.Error()})
		return
	}
	p.work.Add(1)
	p.mu.Unlock()
	f.agent = a
	f.start()
}

// watch registers a function that cuts off all calls with this ctx when ctx ends. If several
// calls have the same ctx, only the first call of watch registers a function.
func (p *Pool) watch(ctx context.Context) {
	done := ctx.Done()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctxs[done] {
		return
	}
	p.ctxs[done] = true
	context.AfterFunc(ctx, func() {
		p.mu.Lock()
		delete(p.ctxs, done)
		agents := make([]*agent, 0, len(p.agents))
		for _, a := range p.agents {
			agents = append(agents, a)
		}
		p.mu.Unlock()
		for _, a := range agents {
			for _, f := range a.watchedBy(done) {
				f.cut(ctx.Err())
			}
		}
	})
}

// start begins the call. If no slot of the agent is free, or the breaker does not let the call
// through, start ends the call with a *Deferred.
func (f *activeCall) start() {
	a := f.agent
	a.mu.Lock()
	if a.spec.MaxConcurrency > 0 && a.calls >= a.spec.MaxConcurrency {
		a.mu.Unlock()
		f.fail(&invoke.Deferred{Why: "full"})
		a.pool.work.Done()
		return
	}
	a.calls++
	a.mu.Unlock()
	var err error
	f.verdict, err = a.breaker.allow()
	ctx := f.ctx
	a.mu.Lock()
	// f.verdict must be set before this line: as soon as the call is in agent.watched, the pool
	// calls the method `cut` when ctx ends, and this method uses f.verdict.
	a.watchLocked(f)
	a.mu.Unlock()
	if ctx != nil && ctx.Err() != nil {
		f.cut(ctx.Err()) // ctx may have ended before the call was added to agent.watched
	}
	if err != nil {
		f.land(sdk.Reply{}, err)
		return
	}
	f.route()
}

// route gives the call to a ready process. If no process is ready, another goroutine waits until
// one is ready, and gives the call to it.
func (f *activeCall) route() {
	a, now := f.agent, time.Now()
	left := f.call.Request.TimeLeft(now)
	if left <= 0 {
		f.land(sdk.Reply{}, notSent(context.DeadlineExceeded))
		return
	}
	a.mu.Lock()
	l, err := a.readyLocked(now, false)
	f.life, f.counted = l, l != nil
	a.mu.Unlock()
	switch {
	case err != nil:
		f.land(sdk.Reply{}, notSent(err))
	case l == nil:
		go f.await(left)
	default:
		f.send()
	}
}

// await waits until a process is ready, and gives the call to this process. It waits at most for
// the duration `left`.
func (f *activeCall) await(left time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), left) // ends early if the method `cut` calls cancel
	defer cancel()
	f.mu.Lock()
	f.search = cancel
	if f.over {
		cancel()
	}
	f.mu.Unlock()
	l, err := f.agent.acquire(ctx, false)
	if err != nil {
		f.land(sdk.Reply{}, notSent(err))
		return
	}
	f.agent.mu.Lock()
	f.life, f.counted = l, true
	f.agent.mu.Unlock()
	f.send()
}

// send gives the call to the process f.life. If the time Call.StartBy has passed, send does not do
// this, and ends the call with a *Deferred. If the method `cut` has ended the call already, send
// only removes the call from the counts of the process.
func (f *activeCall) send() {
	f.mu.Lock()
	f.search = nil
	if by := f.call.StartBy; !f.over && !by.IsZero() && time.Now().After(by) {
		f.mu.Unlock()
		f.leave()
		f.land(sdk.Reply{}, &invoke.Deferred{Why: invoke.WhyTooSlow})
		return
	}
	if f.over { // the method `cut` has ended the call
		f.mu.Unlock()
		f.leave()
		f.agent.pool.work.Done()
		return
	}
	f.sent = true
	f.sendings++
	mine := f.sendings
	f.mu.Unlock()
	f.booked = bookedCall{knownCall: knownCall{
		tag: callTag{f.call.Request.Run, f.call.Request.Step, f.call.Request.Attempt},
		run: f.call.Run, scrub: f.call.Scrub, secrets: f.call.Secrets, process: f.life.number(),
	}}
	f.agent.book.begin(&f.booked)
	o := plugin.CallOptions{OnExpired: f.expired, OnLate: f.call.OnLate}
	if f.call.OnProgress != nil {
		o.OnEvent = f.progress
	}
	// The process does not get the ctx of the call. If there is no answer, the call ends at
	// complete-by, or because the method Stop or `cut` cancels it.
	ongoing := f.life.process.Start(context.Background(), f.call.Request, o, f.answered)
	f.mu.Lock()
	// If the numbers differ, the process has already answered, and the call was sent again. Then
	// f.ongoing belongs to the newer sending.
	if f.sendings == mine {
		f.ongoing = ongoing
	}
	unwanted := f.stopped
	f.mu.Unlock()
	if unwanted {
		ongoing.Cancel()
	}
}

// cut ends the call at once. If a process has the call, cut reports the error in the parameter
// `why` to the caller, and notifies the agent that the answer is not needed any more. If no process
// has the call, cut reports a *Deferred with this reason. A call that was sent still counts as a
// call of the process until the answer arrives or complete-by passes.
func (f *activeCall) cut(why error) {
	f.mu.Lock()
	search, sent := f.search, f.sent
	f.mu.Unlock()
	if sent {
		f.finish(sdk.Reply{}, why)
	} else {
		f.finish(sdk.Reply{}, notSent(why))
	}
	f.Stop()
	if search != nil {
		search()
	}
}

// expired is called when complete-by passes without an answer. It returns how long the engine waits
// for a late reply.
func (f *activeCall) expired() time.Duration {
	listen := f.life.expires(f)
	f.finish(sdk.Reply{}, fmt.Errorf("agent %s did not answer: %w", f.agent.spec.Name, context.DeadlineExceeded))
	return listen
}

// answered handles the reply of the process. If err is not nil, the process gave no reply to the
// call, and err says why.
func (f *activeCall) answered(reply sdk.Reply, err error) {
	a := f.agent
	a.mu.Lock()
	now := time.Now()
	if err == nil && reply.Code != sdk.CodeAgentLost {
		f.life.expired, f.life.answered = 0, now
	}
	f.leaveLocked(now)
	a.mu.Unlock()
	last := now.Add(printDelay)
	// In these cases the process has usually ended, and begins no other call. So its log lines may
	// belong to this call, however late they arrive.
	if reply.Code == sdk.CodeAgentLost || errors.Is(err, plugin.ErrExited) || errors.Is(err, context.Canceled) {
		last = time.Time{}
	}
	a.book.end(&f.booked, last)
	switch {
	case errors.Is(err, plugin.ErrNotSent):
		if errors.Is(err, plugin.ErrExited) && f.again() {
			return
		}
		err = notSent(err)
	case errors.Is(err, context.Canceled):
		// The engine had asked the agent to stop. The process or its session ended without an
		// answer to the call.
		reply, err = sdk.Reply{
			Outcome: sdk.OutcomeUnknown, Code: sdk.CodeAgentLost,
			Message: fmt.Sprintf("agent %s ended after the engine had asked it to stop", a.spec.Name),
		}, nil
	}
	f.land(reply, err)
}

// again gives the call to another process and returns true. This is safe because the former process
// has certainly not received the call. If the call has ended meanwhile, the method `again` does
// nothing and returns false.
func (f *activeCall) again() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		return false
	}
	f.sent, f.ongoing = false, nil
	go f.route() // in a new goroutine: the caller may be the goroutine that receives answers
	return true
}

// land reports the outcome of a call on which no process works any more. Pool.Close waits until
// every call is reported.
func (f *activeCall) land(reply sdk.Reply, err error) {
	f.finish(reply, err)
	f.agent.pool.work.Done()
}

// finish reports the outcome to the breaker and the caller, and frees the slot of the call. A
// second call of finish does nothing.
func (f *activeCall) finish(reply sdk.Reply, err error) {
	f.mu.Lock()
	if f.over {
		f.mu.Unlock()
		return
	}
	f.over = true
	f.mu.Unlock()
	if f.call.OnProgress != nil {
		f.reporting.Lock()
		f.silenced = true
		f.reporting.Unlock()
	}
	a := f.agent
	if f.verdict != nil {
		f.verdict(verdict(reply, err, f.call.Request.CompleteBy))
		a.breaker.report()
	}
	a.mu.Lock()
	a.calls--
	a.unwatchLocked(f)
	a.mu.Unlock()
	a.freed()
	f.done(reply, err)
}

// fail ends a call with an error. It must be called before agent.calls includes the call.
func (f *activeCall) fail(err error) {
	f.mu.Lock()
	f.over = true
	f.mu.Unlock()
	f.done(sdk.Reply{}, err)
}

// leave removes the call from the counts of its process.
func (f *activeCall) leave() {
	f.agent.mu.Lock()
	defer f.agent.mu.Unlock()
	f.leaveLocked(time.Now())
}

func (f *activeCall) leaveLocked(now time.Time) {
	l := f.life
	if f.listening {
		f.listening = false
		l.listening--
	}
	if f.counted {
		f.counted = false
		l.leaveLocked(now)
	}
}

// progress passes a heartbeat or a checkpoint of the running call to OnProgress. It ignores
// both after the call has ended for its caller.
func (f *activeCall) progress(ev sdk.Event) {
	f.reporting.Lock()
	defer f.reporting.Unlock()
	if f.silenced {
		return
	}
	switch ev := ev.(type) {
	case sdk.Heartbeat:
		f.call.OnProgress(invoke.Progress{Number: int(ev.Progress * 100), Note: ev.Note})
	case sdk.Checkpoint:
		blob := ev.Blob
		if blob == nil {
			blob = []byte{} // nil would mean a heartbeat
		}
		f.call.OnProgress(invoke.Progress{Number: int(ev.Number), Blob: blob})
	}
}

// expires records that the process did not answer a call in time. It returns how long the engine
// waits for a late reply; 0 = not at all. If the process did not answer many calls in a row, and
// another process of the agent answered meanwhile, the remote service is not the reason (S69). Then
// expires replaces the process.
func (l *life) expires(f *activeCall) time.Duration {
	a := l.instance.agent
	a.mu.Lock()
	if !f.counted { // the answer arrived at the same time, and the method `answered` ran first
		a.mu.Unlock()
		return 0
	}
	now := time.Now()
	f.leaveLocked(now)
	if l.expired++; l.expired == 1 {
		l.since = now
	}
	slow := false
	if limit := a.pool.opts.SlowAfter; limit > 0 && l.expired >= limit {
		for _, other := range a.instances {
			o := other.life
			slow = slow || o != l && o.takesLocked() && o.expired == 0 && o.answered.After(l.since)
		}
	}
	listen := time.Duration(0)
	if l.listening < maxListening {
		l.listening++
		f.listening = true
		listen = listenFor
	}
	a.mu.Unlock()
	if slow {
		l.drain("it does not answer in time, but other processes of the agent do")
	}
	return listen
}
