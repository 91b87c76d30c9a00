package operator

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/internal/guard"
	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/faultpoints"
	"github.com/saga-engine/engine/engine/store/naming"
)

// An Operator sends verbs to runs. A verb goes into the run's inbox, and the run's owner
// decides on it. An Operator needs no running engine and owns no run.
type Operator struct {
	Store  store.Store          // required
	Sealer crypt.Sealer         // nil = verbs with sensitive values cannot be sent
	Defs   *journal.Definitions // required
}

// A RefusedError says why a verb does not apply to a run.
type RefusedError struct {
	Verb   string
	Reason string
	Output bool  // true = the verb might be accepted if it had another output for the step
	Err    error // naming.ErrInboxFull, naming.ErrInboxBytes, or nil
}

// maxWaitingSignals is the number of messages in the inbox of a run at which a further signal is
// refused. It is ten times the number of signals that a run keeps. So many messages wait only if
// the engine of the run is late, or if no engine works on the run.
const maxWaitingSignals = 10_000

// maxWaitingVerbs is the number of messages in the inbox of a run at which every further verb is
// refused, not only signals. It is larger than maxWaitingSignals, so that a person can cancel a run
// whose inbox is full of signals.
const maxWaitingVerbs = 11_000

// maxWaitingSignalBytes is the largest size, in bytes, of all messages in the inbox of a run after
// a signal was added. A signal that would make them larger is refused. The limit is four times the
// number of bytes of signals that a run keeps. Without this limit, 10,000 signals of 1 MiB could
// fill the store, and the memory of the engine that reads them.
const maxWaitingSignalBytes = 64 << 20

// maxWaitingVerbBytes is the largest size, in bytes, of all messages in the inbox of a run after a
// verb was added. It does not apply to signals, which have their own limit. It is larger than
// maxWaitingSignalBytes, so that a person can settle a step of a run whose inbox is full of
// signals. The verbs cancel and pause have no limit in bytes, because a person must always be able
// to stop a run. These two verbs carry only a reason, so the limit for the number of messages is
// enough.
const maxWaitingVerbBytes = 72 << 20

// Error names the verb and the reason.
func (e *RefusedError) Error() string { return fmt.Sprintf("%s refused: %s", e.Verb, e.Reason) }

// Unwrap returns the field Err.
func (e *RefusedError) Unwrap() error { return e.Err }

// Ask sends a verb to a run. The verb is durable when Ask returns. The run's owner answers the
// verb; if no engine is running, that happens later. If the verb does not apply to the run in its
// present state, Ask returns a *RefusedError and sends nothing. It may also return ErrNotFound, a
// *crypt.KeyError or a *journal.RunError. If too many messages wait for the run, the error is also
// a naming.ErrInboxFull. If they have too many bytes, it is also a naming.ErrInboxBytes.
func (o *Operator) Ask(ctx context.Context, run status.RunID, verb machine.Event, by string) (store.MessageID, error) {
	if err := o.Try(ctx, run, verb); err != nil {
		return 0, err
	}
	st := store.Complete(faultpoints.Store(o.Store))
	// A person has decided about the run, so the engines that died while they had this run in
	// hand do not count any more.
	if err := st.Absolve(ctx, run); err != nil {
		return 0, fmt.Errorf("forget which engines died with run %s: %w", naming.RunName(run), err)
	}
	data, err := journal.EncodeMessage(o.Sealer, run, verb)
	if err != nil {
		return 0, err
	}
	var token [12]byte
	if _, err := rand.Read(token[:]); err != nil {
		return 0, fmt.Errorf("make a message's number: %w", err)
	}
	m := store.Message{Run: run, Kind: store.MessageVerb, By: by, Dedup: hex.EncodeToString(token[:]), Data: data}
	var name string
	name, m.Most, m.MostBytes = bounds(verb)
	id, err := st.Post(ctx, m)
	if errors.Is(err, naming.ErrInboxFull) {
		full := fmt.Sprintf("%d messages or more wait for the run", m.Most)
		if errors.Is(err, naming.ErrInboxBytes) {
			full = fmt.Sprintf("the messages that wait for the run and this one have more than %d MiB together", m.MostBytes>>20)
		}
		return 0, &RefusedError{Verb: name, Err: err, Reason: full + ", and no engine has taken them yet: " +
			"start an engine that works on the run (`engine serve`), or try again later"}
	}
	if err != nil {
		return 0, fmt.Errorf("post to run %s: %w", naming.RunName(run), err)
	}
	return id, nil
}

// bounds returns the limits of an inbox that apply when the verb is added: the largest number of
// messages, and the largest number of bytes of all messages; 0 = no limit. It also returns the name
// for a refusal: "signal" for a signal, and "verb" for any other verb.
func bounds(verb machine.Event) (name string, most int, mostBytes int64) {
	switch verb.(type) {
	case machine.SignalReceived:
		return "signal", maxWaitingSignals, maxWaitingSignalBytes
	case machine.CancelRequested, machine.PauseRequested:
		return "verb", maxWaitingVerbs, 0
	}
	return "verb", maxWaitingVerbs, maxWaitingVerbBytes
}

