package sdktest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/saga-engine/engine/sdk"
	"github.com/saga-engine/engine/sdk/schema"
)

// agentRule is a rule about the whole agent. The function `check` returns an error if the agent
// breaks the rule.
type agentRule struct {
	name, reason string
	check        func(*harness) error
}

// caseRule is a rule about one case. The function `applies` reports whether the rule applies to the
// case. If the rule applies, the function `check` is called. It returns an error if the agent
// breaks the rule.
type caseRule struct {
	name, reason string
	applies      func(*subject) bool
	check        func(*subject) error
}

func agentRules() []agentRule {
	return []agentRule{{
		"the schema is the same after it was written as JSON and read again",
		"workflows are checked against the schema that describe prints, long before the agent runs",
		schemaRoundTrip,
	}}
}

func caseRules() []caseRule {
	plain := func(s *subject) bool { return !s.Slow && !s.Panics }
	succeeds := func(s *subject) bool { return plain(s) && s.Code == "" }
	undone := func(s *subject) bool { return succeeds(s) && s.action.CompensatedBy != "" }
	return []caseRule{
		{
			"a call ends as the case says, with a declared code and an output that fits the schema",
			"codes decide what a workflow does next, and later steps read the output",
			plain, callEnds,
		},
		{
			"input that the action does not know is refused as invalid, without an effect",
			"a misspelt input must not be ignored, and must not end the agent process",
			func(s *subject) bool { return !s.Panics }, refusesNonsense,
		},
		{
			"the same key twice gives one effect and one result",
			"a reply can be lost after the work is done; the engine then calls an idempotent action again with the same key",
			func(s *subject) bool { return succeeds(s) && s.action.Idempotent }, sameKeyTwice,
		},
		{
			"the same key at the same time gives one effect",
			"an engine that was declared dead may still make calls after another engine has taken over its runs",
			func(s *subject) bool { return succeeds(s) && s.action.Idempotent }, sameKeyAtOnce,
		},
		{
			"a read-only action has no effect",
			"a workflow may call it where an effect could not be undone any more",
			func(s *subject) bool { return succeeds(s) && s.action.ReadOnly && s.Effects != nil }, readsOnly,
		},
		{
			"the undo reverts the effect, and may be repeated",
			"compensation is repeated until it succeeds, and its reply can be lost too",
			undone, undoes,
		},
		{
			"the undo of a call that was never made succeeds and does nothing",
			"when a call's outcome is unknown the engine undoes it, whether it happened or not",
			func(s *subject) bool { return undone(s) && s.undoByKey() }, undoesNothing,
		},
		{
			"a call that arrives after its own undo has no effect",
			"a delayed call would leave an effect that is never undone",
			func(s *subject) bool { return undone(s) && s.LateDo == "" && (s.undoByKey() || s.action.Idempotent) }, refusesLateCall,
		},
		{
			"the lookup says whether the call had its effect, and has no effect itself",
			"the engine relies on its answer, and does not repeat the call",
			func(s *subject) bool { return succeeds(s) && s.action.Lookup }, looksUp,
		},
		{
			"after complete-by the agent sends nothing, and the work stops",
			"after that time another attempt of the same step may be running",
			func(s *subject) bool { return s.Slow }, silentAfterDeadline,
		},
		{
			"a cancelled call ends within its grace",
			"the cancel of a run and every compensation wait for the end of the call",
			func(s *subject) bool { return s.Slow && s.action.Cancellable }, stopsWhenCancelled,
		},
		{
			"an action that declares heartbeats or checkpoints sends them",
			"without heartbeats the call counts as failed; without checkpoints the next attempt begins at the start",
			func(s *subject) bool {
				return s.Slow && (s.action.Heartbeats || s.action.Checkpoints)
			}, sendsEvents,
		},
		{
			"a panic is an unknown outcome, and the agent process continues",
			"other calls run in the same process",
			func(s *subject) bool { return s.Panics }, survivesPanic,
		},
	}
}

// undoByKey reports whether the undo of the action needs only the idempotency key of the call to
// undo, and not the output of that call.
func (s *subject) undoByKey() bool { return s.schema.Actions[s.action.CompensatedBy].ByKey }

