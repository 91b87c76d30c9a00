package sqlite

import (
	"context"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/storekit"
)

const (
	lateAdd = `
INSERT INTO late_reply (run_id, node, call, outcome, at, step, code, data) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
ON CONFLICT (run_id, node, call, outcome) DO NOTHING`
	lateList = `SELECT node, call, outcome, at, step, code, data FROM late_reply WHERE run_id = ?1 AND EXISTS (SELECT 1 FROM run WHERE run_id = ?1) ORDER BY at, late_reply.rowid`
	logAdd   = `INSERT INTO log (run_id, at, step, attempt, level, message) SELECT ?1, ?2, ?3, ?4, ?5, ?6 WHERE EXISTS (SELECT 1 FROM run WHERE run_id = ?1)`
	logTrim  = `DELETE FROM log WHERE run_id = ?1 AND id <= (SELECT id FROM log WHERE run_id = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)`
	logList  = `SELECT id, at, step, attempt, level, message FROM log WHERE run_id = ?1 AND id > ?2 AND EXISTS (SELECT 1 FROM run WHERE run_id = ?1) ORDER BY id LIMIT ?3`
)

// evidence is the part of a Store that keeps late replies and log lines. It also records which
// alerts were pushed to people.
type evidence struct {
	*file
	*views
}

// KeepLate stores a late reply and its alert. It does nothing if this reply is stored already.
// It returns ErrNotFound if there is no such run.
func (s *evidence) KeepLate(ctx context.Context, l store.LateReply) error {
	if l.At.IsZero() {
		l.At = now()
	}
	return s.write(ctx, "keep late answer", func(tx *tx) error {
		var there bool
		if err := tx.row(runExists, int64(l.Run)).Scan(&there); err != nil {
			return err
		}
		if !there {
			return store.ErrNotFound
		}
		at := micros(l.At)
		res, err := tx.exec(lateAdd, int64(l.Run), l.Node, l.Call, naming.CleanText(l.Outcome), at, naming.CleanText(l.Step), naming.CleanText(l.Code), l.Data)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return err
		}
		return tx.alert(l.Run, at, l.Alert())
	})
}

// LateReplies returns the late replies to calls of a run, oldest first.
func (s *evidence) LateReplies(ctx context.Context, run status.RunID) ([]store.LateReply, error) {
	var out []store.LateReply
	err := s.query(ctx, "read late answers", lateList, []any{int64(run)}, func(r row) error {
		var (
			l  = store.LateReply{Run: run}
			at int64
		)
		err := r.Scan(&l.Node, &l.Call, &l.Outcome, &at, &l.Step, &l.Code, &l.Data)
		l.At = fromMicros(at)
		out = append(out, l)
		return err
	})
	return out, err
}

// KeepLogs stores lines that agents logged. Of each run it keeps only the last
// storekit.MaxLogLines lines.
func (s *evidence) KeepLogs(ctx context.Context, lines []store.LogLine) error {
	if len(lines) == 0 {
		return nil
	}
	return s.write(ctx, "keep logs", func(tx *tx) error {
		runs := make(map[status.RunID]bool)
		for _, l := range lines {
			if l.At.IsZero() {
				l.At = now()
			}
			_, err := tx.exec(logAdd, int64(l.Run), micros(l.At), naming.CleanText(l.Step), l.Attempt, naming.CleanText(l.Level), naming.CleanText(l.Message))
			if err != nil {
				return err
			}
			runs[l.Run] = true
		}
		for run := range runs {
			if _, err := tx.exec(logTrim, int64(run), storekit.MaxLogLines); err != nil {
				return err
			}
		}
		return nil
	})
}

// Logs returns the log lines of a run whose ids are greater than the parameter `after`, in the
// order of their ids. It returns no more lines than the parameter `limit` says.
func (s *evidence) Logs(ctx context.Context, run status.RunID, after int64, limit int) ([]store.LogLine, error) {
	var out []store.LogLine
	err := s.query(ctx, "read logs", logList, []any{int64(run), after, limit}, func(r row) error {
		var (
			l  = store.LogLine{Run: run}
			at int64
		)
		err := r.Scan(&l.ID, &at, &l.Step, &l.Attempt, &l.Level, &l.Message)
		l.At = fromMicros(at)
		out = append(out, l)
		return err
	})
	return out, err
}

const (
	alertAdd     = `INSERT INTO alert (run_id, at, kind, step, code, message) VALUES (?1, ?2, ?3, ?4, ?5, ?6)`
	alertColumns = `
SELECT a.id, a.run_id, n.name, w.name, coalesce(n.key, ''), a.at, a.kind, a.step, a.code, a.message
FROM alert a CROSS JOIN run r ON r.run_id = a.run_id CROSS JOIN workflow w ON w.workflow_id = r.workflow_id LEFT JOIN run_name n ON n.run_id = a.run_id`
	alertList        = alertColumns + ` ORDER BY a.at DESC, a.id DESC LIMIT ?1`
	alertListOfRun   = alertColumns + ` WHERE a.run_id = ?2 ORDER BY a.at DESC, a.id DESC LIMIT ?1`
	alertUndelivered = alertColumns + ` WHERE a.delivered_at IS NULL ORDER BY a.id LIMIT ?1`
	alertDelivered   = `UPDATE alert SET delivered_at = ?2 WHERE id = ?1 AND delivered_at IS NULL`
)

func (x *tx) alert(run status.RunID, at int64, a store.Alert) error {
	_, err := x.exec(alertAdd, int64(run), at, naming.CleanText(a.Kind), naming.CleanText(a.Step), naming.CleanText(a.Code), naming.CleanText(a.Message))
	return err
}

// Alerts returns the alerts of a run, newest first. If `id` is 0, it returns alerts of all runs.
// It returns no more alerts than the parameter `limit` says.
func (s *views) Alerts(ctx context.Context, id status.RunID, limit int) ([]store.AlertRow, error) {
	if id != 0 {
		return s.alerts(ctx, alertListOfRun, limit, int64(id))
	}
	return s.alerts(ctx, alertList, limit)
}

// Undelivered returns the alerts that were not pushed to people yet, oldest first. It returns
// no more alerts than the parameter `limit` says.
func (s *evidence) Undelivered(ctx context.Context, limit int) ([]store.AlertRow, error) {
	return s.alerts(ctx, alertUndelivered, limit)
}

func (s *views) alerts(ctx context.Context, query string, args ...any) ([]store.AlertRow, error) {
	var out []store.AlertRow
	err := s.query(ctx, "list alerts", query, args, func(r row) error {
		var (
			a       store.AlertRow
			run, at int64
			name    *string // nil = the name is made from the id
		)
		err := r.Scan(&a.ID, &run, &name, &a.Workflow, &a.Key, &at, &a.Kind, &a.Step, &a.Code, &a.Message)
		a.Run, a.At, a.Kind = status.RunID(run), fromMicros(at), storekit.AlertKind(a.Kind)
		if a.Name = naming.RunName(a.Run); name != nil {
			a.Name = *name
		}
		out = append(out, a)
		return err
	})
	return out, err
}

// Delivered records that the alerts with these ids were pushed to people.
func (s *evidence) Delivered(ctx context.Context, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	return s.write(ctx, "note delivery", func(tx *tx) error {
		for _, id := range ids {
			if _, err := tx.exec(alertDelivered, id, micros(now())); err != nil {
				return err
			}
		}
		return nil
	})
}
