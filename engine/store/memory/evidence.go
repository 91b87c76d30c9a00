package memory

import (
	"cmp"
	"context"
	"slices"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/notice"
	"github.com/saga-engine/engine/engine/store/storekit"
)

// evidence is the part of a Store that keeps late replies and log lines. It also records
// which alerts were pushed.
type evidence struct {
	*state
	alertIDs  int64 // the last id that was used for an alert
	logLines  int64 // the last id that was used for a log line
	delivered int   // all alerts before this index of state.alerts were pushed
}

func (s *evidence) alertLocked(run status.RunID, a store.AlertRow) {
	s.alertIDs++
	a.ID, a.Run = s.alertIDs, run
	s.alerts = append(s.alerts, alert{AlertRow: a})
}

// KeepLate stores a late reply and its alert, unless it has stored the same late reply
// before. It returns ErrNotFound if there is no such run.
func (s *evidence) KeepLate(ctx context.Context, l store.LateReply) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	r := s.runs[l.Run]
	if r == nil {
		return store.ErrNotFound
	}
	if l.At.IsZero() {
		l.At = s.now()
	}
	l.At, l.Data = micro(l.At), slices.Clone(l.Data)
	l.Step, l.Outcome, l.Code = naming.CleanText(l.Step), naming.CleanText(l.Outcome), naming.CleanText(l.Code)
	for _, old := range r.late {
		if old.Node == l.Node && old.Call == l.Call && old.Outcome == l.Outcome {
			return nil
		}
	}
	r.late = append(r.late, l)
	s.alertLocked(l.Run, store.AlertRow{Alert: l.Alert(), At: l.At})
	return nil
}

// LateReplies returns the late replies of a run, oldest first.
func (s *evidence) LateReplies(ctx context.Context, id status.RunID) ([]store.LateReply, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	r := s.runs[id]
	if r == nil {
		return nil, nil
	}
	out := slices.Clone(r.late)
	slices.SortStableFunc(out, func(a, b store.LateReply) int { return a.At.Compare(b.At) })
	for i := range out {
		out[i].Data = slices.Clone(out[i].Data)
	}
	return out, nil
}

// KeepLogs stores lines that agents logged. It keeps only the last MaxLogLines lines of
// each run.
func (s *evidence) KeepLogs(ctx context.Context, lines []store.LogLine) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	for _, l := range lines {
		r := s.runs[l.Run]
		if r == nil {
			continue
		}
		if l.At.IsZero() {
			l.At = s.now()
		}
		s.logLines++
		l.ID, l.At = s.logLines, micro(l.At)
		l.Step, l.Level, l.Message = naming.CleanText(l.Step), naming.CleanText(l.Level), naming.CleanText(l.Message)
		r.logs = append(r.logs, l)
		if n := len(r.logs) - storekit.MaxLogLines; n > 0 {
			r.logs = slices.Delete(r.logs, 0, n)
		}
	}
	return nil
}

// Logs returns log lines of a run, in the order of their ids. It returns only lines with an
// id greater than the parameter `after`. The parameter `limit` is the largest number of lines.
func (s *evidence) Logs(ctx context.Context, id status.RunID, after int64, limit int) ([]store.LogLine, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	r := s.runs[id]
	if r == nil {
		return nil, nil
	}
	i, _ := slices.BinarySearchFunc(r.logs, after+1, func(l store.LogLine, id int64) int { return cmp.Compare(l.ID, id) })
	return slices.Clone(r.logs[i:min(len(r.logs), i+limit)]), nil
}

// Undelivered returns the alerts that were not pushed yet, oldest first. The parameter
// `limit` is the largest number of alerts.
func (s *evidence) Undelivered(ctx context.Context, limit int) ([]store.AlertRow, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var rows []store.AlertRow
	for _, a := range s.alerts[s.delivered:] {
		if len(rows) == limit {
			break
		}
		if !a.delivered {
			rows = append(rows, s.namedLocked(a.AlertRow))
		}
	}
	return rows, nil
}

// Delivered records that the alerts with these ids were pushed.
func (s *evidence) Delivered(ctx context.Context, ids []int64) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	for _, id := range ids {
		i, ok := slices.BinarySearchFunc(s.alerts, id, func(a alert, id int64) int { return cmp.Compare(a.ID, id) })
		if ok {
			s.alerts[i].delivered = true
		}
	}
	for s.delivered < len(s.alerts) && s.alerts[s.delivered].delivered {
		s.delivered++
	}
	return nil
}

// namedLocked returns the alert a with the name, workflow and key of its run. If an older engine
// has stored the kind of the alert under a former name, namedLocked replaces the kind by its
// present name.
func (s *evidence) namedLocked(a store.AlertRow) store.AlertRow {
	r := s.runs[a.Run]
	a.Name, a.Workflow, a.Key = r.head.Name, s.flows[r.head.Workflow-1].name, r.key.key
	a.Kind = storekit.AlertKind(a.Kind)
	return a
}

// notices is the part of a Store that keeps notices. It implements notice.Keeper.
type notices struct{ *state }

// announceLocked writes the notices of a transition.
func (s *state) announceLocked(t *store.Transition) {
	for _, state := range t.Announce {
		n := notice.Notice{Run: t.Run, Seq: t.Seq, State: naming.CleanText(state)}
		if i, known := s.findNoticeLocked(n); !known {
			s.notices = slices.Insert(s.notices, i, notice.Kept{Notice: n})
		}
	}
}

// findNoticeLocked returns the index of a notice in the sorted list of all notices, or the index
// at which it would be.
func (s *state) findNoticeLocked(n notice.Notice) (int, bool) {
	return slices.BinarySearchFunc(s.notices, n, func(k notice.Kept, n notice.Notice) int {
		return cmp.Or(cmp.Compare(k.Run, n.Run), cmp.Compare(k.Seq, n.Seq), cmp.Compare(k.State, n.State))
	})
}

// Open returns notices that are not announced yet, ascending by run, row and state. It returns only
// notices after the one in the parameter `after`, and at most as many as the parameter `limit`
// says.
func (s *notices) Open(ctx context.Context, after notice.Notice, limit int) ([]notice.Notice, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	from, known := s.findNoticeLocked(after)
	if known {
		from++
	}
	var out []notice.Notice
	for _, k := range s.state.notices[from:] {
		if len(out) == limit {
			break
		}
		if !k.Done {
			out = append(out, k.Notice)
		}
	}
	return out, nil
}

// Announced marks notices as announced.
func (s *notices) Announced(ctx context.Context, done ...notice.Notice) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	for _, n := range done {
		if i, known := s.findNoticeLocked(n); known {
			s.state.notices[i].Done = true
		}
	}
	return nil
}

// OfRun returns all notices of a run, ascending by row and state.
func (s *notices) OfRun(ctx context.Context, run status.RunID) ([]notice.Kept, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var out []notice.Kept
	for _, k := range s.state.notices {
		if k.Run == run {
			out = append(out, k)
		}
	}
	return out, nil
}
