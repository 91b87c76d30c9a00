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
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/pointed"
)

// An Operator speaks to runs from outside: what a person asks goes into the
// run's inbox, and its owner decides. It needs no running engine, and owns
// nothing.
type Operator struct {
	Store  store.Store          // required
	Sealer crypt.Sealer         // nil = what is sensitive cannot be said
	Defs   *journal.Definitions // required
}

// A RefusedError says why a verb does not apply to a run.
type RefusedError struct {
	Verb   string
	Reason string
	Output bool // another output would be accepted
}

// Error names the verb and the reason.
func (e *RefusedError) Error() string { return fmt.Sprintf("%s refused: %s", e.Verb, e.Reason) }

// Ask says a verb to a run: durable when it returns, and answered by the run's
// owner, now or when there is one. A verb that does not apply to the run as it
// is now is refused at once, with a *RefusedError, and nothing is said. Returns
// ErrNotFound, a *KeyError, a *RunError.
func (o *Operator) Ask(ctx context.Context, run status.RunID, verb machine.Event, by string) (store.MessageID, error) {
	if err := o.Try(ctx, run, verb); err != nil {
		return 0, err
	}
	st := store.Complete(pointed.Store(o.Store))
	if err := st.Absolve(ctx, run); err != nil { // a person knows what it does
		return 0, fmt.Errorf("forget which engines died with run %s: %w", naming.RunName(run), err)
	}
	data, err := journal.EncodeMessage(o.Sealer, run, verb)
	if err != nil {
		return 0, err
	}
	var token [12]byte
	if _, err := rand.Read(token[:]); err != nil {
		return 0, fmt.Errorf("mint a message's number: %w", err)
	}
	id, err := st.Post(ctx, store.Message{Run: run, Kind: store.MessageVerb, By: by, Dedup: hex.EncodeToString(token[:]), Data: data})
	if err != nil {
		return 0, fmt.Errorf("post to run %s: %w", naming.RunName(run), err)
	}
	return id, nil
}

// Try tells whether a verb would be accepted as the run stands now. Returns a
// *RefusedError if it would not. Decide is pure, so nothing comes of it.
func (o *Operator) Try(ctx context.Context, run status.RunID, verb machine.Event) error {
	story, err := journal.Load(ctx, o.Store, o.Sealer, o.Defs, run)
	if err != nil {
		return err
	}
	slots := map[string]machine.Slot{}
	for name := range story.Flow.Agents {
		slots[name] = machine.Slot{Why: "only asking"}
	}
	var refused machine.Refused
	try := func(at time.Time) func() error {
		return func() error {
			rec := machine.Decide(story.Flow, story.State, machine.Input{At: at, Event: verb, Slots: slots, Journal: story.Stored,
				Allowance: dsl.NewAllowance(machine.MaxDecisionCost)})
			refused, _ = rec.Event().(machine.Refused)
			return nil
		}
	}
	last := story.State.Last()
	if err = guard.Do(try(last)); err == nil && refused.Verb == "" {
		return nil // what this machine's clock says instead does not count: the owner knows the time
	}
	if now := time.Now(); err == nil && now.After(last) {
		err = guard.Do(try(now)) // what was too early then may be in time by now
	}
	switch {
	case err != nil:
		return &journal.RunError{Run: int64(run), Name: story.Head.Name, Err: err}
	case refused.Verb != "":
		return &RefusedError{Verb: refused.Verb, Reason: refused.Reason, Output: refused.WantsOutput()}
	}
	return nil
}

// Answer waits until the run's owner has answered a verb, or ctx ends. nil means
// that it was accepted. A store that does not answer is asked again, as by
// Follow. Returns a *RefusedError if it was refused in the end, as a verb is that
// lost a race.
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
	err := ask.Do(ctx, func() (err error) {
		story, err = journal.Load(ctx, o.Store, o.Sealer, o.Defs, run)
		return err
	})
	if err != nil {
		return err
	}
	for i := len(story.Records) - 1; i >= 0; i-- {
		ask, refused, ok := machine.Asked(story.Records[i].Event())
		switch {
		case !ok || ask != int64(id):
		case refused.Verb != "":
			return &RefusedError{Verb: refused.Verb, Reason: refused.Reason, Output: refused.WantsOutput()}
		default:
			return nil
		}
	}
	if story.State.Status().Final() {
		return &RefusedError{Verb: "verb", Reason: fmt.Sprintf("the run had ended before (%s)", story.State.Status())}
	}
	return errors.New("the message is gone without an answer")
}
