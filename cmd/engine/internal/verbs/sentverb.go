package verbs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/follow"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/operator"
	"github.com/saga-engine/engine/engine/store"
)

// answerPatience is how long a command waits for the answer of the run's owner. With --wait, the
// command then waits without a limit.
const answerPatience = 10 * time.Second

// A sentVerb holds a verb that is recorded in the inbox of a run, and the answer of the run's
// owner to the verb, as far as it is known.
type sentVerb struct {
	Verb
	row     store.RunRow
	message store.MessageID
	seen    int // number of facts (story.Fact) that the run had before the verb

	answer bool // the owner has accepted the verb
	engine bool // at least one engine is alive
	// now is the status of the run after the owner has accepted the verb. Until then it is the
	// status before the verb.
	now  status.RunState
	next string // what happens next to the run; "" = the status says enough
	// through is the name of the child run because of which the run needs a person; "" = none.
	through string
	// unasked is the error that occurred when the command asked which engines are alive, read the
	// answer, or read the run after the answer; nil = no error.
	unasked error
}

// answered waits for the answer of the run's owner, but at most for answerPatience. If no engine is
// alive, it does not wait. It returns an error only if the owner has refused the verb, or if ctx
// has ended. If there is no answer, the verb stays in the inbox, and an engine acts on it later.
func (y *sentVerb) answered(ctx context.Context, s *session.Session, op *operator.Operator) error {
	y.now = y.row.State
	live, err := s.Store.Live(ctx)
	if err != nil {
		y.unasked = err
		return nil
	}
	if y.engine = len(live) > 0; !y.engine {
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	err = op.Answer(waiting, y.row.Run, y.message)
	var refused *operator.RefusedError
	switch {
	case errors.As(err, &refused):
		return err
	case waiting.Err() != nil:
		return ctx.Err()
	case err != nil:
		y.unasked = err
		return nil
	}
	y.answer = true
	row, err := s.Store.Find(ctx, y.row.Name)
	if err != nil {
		y.unasked = err
		return nil
	}
	y.now = row.State
	return nil
}

// print prints whether the owner has accepted the verb, or has not answered yet.
func (y *sentVerb) print(a *cli.App) error {
	if a.JSON {
		m := map[string]any{
			"run": y.row.Name, "verb": y.Name, "message": int64(y.message), "recorded": true,
			"answered": y.answer, "engine_alive": y.engine, "status": y.now.String(),
		}
		if y.Step != "" {
			m["step"] = y.Step
		}
		if y.through != "" {
			m["needs_person_through"] = []string{y.through}
		}
		return a.PrintJSON(m)
	}
	return a.Print("%s\n", y.text())
}

func (y *sentVerb) text() string {
	name := render.Clean(y.row.Name)
	switch {
	case y.unasked != nil && !y.answer:
		return fmt.Sprintf("%s of run %s is recorded, but its answer could not be read: %s.", words.UpperFirst(y.Name), name, render.Clean(y.unasked.Error()))
	case y.answer:
		text := fmt.Sprintf("%s of run %s accepted; the run is %s.", words.UpperFirst(y.Name), name, y.now)
		return words.Join(" ", text, y.next)
	case !y.engine:
		return fmt.Sprintf("%s of run %s is recorded. No engine is alive to act on it: start one with `engine serve`, or `engine apply PATH` with the run's workflow.",
			words.UpperFirst(y.Name), name)
	}
	return fmt.Sprintf("%s of run %s is recorded, but no engine has answered within %s. An engine acts on it as soon as it can; `engine explain %s` says more.",
		words.UpperFirst(y.Name), name, render.Span(answerPatience), words.Quote(name))
}

// untilEnded waits for the answer to a verb, and then shows the run until the run has ended or
// needs a human. With --json it prints only one object, at the end.
func untilEnded(ctx context.Context, a *cli.App, s *session.Session, op *operator.Operator, y sentVerb) error {
	answered := func(ctx context.Context) error {
		if y.answer {
			return nil
		}
		return op.Answer(ctx, y.row.Run, y.message)
	}
	if a.JSON {
		end, err := follow.Follow(ctx, a, s, y.row, follow.Silent{}, 1, answered)
		if err != nil {
			return y.problem(ctx, a, s, y.row, err)
		}
		y.now, y.answer, y.through = end.State.Status(), true, end.Through
		if err := y.print(a); err != nil {
			return err
		}
		return end.AsExit()
	}
	a.Note("%s", y.text())
	y.row.State = y.now
	if err := follow.Show(ctx, a, s, y.row, y.seen+1, answered); err != nil {
		return y.problem(ctx, a, s, y.row, err)
	}
	return nil
}