func schemaRoundTrip(h *harness) error {
	data, err := json.Marshal(h.schema)
	if err != nil {
		return err
	}
	var again schema.Schema
	if err := json.Unmarshal(data, &again); err != nil {
		return err
	}
	data2, err := json.Marshal(again)
	if err != nil {
		return err
	}
	if !bytes.Equal(data, data2) {
		return fmt.Errorf("it reads back as %s, was %s", data2, data)
	}
	for name, a := range h.schema.Actions {
		undo, ok := h.schema.Actions[a.CompensatedBy]
		if a.CompensatedBy != "" && !ok {
			return fmt.Errorf("action %q is compensated by %q, which does not exist", name, a.CompensatedBy)
		}
		if !undo.ByKey {
			continue
		}
		for _, f := range undo.Inputs {
			if !f.Optional {
				return fmt.Errorf("input %q of %q, which is called by key, is not optional", f.Name, a.CompensatedBy)
			}
		}
	}
	return nil
}

func callEnds(s *subject) error {
	before := s.effects()
	key := s.key()
	reply, err := s.send(s.request(key))
	if err != nil {
		return err
	}
	if err := s.checkReply(reply); err != nil {
		return err
	}
	if s.Code != "" {
		if reply.Outcome != sdk.OutcomeFailed || reply.Code != s.Code {
			return fmt.Errorf("it ended with %s, not with the definite failure %s", say(reply), s.Code)
		}
		if after := s.effects(); after != before {
			return fmt.Errorf("a definite failure says that nothing was done, but effects went from %d to %d", before, after)
		}
		return nil
	}
	if err := wantResult("it", reply); err != nil {
		return err
	}
	return s.tidy(key, reply.Output)
}

// checkReply returns an error if the output of a reply does not fit the schema. It also returns
// an error if the action may not answer with the code of the reply.
func (s *subject) checkReply(r sdk.Reply) error {
	if r.Outcome == sdk.OutcomeResult {
		if err := sdk.CheckObject(s.action.Outputs, r.Output); err != nil {
			return fmt.Errorf("output: %w", err)
		}
		return nil
	}
	switch r.Code {
	case sdk.CodeUnavailable, sdk.CodeRateLimited, sdk.CodeAborted, sdk.CodeInvalid, sdk.CodeDenied:
		return nil
	case sdk.CodeTimeout, sdk.CodeAgentLost, sdk.CodeInternal, sdk.CodeBadReply:
		if r.Outcome == sdk.OutcomeUnknown {
			return nil
		}
	}
	for _, e := range s.action.Errors {
		if e.Code == r.Code || e.Code == schema.AnyCode && sdk.ValidCode(r.Code) {
			return nil
		}
	}
	return fmt.Errorf("the code %q is not declared (%s)", r.Code, say(r))
}

// tidy undoes a call if the action has an undo. So the service is in the same state at the start
// of each rule. The method `tidy` returns an error if the undo fails.
func (s *subject) tidy(key string, output json.RawMessage) error {
	if s.action.CompensatedBy == "" {
		return nil
	}
	return s.undo(key, output)
}

func refusesNonsense(s *subject) error {
	before := s.effects()
	for _, input := range []string{`{"sdktest_no_such_input":1}`, `[]`, `null`} {
		req := s.request(s.key())
		req.Input = json.RawMessage(input)
		reply, err := s.send(req)
		if err != nil {
			return err
		}
		if reply.Outcome != sdk.OutcomeFailed || reply.Code != sdk.CodeInvalid {
			return fmt.Errorf("input %s ended with %s, not with a definite failure, invalid", input, say(reply))
		}
	}
	if after := s.effects(); after != before {
		return fmt.Errorf("effects went from %d to %d", before, after)
	}
	return nil
}

func sameKeyTwice(s *subject) error {
	key := s.key()
	first, err := s.do(key)
	if err != nil {
		return err
	}
	once := s.effects()
	second, err := s.do(key)
	if err != nil {
		return fmt.Errorf("second time: %w", err)
	}
	if twice := s.effects(); twice != once {
		return fmt.Errorf("effects went from %d to %d with the second call", once, twice)
	}
	if !s.Varies && !bytes.Equal(first, second) {
		return errors.New("the second result differs from the first (set Case.Varies if it may)")
	}
	return s.tidy(key, first)
}