// Try checks whether a verb would be accepted in the run's present state. It returns nil if the
// verb would be accepted, and a *RefusedError if the verb would be refused. It changes nothing,
// because machine.Decide is a pure function. Other errors are those of journal.LoadState,
// Definitions.Workflow and Store.Runs, and a *journal.RunError if the decision panics.
func (o *Operator) Try(ctx context.Context, run status.RunID, verb machine.Event) error {
	story, err := journal.LoadState(ctx, store.Complete(o.Store), o.Sealer, o.Defs, run)
	if err != nil {
		return err
	}
	if err := o.orphaned(ctx, story.State, verb); err != nil {
		return err
	}
	var next *dsl.Workflow
	if ev, ok := verb.(machine.Migrated); ok {
		if next, err = o.Defs.Workflow(ctx, store.WorkflowID(ev.Workflow)); err != nil {
			return err
		}
	}
	slots := map[string]machine.Slot{}
	for name := range story.Flow.Agents {
		slots[name] = machine.Slot{Why: "only asking"}
	}
	var refused machine.Refused
	try := func(at time.Time) func() error {
		return func() error {
			rec := machine.Decide(story.Flow, story.State, machine.Input{At: at, Event: verb, Next: next, Slots: slots, Journal: story.Stored,
				Allowance: dsl.NewAllowance(machine.MaxDecisionCost)})
			refused, _ = rec.Event().(machine.Refused)
			return nil
		}
	}
	last := story.State.Last()
	if err = guard.Do(try(last)); err == nil && refused.Verb == "" {
		// The verb is accepted at the time of the last record. That is enough: the clock of this
		// machine may be wrong, and the owner decides again, with store time.
		return nil
	}
	if now := time.Now(); err == nil && now.After(last) {
		// The verb is refused at the time of the last record: try again with the present time.
		err = guard.Do(try(now))
	}
	switch {
	case err != nil:
		return &journal.RunError{Run: int64(run), Name: story.Head.Name, Err: err}
	case refused.Verb != "":
		return &RefusedError{Verb: refused.Verb, Reason: refused.Reason, Output: refused.WantsOutput()}
	}
	return nil
}

// Answer waits until the run's owner has answered a verb, or ctx ends. If the store does not
// answer, Answer tries again, with growing pauses. It returns nil if the verb was accepted. It
// returns a *RefusedError if the verb was refused, for example because the run has changed before
// the owner decided on the verb.
func (o *Operator) Answer(ctx context.Context, run status.RunID, id store.MessageID) error {
	ask := wait.Retry{Lasting: journal.Lasting}
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, 500*time.Millisecond) {
		waiting := false
		err := ask.Do(ctx, func() (err error) {
			waiting, err = store.Complete(o.Store).Waits(ctx, run, id)
			return err
		})
		if err != nil {
			return fmt.Errorf("read the inbox of run %s: %w", naming.RunName(run), err)
		}
		if !waiting {
			break
		}
		if err := wait.For(ctx, pause); err != nil {
			return err
		}
	}
	var story journal.Run
	load := func() (err error) {
		story, err = journal.LoadState(ctx, store.Complete(o.Store), o.Sealer, o.Defs, run)
		return err
	}
	whole := func() (err error) {
		story, err = journal.Load(ctx, o.Store, o.Sealer, o.Defs, run)
		return err
	}
	if err := ask.Do(ctx, load); err != nil {
		return err
	}
	refused, found := answer(story.Records, id)
	// The answer may be in a row before the snapshot: read all rows.
	if !found && story.Covered > 0 {
		if err := ask.Do(ctx, whole); err != nil {
			return err
		}
		refused, found = answer(story.Records, id)
	}
	switch {
	case found && refused.Verb != "":
		return &RefusedError{Verb: refused.Verb, Reason: refused.Reason, Output: refused.WantsOutput()}
	case found:
		return nil
	case story.State.Status().Final():
		return &RefusedError{Verb: "verb", Reason: fmt.Sprintf("the run had ended before (%s)", story.State.Status())}
	}
	return errors.New("the message is gone without an answer")
}

// answer looks for the record that answers a message. It returns the refusal in this record; zero =
// the verb was accepted. The result `found` is false if no record answers the message.
func answer(records []machine.Record, id store.MessageID) (refused machine.Refused, found bool) {
	for i := len(records) - 1; i >= 0; i-- {
		if ask, refused, ok := machine.Asked(records[i].Event()); ok && ask == int64(id) {
			return refused, true
		}
	}
	return machine.Refused{}, false
}
