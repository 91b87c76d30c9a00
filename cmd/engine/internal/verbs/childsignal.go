package verbs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/saga-engine/engine/cmd/engine/internal/history"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/engine/operator"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/story"
)

const (
	maxAsked  = 100 // highest number of child runs that waitingChildren reads
	mostNamed = 3   // highest number of child runs that the message names
)

// withChildren returns the error `err`. If `err` is the refusal of a signal, withChildren adds the
// child runs, at any depth, in which a step waits for the signal now. The engine itself passes no
// signal on to child runs, because each child run has its own callers.
func withChildren(ctx context.Context, s *session.Session, row store.RunRow, signal string, err error) error {
	var refused *operator.RefusedError
	if !errors.As(err, &refused) || refused.Err != nil {
		return err
	}
	lines, failed := waitingChildren(ctx, s, row, signal)
	if failed != nil || len(lines) == 0 {
		// No child run can be named, so the refusal stays as it is.
		return err
	}
	named := lines[:min(len(lines), mostNamed)]
	reason := strings.TrimSuffix(refused.Reason, ".") + ". A child run waits for it. Send the signal to the child run: " + strings.Join(named, " or ")
	if more := len(lines) - len(named); more > 0 {
		reason += fmt.Sprintf(" (%d more wait)", more)
	}
	told := *refused
	told.Reason = reason
	return &told
}

// waitingChildren returns a command line for each open child run, at any depth, in which a step
// waits for the signal. It reads at most maxAsked open child runs, and lists at most 1,000 child
// runs of each run.
func waitingChildren(ctx context.Context, s *session.Session, row store.RunRow, signal string) (lines []string, err error) {
	asked := 0
	for level := []store.RunRow{row}; len(level) > 0; level = level[1:] {
		rows, err := s.Store.Runs(ctx, store.RunFilter{Parent: level[0].Run, Limit: 1000})
		if err != nil {
			return nil, err
		}
		for _, child := range rows {
			if child.State.Final() {
				continue
			}
			if asked++; asked > maxAsked {
				return lines, nil
			}
			r, err := history.Read(ctx, s, child)
			if err != nil {
				return nil, err
			}
			for n := range story.Nodes(r.State, r.Flow) {
				if slices.Contains(n.Awaits, signal) {
					lines = append(lines, fmt.Sprintf("`engine signal %s %s`", history.Arg(child), words.Quote(signal)))
					break
				}
			}
			level = append(level, child)
		}
	}
	return lines, nil
}
