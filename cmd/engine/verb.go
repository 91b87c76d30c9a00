package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/operator"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/story"
)

// speaker sends verbs to runs.
type speaker struct{ *app }

// answerPatience is how long a verb waits for the answer of the run's owner.
const answerPatience = 10 * time.Second

// A verb is what a person says to a run, in the words of the command line.
type verb struct {
	name string // of the command: cancel, pause, …
	run  string // RUN as given
	step string // STEP as given; "" = none
	// event makes the event, once the run is known. It returns a problem if the
	// run is one that the verb cannot mean.
	event func(ctx context.Context, s *session, r *shownRun, by string) (machine.Event, error)
	wait  bool // stay until the run has ended
}

// reasonFlag adds --reason.
func reasonFlag(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVar(to, "reason", "", "why, for people who look at the run later")
}

// maxReason bounds --reason: it is kept with the run for ever.
const maxReason = 1000

// checkReason refuses a reason that is too long, or missing where what is done
// leaves something behind that only a reason explains.
func checkReason(reason, neededBy string) error {
	switch {
	case len(reason) > maxReason:
		return failed("Invalid flag", "--reason must have at most %d bytes.", maxReason)
	case neededBy != "" && strings.TrimSpace(reason) == "":
		return failed("Reason needed", "%s needs --reason TEXT: it is recorded with who did it.", neededBy)
	}
	return nil
}

// person is who speaks: USER@HOST.
func person() string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return userName() + "@" + host
}

// say puts a verb into the run's inbox and waits for its owner's answer.
func (a speaker) say(ctx context.Context, v verb) error {
	s, err := a.openSpeaker(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.people().rightKey(ctx); err != nil {
		return err
	}
	row, err := a.follower().findRun(ctx, s, v.run)
	if err != nil {
		return err
	}
	if row.State.Final() {
		return failed("Run has ended", "%s There is nothing left to %s. `engine show %s` tells its story.",
			endedText(row), v.name, argOf(row))
	}
	r, err := s.people().fold(ctx, row)
	if err != nil {
		return err
	}
	if err := r.knows(v.step); err != nil {
		return err
	}
	event, err := v.event(ctx, s, r, person())
	if err != nil {
		return err
	}
	op := &operator.Operator{Store: s.store, Sealer: s.sealer, Defs: s.defs}
	id, err := op.Ask(ctx, row.Run, event, person())
	if err != nil {
		return v.problem(ctx, a.app, s, row, err)
	}
	said := saying{verb: v, row: row, message: id, seen: len(factsOf(r.wf, r.records))}
	if err := said.answered(ctx, s, op); err != nil {
		return v.problem(ctx, a.app, s, row, err)
	}
	if v.wait {
		return a.follower().untilEnded(ctx, s, op, said)
	}
	return said.print(a.app)
}

// endedText says how a run ended.
func endedText(row store.RunRow) string {
	s := fmt.Sprintf("Run %s has ended: %s", render.Clean(row.Name), row.State)
	if !row.FinishedAt.IsZero() {
		s += " at " + stamp(row.FinishedAt)
	}
	return s + "."
}

// knows refuses a step that the run does not have.
func (r *shownRun) knows(step string) error {
	if step == "" {
		return nil
	}
	var names []string
	for n := range story.Nodes(r.state, r.wf) {
		names = append(names, n.Name)
		if n.Name == step || n.Step < len(r.wf.Steps) && r.wf.Steps[n.Step].Name == step {
			return nil
		}
	}
	const most = 12
	list := ""
	if len(names) <= most {
		list = " It has: " + strings.Join(names, ", ") + "."
	}
	return failed("Unknown step", "Run %s (%s) has no step %q.%s%s `engine show %s` shows what its steps are in.",
		render.Clean(r.row.Name), r.row.State, step, diag.DidYouMean(step, names), render.Clean(list), argOf(r.row))
}

// A saying is a verb that is recorded.
type saying struct {
	verb
	row     store.RunRow
	message store.MessageID
	seen    int // number of the run's last event before

	answer bool            // the owner has answered: accepted
	engine bool            // an engine lives
	now    status.RunState // the run's state after the answer
	// unasked is why it is not known what the answer is, or what came of it.
	unasked error
}

// answered waits for the answer of the run's owner, as long as there is an
// engine that could give one. The verb is recorded whatever comes of it: only a
// refusal is an error.
func (y *saying) answered(ctx context.Context, s *session, op *operator.Operator) error {
	y.now = y.row.State
	live, err := s.store.Live(ctx)
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
	row, err := s.store.Find(ctx, y.row.Name)
	if err != nil {
		y.unasked = err
		return nil
	}
	y.now = row.State
	return nil
}

// print tells what came of it.
func (y *saying) print(a *app) error {
	if a.json {
		m := map[string]any{
			"run": y.row.Name, "verb": y.name, "message": int64(y.message), "recorded": true,
			"answered": y.answer, "engine_alive": y.engine, "status": y.now.String(),
		}
		if y.step != "" {
			m["step"] = y.step
		}
		return a.printJSON(m)
	}
	return a.print("%s\n", y.text())
}

func (y *saying) text() string {
	name := render.Clean(y.row.Name)
	switch {
	case y.unasked != nil && !y.answer:
		return fmt.Sprintf("%s of run %s is recorded, but its answer could not be read: %s.", upperFirst(y.name), name, render.Clean(y.unasked.Error()))
	case y.answer:
		return fmt.Sprintf("%s of run %s accepted; the run is %s.", upperFirst(y.name), name, y.now)
	case !y.engine:
		return fmt.Sprintf("%s of run %s is recorded. No engine is alive to act on it: start one with `engine serve`, or `engine apply PATH` with the run's workflow.",
			upperFirst(y.name), name)
	}
	return fmt.Sprintf("%s of run %s is recorded, but no engine has answered within %s. It is acted on as soon as one can; `engine explain %s` tells more.",
		upperFirst(y.name), name, render.Span(answerPatience), quoteArg(name))
}

// rightKey makes sure that what is said is sealed with the key of the state, so
// that its engines can read it.
func (s people) rightKey(ctx context.Context) error {
	pinned, err := s.store.Pin(ctx, journal.SettingKey, "")
	switch {
	case err != nil:
		return s.wrap("ask which key seals", err)
	case pinned == "":
		s.sealer = nil
	case s.sealer != nil && s.sealer.KeyID() != pinned:
		return failed(wrongKey, "%s is sealed with the key %s, and the key given is %s. Set %s to the first.", s.shown, pinned, s.sealer.KeyID(), keyVariable)
	case s.sealer == nil:
		return failed("Encryption key needed", "%s is sealed with the key %s. Set %s to that key.", s.shown, pinned, keyVariable)
	}
	return nil
}

// fold reads a run and folds its journal, no more.
func (s people) fold(ctx context.Context, row store.RunRow) (*shownRun, error) {
	told, err := journal.Load(ctx, s.store, s.sealer, s.defs, row.Run)
	if err != nil {
		return nil, s.wrap("read the run", err)
	}
	return &shownRun{row: row, wf: told.Flow, state: told.State, records: told.Records}, nil
}

// openSpeaker opens the state of --dsn to speak to its runs, while engines
// work on them. The embedded file must exist.
func (a speaker) openSpeaker(ctx context.Context) (*session, error) {
	t, err := a.target(a.path("."), ".")
	if err != nil {
		return nil, err
	}
	if t.postgres == "" {
		if _, err := os.Stat(t.path); errors.Is(err, fs.ErrNotExist) {
			return nil, noState(t)
		}
	}
	return a.opener().openTo(ctx, t, toSpeak)
}