// atOnce is the number of calls with the same key that sameKeyAtOnce makes at the same time.
const atOnce = 8

func sameKeyAtOnce(s *subject) error {
	before := s.effects()
	alone := s.key()
	output, err := s.do(alone)
	if err != nil {
		return err
	}
	one := s.effects() - before
	if err := s.tidy(alone, output); err != nil {
		return err
	}
	before = s.effects()
	key := s.key()
	replies := make([]sdk.Reply, atOnce)
	errs := make([]error, atOnce)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range atOnce {
		wg.Go(func() {
			<-start
			replies[i], errs[i] = s.send(s.request(key))
		})
	}
	close(start)
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	result := -1
	for i, r := range replies {
		if err := s.checkReply(r); err != nil {
			return err
		}
		if r.Outcome == sdk.OutcomeResult {
			result = i
		}
	}
	if result < 0 {
		return fmt.Errorf("none of %d calls gave a result; one ended with %s", atOnce, say(replies[0]))
	}
	if got := s.effects() - before; got != one {
		return fmt.Errorf("%d effects of %d calls with one key, want %d", got, atOnce, one)
	}
	return s.tidy(key, replies[result].Output)
}

func readsOnly(s *subject) error {
	before := s.effects()
	if _, err := s.do(s.key()); err != nil {
		return err
	}
	if after := s.effects(); after != before {
		return fmt.Errorf("effects went from %d to %d", before, after)
	}
	return nil
}

func undoes(s *subject) error {
	before := s.effects()
	key := s.key()
	output, err := s.do(key)
	if err != nil {
		return err
	}
	if s.Effects != nil && s.effects() == before {
		return fmt.Errorf("Case.Effects counts nothing: still %d after the call", before)
	}
	req := s.request(s.key())
	req.Action, req.Purpose, req.ForwardKey = s.action.CompensatedBy, sdk.PurposeUndo, key
	req.Input = json.RawMessage(s.UndoInput(output))
	if err := s.undoAgain(req); err != nil {
		return err
	}
	if after := s.effects(); after != before {
		return fmt.Errorf("effects were %d before the call and are %d after its undo", before, after)
	}
	if !s.schema.Actions[s.action.CompensatedBy].Idempotent {
		return nil
	}
	if err := s.undoAgain(req); err != nil {
		return fmt.Errorf("second time: %w", err)
	}
	if after := s.effects(); after != before {
		return fmt.Errorf("effects were %d before the call and are %d after its second undo", before, after)
	}
	return nil
}

func undoesNothing(s *subject) error {
	before := s.effects()
	if err := s.undo(s.key(), nil); err != nil {
		return err
	}
	if after := s.effects(); after != before {
		return fmt.Errorf("effects went from %d to %d", before, after)
	}
	return nil
}

// refusesLateCall sends a call after its own undo. It returns an error if this late call has an
// effect or does not end with a definite failure. If the undo needs the output, refusesLateCall
// must get the output first: so before the undo it sends the same call once. In this case, an
// idempotent action may answer the late call with the result of the first call.
func refusesLateCall(s *subject) error {
	before := s.effects()
	key := s.key()
	var output json.RawMessage
	if !s.undoByKey() {
		var err error
		if output, err = s.do(key); err != nil {
			return err
		}
	}
	if err := s.undo(key, output); err != nil {
		return err
	}
	reply, err := s.send(s.request(key))
	if err != nil {
		return err
	}
	if err := s.checkReply(reply); err != nil {
		return err
	}
	repeated := reply.Outcome == sdk.OutcomeResult && s.action.Idempotent && !s.undoByKey()
	if reply.Outcome != sdk.OutcomeFailed && !repeated {
		return fmt.Errorf("it ended with %s, not with a definite failure (say why it may in Case.LateDo)", say(reply))
	}
	if after := s.effects(); after != before {
		return fmt.Errorf("effects went from %d to %d", before, after)
	}
	return nil
}

