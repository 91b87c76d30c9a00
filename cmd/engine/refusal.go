package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/operator"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/story"
)

// problem turns what came of a verb into what a person can do about it: a refusal
// names the run's status and the commands that would be accepted now.
func (v verb) problem(ctx context.Context, a *app, s *session, row store.RunRow, err error) error {
	var refused *operator.RefusedError
	var code exitError
	switch {
	case errors.As(err, &code):
		return err
	case !errors.As(err, &refused):
		return s.wrap(v.name+" the run", err)
	}
	// The verb may have lost a race: the run is shown as it is now.
	if now, err := s.store.Find(ctx, row.Name); err == nil {
		row = now
	}
	next, err := s.people().nextCommands(ctx, a, row)
	if err != nil {
		return err
	}
	lacks := ""
	if refused.Output {
		r, err := s.people().fold(ctx, row)
		if err != nil {
			return err
		}
		lacks = r.outputWanted(v.step)
	}
	text := upperFirst(strings.TrimSuffix(render.Clean(refused.Reason), ".")) + "."
	if !strings.Contains(refused.Reason, row.State.String()) {
		text = fmt.Sprintf("Run %s is %s. %s", render.Clean(row.Name), row.State, text)
	}
	return failed(fmt.Sprintf("Cannot %s run %s", v.name, render.Clean(row.Name)), "%s%s%s %s", text, v.remedy(refused.Reason), lacks, next)
}

// remedy is what the refused command itself lacks, as a sentence with a blank in
// front; "" = nothing.
func (v verb) remedy(reason string) string {
	switch {
	case strings.Contains(reason, "extend"):
		return " Add --extend, such as --extend 1h."
	case v.name == "cancel" && strings.Contains(reason, "pivot has succeeded"):
		return " What is done stays; `--no-compensate --reason TEXT` stops the run where it is."
	}
	return ""
}

// mostNext is how many commands a refusal offers.
const mostNext = 6

// nextCommands says which commands would be accepted now.
func (s people) nextCommands(ctx context.Context, a *app, row store.RunRow) (string, error) {
	name := argOf(row)
	if row.State.Final() {
		return fmt.Sprintf("`engine show %s` tells its story.", name), nil
	}
	r, err := s.fold(ctx, row)
	if err != nil {
		return "", err
	}
	commands := story.Explain(r.state, r.wf, a.now()).Remedies
	if len(commands) == 0 {
		if commands, err = s.accepted(ctx, row); err != nil {
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

// accepted lists the verbs for a run that moves without a person.
func (s people) accepted(ctx context.Context, row store.RunRow) ([]string, error) {
	op := &operator.Operator{Store: s.store, Sealer: s.sealer, Defs: s.defs}
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
			commands = append(commands, "engine "+fmt.Sprintf(c.line, argOf(row)))
		case !errors.As(err, &refused):
			return nil, s.wrap("ask what would be accepted", err)
		}
	}
	return commands, nil
}

// argOf is a run's name as an argument of a command.
func argOf(row store.RunRow) string { return quoteArg(render.Clean(row.Name)) }
