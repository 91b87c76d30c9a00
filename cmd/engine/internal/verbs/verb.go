package verbs

import (
	"context"
	"os"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/history"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/operator"
)

// A Verb is one command of a person to a run, with the arguments of the command line.
type Verb struct {
	Name string // name of the command: cancel, pause, …
	Run  string // the argument RUN, as the user wrote it
	Step string // value of --step, as the user wrote it; "" = the flag is not given
	// Flags has the other flags of a command with --step, as a part of a command line: see Given.
	Flags string
	// Event makes the event for the run r. It returns an error if the verb has no meaning for this
	// run. If it returns nil and no error, there is nothing to send. The parameter `by` is the name
	// of the person who sends the verb.
	Event func(ctx context.Context, s *session.Session, r *history.Run, by string) (machine.Event, error)
	Wait  bool // the command waits until the run has ended
}

// Send puts a verb into the inbox of a run and waits for the answer of the run's owner.
func Send(ctx context.Context, a *cli.App, v Verb) error {
	s, err := session.OpenSpeaker(ctx, a)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.RightKey(ctx); err != nil {
		return err
	}
	row, err := history.Find(ctx, a, s, v.Run)
	if err != nil {
		return err
	}
	if row.State.Final() {
		return cli.Failed("Run has ended", "%s There is nothing left to %s. `engine show %s` shows what happened to it.",
			history.EndedText(row), v.Name, history.Arg(row))
	}
	r, err := history.Read(ctx, s, row)
	if err != nil {
		return err
	}
	if err := history.KnowsStep(ctx, s, r, v.Step, v.Name, v.Flags); err != nil {
		return err
	}
	event, err := v.Event(ctx, s, r, Person())
	if err != nil {
		return err
	}
	if event == nil { // there is nothing to send to the run
		return nil
	}
	op := &operator.Operator{Store: s.Store, Sealer: s.Sealer, Defs: s.Defs}
	if signal, ok := event.(machine.SignalReceived); ok {
		return v.signal(ctx, a, s, row, signal)
	}
	id, err := op.Ask(ctx, row.Run, event, Person())
	if err != nil {
		return v.problem(ctx, a, s, row, err)
	}
	sent := sentVerb{Verb: v, row: row, message: id, seen: len(history.Facts(r.Flow, r.Records))}
	if err := sent.answered(ctx, s, op); err != nil {
		return v.problem(ctx, a, s, row, err)
	}
	if v.Name == "cancel" && sent.answer {
		sent.next = sent.afterCancel(ctx, s)
	}
	if v.Wait {
		return untilEnded(ctx, a, s, op, sent)
	}
	return sent.print(a)
}

// Person returns the user who runs the command, as USER@HOST.
func Person() string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return cli.UserName() + "@" + host
}
