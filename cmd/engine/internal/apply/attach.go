package apply

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/history"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/store"
)

// attach returns an error if this command cannot attach to an earlier run: the earlier run has
// another workflow, other values, or another name than the value of --run-id. If only the
// definition differs, attach returns no error, and the view shows a note.
func attach(ctx context.Context, w *work, s *session.Session, row store.RunRow) error {
	name := render.Clean(row.Name)
	switch {
	case row.WorkflowName != w.r.Workflow.Name:
		return cli.Failed("Run belongs to another workflow", "Run %s is a run of workflow %q, not of %q. Choose another --run-id.",
			name, row.WorkflowName, w.r.Workflow.Name)
	case w.o.RunID != "" && row.Name != w.o.RunID:
		return cli.Failed("Key is held by another run", "The unique key %q belongs to run %s (%s), so there can be no run %s. "+
			"Leave --run-id out to attach to it.", render.Clean(row.Key), name, row.State, render.Clean(w.o.RunID))
	}
	read, err := journal.Load(ctx, s.Store, s.Sealer, s.Defs, row.Run)
	if err != nil {
		return s.Wrap("read run "+name, err)
	}
	if names := differing(w, read.State.Vars()); len(names) > 0 {
		return cli.Failed("Run has other values", "Run %s exists (%s) and was started with other values of %s. "+
			"Give the same values to attach to it.", name, row.State, strings.Join(names, ", "))
	}
	if row.Digest != w.r.Def.Digest() && !w.begun {
		origin := "it was started with"
		if row.Moved != 0 {
			origin = "to which it was moved"
		}
		w.View.Note(fmt.Sprintf("Run %s keeps to the definition %s (%s); the one here is %s.",
			name, origin, words.Short(row.Digest), words.Short(w.r.Def.Digest())))
	}
	return nil
}

// differing returns the names of the variables to which this command gives another value than the
// earlier run has. The parameter `recorded` contains the values of the earlier run.
func differing(w *work, recorded dsl.Value) []string {
	var now, then map[string]json.RawMessage
	if json.Unmarshal(w.r.Vars.JSON(), &now) != nil || json.Unmarshal(recorded.JSON(), &then) != nil {
		return nil // cannot happen: the engine encoded the values of both runs as JSON objects
	}
	var names []string
	for _, name := range words.Sorted(w.r.Given) {
		if was, ok := then[name]; ok && !bytes.Equal(was, now[name]) {
			names = append(names, name)
		}
	}
	return names
}

// earlierRun returns the run with the --run-id of this command. Without --run-id, it returns the
// run with the unique key of this command, if the command may attach to that run. nil = there is no
// such run.
func earlierRun(ctx context.Context, w *work, s *session.Session) (*store.RunRow, error) {
	if w.o.RunID != "" {
		row, err := s.Store.Find(ctx, w.o.RunID)
		if errors.Is(err, store.ErrNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, s.Wrap("find the run", err)
		}
		return &row, nil
	}
	key, err := uniqueKey(w)
	if rule := w.r.Workflow.Unique; key == "" || err != nil || rule.Reject || rule.Replace {
		// Without a unique key, this command has no earlier run. With a unique key and on_conflict
		// = "reject" or "replace", the command does not attach to the earlier run: the engine
		// refuses the submission or starts another run.
		return nil, err
	}
	return history.Holder(ctx, s, w.r.Workflow.Name, key)
}

// uniqueKey evaluates the unique key of the run; "" = the workflow has none.
func uniqueKey(w *work) (string, error) {
	if w.r.Workflow.UniqueKey == nil {
		return "", nil
	}
	key, err := w.r.Workflow.UniqueKey(&dsl.Scope{Vars: w.r.Vars, Run: dsl.RunInfo{Workflow: w.r.Workflow.Name, StartedAt: w.a.Now()}})
	if err != nil {
		return "", cli.Failed("Cannot evaluate unique.key", "%s.", words.UpperFirst(err.Error()))
	}
	return key, nil
}

// inTime returns an error if the command would start a new run whose deadline has passed. It
// returns nil if the run exists already.
func inTime(ctx context.Context, w *work, s *session.Session) error {
	if w.r.Workflow.Deadline == nil {
		return nil
	}
	now := w.a.Now()
	scope := &dsl.Scope{Vars: w.r.Vars, Run: dsl.RunInfo{ID: w.o.RunID, Workflow: w.r.Workflow.Name, StartedAt: now}}
	limit, err := w.r.Workflow.Deadline(scope)
	if err != nil {
		return cli.Failed("Cannot evaluate deadline", "%s.", words.UpperFirst(err.Error()))
	}
	by, limited := limit.From(now)
	if !limited || by.After(now) {
		return nil
	}
	earlier, err := earlierRun(ctx, w, s)
	// The deadline computed above is that of a new run. If the run exists already, the command
	// follows that run, and this deadline does not count.
	if err != nil || earlier != nil {
		return err
	}
	return cli.Failed("Deadline has passed", "The deadline of workflow %q is %s, which is %s ago. Nothing was started.",
		w.r.Workflow.Name, words.Stamp(by), render.Span(now.Sub(by)))
}
