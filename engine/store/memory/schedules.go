package memory

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/saga-engine/engine/engine/store/schedules"
)

// published is the part of a Store that keeps published workflows and their schedules. It
// implements schedules.Store.
type published struct {
	*state
	workflows map[string]schedules.Workflow
	rows      map[scheduleKey]schedules.Row
}

// A scheduleKey identifies a schedule by the name of its workflow and its own name.
type scheduleKey struct{ workflow, name string }

// Publish stores a published workflow and its schedules, in place of the former ones. Some fields
// of the former schedules stay, see schedules.Store.
func (s *published) Publish(ctx context.Context, w schedules.Workflow, rows []schedules.Row) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	w.At = s.now().Truncate(time.Microsecond)
	w.Given, w.Variables, w.Events = slices.Clone(w.Given), nil, slices.Clone(w.Events)
	s.workflows[w.Name] = w
	kept := map[scheduleKey]bool{}
	for _, r := range rows {
		at := scheduleKey{w.Name, r.Name}
		kept[at] = true
		old, ok := s.rows[at]
		if !ok {
			old = schedules.Row{Workflow: w.Name, Name: r.Name}
		}
		if old.Timetable != r.Timetable {
			old.Timetable, old.Next = r.Timetable, r.Next
		}
		old.Version++
		s.rows[at] = old
	}
	for at := range s.rows {
		if at.workflow == w.Name && !kept[at] {
			delete(s.rows, at)
		}
	}
	return nil
}

// Withdraw removes a published workflow and its schedules.
func (s *published) Withdraw(ctx context.Context, workflow string) (bool, error) {
	if err := s.lock(ctx); err != nil {
		return false, err
	}
	defer s.mu.Unlock()
	_, ok := s.workflows[workflow]
	delete(s.workflows, workflow)
	for at := range s.rows {
		if at.workflow == workflow {
			delete(s.rows, at)
		}
	}
	return ok, nil
}

// ReplaceGiven replaces the values of the deployment variables of a published workflow, but only if
// the stored values equal the parameter `old`.
func (s *published) ReplaceGiven(ctx context.Context, workflow string, old, given []byte) (bool, error) {
	if err := s.lock(ctx); err != nil {
		return false, err
	}
	defer s.mu.Unlock()
	w, ok := s.workflows[workflow]
	if !ok || !bytes.Equal(w.Given, old) {
		return false, nil
	}
	w.Given = slices.Clone(given)
	s.workflows[workflow] = w
	return true, nil
}

// Published returns the published workflows, in the order of their names.
func (s *published) Published(ctx context.Context) ([]schedules.Workflow, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var list []schedules.Workflow
	for _, w := range s.workflows {
		list = append(list, w)
	}
	slices.SortFunc(list, func(a, b schedules.Workflow) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

// Schedules returns the schedules that are not paused and whose next tick is before the given time.
// If the time is zero, it returns all schedules. It returns no more schedules than the parameter
// `limit` says.
func (s *published) Schedules(ctx context.Context, before time.Time, limit int) ([]schedules.Row, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var list []schedules.Row
	for _, r := range s.rows {
		if before.IsZero() || !r.Paused && r.Next.Before(before) {
			w := s.workflows[r.Workflow]
			r.ID, r.Given = w.ID, slices.Clone(w.Given)
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b schedules.Row) int {
		byName := cmp.Or(cmp.Compare(a.Workflow, b.Workflow), cmp.Compare(a.Name, b.Name))
		if before.IsZero() {
			return byName
		}
		return cmp.Or(a.Next.Compare(b.Next), byName)
	})
	return list[:min(len(list), limit)], nil
}

// Move replaces Next, Last, LastRun and Paused of each schedule whose version is still Row.Version.
func (s *published) Move(ctx context.Context, rows ...schedules.Row) (moved int, err error) {
	if err := s.lock(ctx); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	for _, r := range rows {
		at := scheduleKey{r.Workflow, r.Name}
		old, ok := s.rows[at]
		if !ok || old.Version != r.Version {
			continue
		}
		old.Next, old.Last, old.LastRun, old.Paused = r.Next, r.Last, r.LastRun, r.Paused
		old.Version++
		s.rows[at] = old
		moved++
	}
	return moved, nil
}
