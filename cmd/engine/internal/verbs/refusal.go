package verbs

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/exit"
	"github.com/saga-engine/engine/cmd/engine/internal/history"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/operator"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/story"
)

// problem turns the error of a verb into an error for people. If the run refused the verb, the
// error names the run's status and the commands that would be accepted now.
func (v Verb) problem(ctx context.Context, a *cli.App, s *session.Session, row store.RunRow, err error) error {
	var refused *operator.RefusedError
	var code exit.Code
	switch {
	case errors.As(err, &code):
		return err
	case !errors.As(err, &refused):
		return s.Wrap(v.Name+" the run", err)
	}
	// The reason of the refusal may be a verb or event that came first. So the message shows the
	// status that the run has now.
	if now, err := s.Store.Find(ctx, row.Name); err == nil {
		row = now
	}
	next, err := nextCommands(ctx, s, a, row)
	if err != nil {
		return err
	}
	lacks := ""
	if refused.Output {
		r, err := history.Read(ctx, s, row)
		if err != nil {
			return err
		}
		lacks = outputWanted(r, v.Step)
	}
	text := words.UpperFirst(strings.TrimSuffix(render.Clean(refused.Reason), ".")) + "."
	if !strings.Contains(refused.Reason, row.State.String()) {
		text = fmt.Sprintf("Run %s is %s. %s", render.Clean(row.Name), row.State, text)
	}
	return cli.Failed(fmt.Sprintf("Cannot %s run %s", v.Name, render.Clean(row.Name)), "%s%s%s %s", text, v.remedy(refused.Reason), lacks, next)
}

// remedy returns a sentence about the flag that would make the run accept the refused command, with
// a space in front; "" = no such flag is known.
func (v Verb) remedy(reason string) string {
	switch {
	case strings.Contains(reason, "say by how much to extend"):
		return " Add --extend, such as --extend 1h."
	case v.Name == "cancel" && strings.Contains(reason, "pivot has succeeded"):
		return " What is done stays; `--no-compensate --reason TEXT` stops the run where it is."
	}
	return ""
}

// mostNext is the highest number of commands that a refusal offers.
const mostNext = 6

// nextCommands returns a sentence with the commands that the run would accept now.
func nextCommands(ctx context.Context, s *session.Session, a *cli.App, row store.RunRow) (string, error) {
	name := history.Arg(row)
	if row.State.Final() {
		return fmt.Sprintf("`engine show %s` shows what happened to it.", name), nil
	}
	r, err := history.Read(ctx, s, row)
	if err != nil {
		return "", err
	}
	commands := story.Explain(r.State, r.Flow, a.Now()).Remedies
	if len(commands) == 0 {
		if commands, err = accepted(ctx, s, row); err != nil {
			return "", err
		}
	}
	if len(commands) > mostNext {
		commands = commands[:mostNext]
	}
	var quoted []string
	for _, c := range commands {
		quoted = append(quoted, "`"+render.Clean(c)+"`")
	}
	if row.State.NeedsHuman() {
		return fmt.Sprintf("Accepted now: %s. `engine explain %s` says more.", strings.Join(quoted, ", "), name), nil
	}
	quoted = append(quoted, "`engine explain "+name+"`")
	return fmt.Sprintf("Accepted now: %s.", strings.Join(quoted, ", ")), nil
}

// accepted returns the command lines of the verbs that a run would accept now. It tries only the
// verbs compensate, resume, pause and cancel. The function nextCommands calls accepted if
// story.Explain gives no command line for the run.
func accepted(ctx context.Context, s *session.Session, row store.RunRow) ([]string, error) {
	op := &operator.Operator{Store: s.Store, Sealer: s.Sealer, Defs: s.Defs}
	var commands []string
	for _, c := range []struct {
		line string
		verb machine.Event
	}{
		{"compensate %s --retry", machine.CompensateRequested{Retry: true}},
		{"compensate %s --skip --reason TEXT", machine.CompensateRequested{Skip: true, Reason: "?"}},
		{"resume %s", machine.ResumeRequested{}},
		{"pause %s", machine.PauseRequested{}},
		{"cancel %s", machine.CancelRequested{}},
		{"cancel %s --no-compensate --reason TEXT", machine.CancelRequested{NoCompensate: true, Reason: "?"}},
	} {
		err := op.Try(ctx, row.Run, c.verb)
		var refused *operator.RefusedError
		switch {
		case err == nil:
			commands = append(commands, "engine "+fmt.Sprintf(c.line, history.Arg(row)))
		case !errors.As(err, &refused):
			return nil, s.Wrap("ask what would be accepted", err)
		}
	}
	return commands, nil
}

// outputWanted returns a sentence about the --output that a step needs, with a space in front. It
// returns "" if it does not know the step or the schema of its action.
func outputWanted(r *history.Run, step string) string {
	for n := range story.Nodes(r.State, r.Flow) {
		if n.Step >= len(r.Flow.Steps) {
			continue
		}
		noun := r.Flow.Steps[n.Step]
		if (n.Name == step || noun.Name == step) && noun.Do.Skeleton != nil {
			return fmt.Sprintf(" Give --succeeded --output '%s' with values in place of the words in capitals.", render.Clean(noun.Do.Skeleton()))
		}
	}
	return ""
}
