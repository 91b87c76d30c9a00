package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/sqlite"
	"github.com/saga-engine/engine/engine/story"
)

// attachment follows a run that another engine owns.
type attachment struct{ *work }

// attach checks that an earlier run is the one that is meant: the same
// workflow, the same values. Another definition is only remarked.
func (w attachment) attach(ctx context.Context, s *session, row store.RunRow) error {
	name := render.Clean(row.Name)
	switch {
	case row.WorkflowName != w.r.wf.Name:
		return failed("Run belongs to another workflow", "Run %s is a run of workflow %q, not of %q. Choose another --run-id.",
			name, row.WorkflowName, w.r.wf.Name)
	case w.o.runID != "" && row.Name != w.o.runID:
		return failed("Key is held by another run", "The unique key %q belongs to run %s (%s), so there can be no run %s. "+
			"Leave --run-id out to attach to it.", render.Clean(row.Key), name, row.State, render.Clean(w.o.runID))
	}
	told, err := journal.Load(ctx, s.store, s.sealer, s.defs, row.Run)
	if err != nil {
		return s.wrap("read run "+name, err)
	}
	if names := w.differing(told.State.Vars()); len(names) > 0 {
		return failed("Run has other values", "Run %s exists (%s) and was started with other values of %s. "+
			"Give the same values to attach to it.", name, row.State, strings.Join(names, ", "))
	}
	if row.Digest != w.r.def.Digest() && !w.begun {
		w.view.Note(fmt.Sprintf("Run %s keeps to the definition it was started with (%s); the one here is %s.",
			name, short(row.Digest), short(w.r.def.Digest())))
	}
	return nil
}

// differing names the variables that were given a value which is not the
// recorded one.
func (w attachment) differing(recorded dsl.Value) []string {
	var now, then map[string]json.RawMessage
	if json.Unmarshal(w.r.vars.JSON(), &now) != nil || json.Unmarshal(recorded.JSON(), &then) != nil {
		return nil // both are objects, made by this engine
	}
	var names []string
	for _, name := range sortedNames(w.r.given) {
		if was, ok := then[name]; ok && !bytes.Equal(was, now[name]) {
			names = append(names, name)
		}
	}
	return names
}

// storyOf is what a view is told before a run's facts.
func storyOf(wf *dsl.Workflow, row store.RunRow, attached bool) render.Story {
	s := render.Story{Run: row.Name, Workflow: wf.Name, Key: row.Key, Attached: attached}
	if attached {
		s.Status, s.Past = row.State.String(), !row.State.Final()
		if row.State.Final() {
			s.Ended = row.FinishedAt
		}
	}
	for _, step := range wf.Steps {
		info := render.StepInfo{Name: step.Name, Action: actionName(step.Do), Undo: undone(wf, step)}
		for _, i := range step.After {
			info.After = append(info.After, wf.Steps[i].Name)
		}
		s.Steps = append(s.Steps, info)
	}
	return s
}

// errFree ends looking on: the process that held the state has gone.
var errFree = errors.New("the state is free")

// lookOn follows a run that the process which holds the embedded state works
// on. done is false if that process has gone before the run ended. Returns
// locked if there is no such run yet.
func (w attachment) lookOn(ctx context.Context, locked *sqlite.LockedError) (end outcome, done bool, err error) {
	s, err := w.a.opener().openBeside(ctx, w.r.dir, w.r.shown)
	if err != nil {
		return outcome{}, false, locked
	}
	defer s.close()
	row, err := w.find(ctx, s)
	if err != nil {
		return outcome{}, false, err
	}
	if row == nil {
		return outcome{}, false, locked
	}
	if err := w.attach(ctx, s, *row); err != nil {
		return outcome{}, false, err
	}
	w.begin(*row, true)
	followCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go w.awaitFree(followCtx, cancel)
	ends := make(chan followed, 1)
	go func() {
		ends <- w.following(followCtx, s, func(ctx context.Context, from int, fn func(int, []story.Fact), o journal.FollowOptions) (*machine.State, error) {
			o.Poll = 500 * time.Millisecond
			return journal.Follow(ctx, s.store, s.sealer, s.defs, row.Run, from, fn, o)
		})
	}()
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	timeout, stopTimer := w.timeout()
	defer stopTimer()
	for {
		select {
		case fn := <-w.updates:
			fn()
		case f := <-ends:
			switch {
			case f.err == nil:
				return outcome{run: row.Name, state: f.state}, true, nil
			case errors.Is(context.Cause(followCtx), errFree):
				return outcome{}, false, nil
			}
			return outcome{}, false, f.err
		case <-w.stops: // nothing of ours is running: leave
			end, err := w.last(ctx, s, *row)
			return end, true, err
		case <-timeout:
			w.timedOut()
			end, err := w.last(ctx, s, *row)
			return end, true, err
		case <-ticker.C:
			w.view.Tick(w.a.now())
		}
	}
}

// find returns the run that this command means, if it exists.
func (w attachment) find(ctx context.Context, s *session) (*store.RunRow, error) {
	if w.o.runID != "" {
		row, err := s.store.Find(ctx, w.o.runID)
		if errors.Is(err, store.ErrNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, s.wrap("find the run", err)
		}
		return &row, nil
	}
	key, err := w.key()
	if key == "" || err != nil {
		return nil, err
	}
	return s.people().holder(ctx, w.r.wf.Name, key)
}

// key evaluates the unique key of the run; "" = it has none.
func (w attachment) key() (string, error) {
	if w.r.wf.UniqueKey == nil {
		return "", nil
	}
	key, err := w.r.wf.UniqueKey(&dsl.Scope{Vars: w.r.vars, Run: dsl.RunInfo{Workflow: w.r.wf.Name, StartedAt: w.a.now()}})
	if err != nil {
		return "", failed("Cannot evaluate unique.key", "%s.", upperFirst(err.Error()))
	}
	return key, nil
}

// awaitFree tries the lock of the embedded state until it is free.
func (w attachment) awaitFree(ctx context.Context, free context.CancelCauseFunc) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s, err := w.a.opener().openWriter(ctx, w.r.dir, w.r.shown)
			if err == nil {
				s.close()
				free(errFree)
				return
			}
		}
	}
}
