package main

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/saga-engine/engine/engine/machine"
)

func resumeCommand(a *app) *cobra.Command {
	var reason string
	var extend span
	cmd := &cobra.Command{
		Use:   "resume RUN",
		Short: "Go on with a paused run",
		Long: `Ends a pause. With --extend the run's deadline is that long from now; so it also
gives a parked run a new deadline.`,
		Args: wants("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkReason(reason, ""); err != nil {
				return err
			}
			return a.speaker().say(cmd.Context(), verb{name: "resume", run: args[0],
				event: func(_ context.Context, _ *session, _ *shownRun, by string) (machine.Event, error) {
					return machine.ResumeRequested{Extend: time.Duration(extend), By: by, Reason: reason}, nil
				}})
		},
	}
	extendFlag(cmd, &extend)
	reasonFlag(cmd, &reason)
	return cmd
}

// extendFlag adds --extend.
func extendFlag(cmd *cobra.Command, to *span) {
	cmd.Flags().Var(to, "extend", "new deadline of the run, this long from now, such as 90s, 2h, 1d")
}

// A span is a duration above zero as a flag, written as in a workflow.
type span time.Duration

var _ pflag.Value = (*span)(nil)

// String formats the duration; "" if it is not set.
func (s *span) String() string {
	if *s == 0 {
		return ""
	}
	return time.Duration(*s).String()
}

// Set reads the duration.
func (s *span) Set(text string) error {
	days, rest, inDays := strings.Cut(text, "d")
	n, err := 0, error(nil)
	if inDays {
		n, err = strconv.Atoi(days)
	} else {
		rest = text
	}
	d := time.Duration(0)
	if err == nil && rest != "" {
		d, err = time.ParseDuration(rest)
	}
	if err != nil || n < 0 || n > maxSpanDays || d < 0 || n == 0 && d == 0 {
		return errSpan
	}
	*s = span(time.Duration(n)*24*time.Hour + d)
	return nil
}

// maxSpanDays keeps a duration below what one can hold.
const maxSpanDays = 36500

var errSpan = errors.New("must be a duration above zero, such as 90s, 2h or 1d")

// Type names the kind of value in help texts.
func (s *span) Type() string { return "duration" }