func looksUp(s *subject) error {
	ask := func(key string) (sdk.Reply, error) {
		req := s.request(key)
		req.Purpose = sdk.PurposeLookup
		return s.send(req)
	}
	before := s.effects()
	reply, err := ask(s.key())
	if err != nil {
		return err
	}
	if reply.Outcome != sdk.OutcomeNotDone {
		return fmt.Errorf("of a key that was never used it says %s", say(reply))
	}
	key := s.key()
	output, err := s.do(key)
	if err != nil {
		return err
	}
	done := s.effects()
	if reply, err = ask(key); err != nil {
		return err
	}
	if reply.Outcome != sdk.OutcomeResult {
		return fmt.Errorf("of a call that gave a result it says %s", say(reply))
	}
	if !s.Varies && !bytes.Equal(reply.Output, output) {
		return errors.New("it gives another output than the call (set Case.Varies if it may)")
	}
	if after := s.effects(); after != done {
		return fmt.Errorf("effects went from %d to %d with the lookup", done, after)
	}
	if err := s.tidy(key, output); err != nil {
		return err
	}
	if after := s.effects(); s.action.CompensatedBy != "" && after != before {
		return fmt.Errorf("effects were %d and are %d after the undo", before, after)
	}
	return nil
}

// shortTime is how much time a rule gives a slow action. After this time, complete-by passes or the
// rule cancels the call. A slow action must work longer than shortTime.
const shortTime = 250 * time.Millisecond

func silentAfterDeadline(s *subject) error {
	req := s.request(s.key())
	req.CompleteBy = time.Now().Add(shortTime)
	var late atomic.Int64
	reply, err := s.target.Invoke(s.ctx, req, func(sdk.Event) {
		// An event may still arrive shortly after complete-by, because the agent may have sent it
		// before complete-by.
		if time.Since(req.CompleteBy) > shortTime/2 {
			late.Add(1)
		}
	})
	if err == nil {
		return fmt.Errorf("it ended with %s; is the case really slow?", say(reply))
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if p, ok := s.target.(*inProcess); ok && !p.stopped(s.Grace) {
		return fmt.Errorf("its function still runs %s after complete-by", s.Grace)
	}
	if n := late.Load(); n > 0 {
		return fmt.Errorf("%d events after complete-by", n)
	}
	return nil
}

func stopsWhenCancelled(s *subject) error {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	start := time.Now() // take the time before the timer starts, so that the measured time is not too short
	timer := time.AfterFunc(shortTime, cancel)
	defer timer.Stop()
	reply, err := s.target.Invoke(ctx, s.request(s.key()), nil)
	took := time.Since(start)
	switch {
	case took < shortTime:
		return fmt.Errorf("it ended after %s, before it was cancelled; is the case really slow?", took)
	case took > shortTime+s.Grace:
		return fmt.Errorf("it ended %s after it was cancelled", took-shortTime)
	case errors.Is(err, context.Canceled):
		return nil
	case err != nil:
		return err
	}
	return s.checkReply(reply)
}

func sendsEvents(s *subject) error {
	req := s.request(s.key())
	req.CompleteBy = time.Now().Add(s.Grace)
	var heartbeats, checkpoints atomic.Int64
	reply, err := s.target.Invoke(s.ctx, req, func(ev sdk.Event) {
		switch ev.(type) {
		case sdk.Heartbeat:
			heartbeats.Add(1)
		case sdk.Checkpoint:
			checkpoints.Add(1)
		}
	})
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if err == nil {
		if err := s.checkReply(reply); err != nil {
			return err
		}
	}
	if s.action.Heartbeats && heartbeats.Load() == 0 {
		return fmt.Errorf("no heartbeat in %s", s.Grace)
	}
	if s.action.Checkpoints && checkpoints.Load() == 0 {
		return fmt.Errorf("no checkpoint in %s", s.Grace)
	}
	return nil
}

func survivesPanic(s *subject) error {
	reply, err := s.send(s.request(s.key()))
	if err != nil {
		return err
	}
	if reply.Outcome != sdk.OutcomeUnknown || reply.Code != sdk.CodeInternal {
		return fmt.Errorf("it ended with %s, not with an unknown outcome, internal", say(reply))
	}
	return refusesNonsense(s)
}
