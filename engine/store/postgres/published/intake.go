package published

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/lib/pq"

	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/intake"
)

const (
	submissionList = `
SELECT s.submission_id, s.run, s.workflow, s.input, s.submitted_by, s.submitted_at, p.workflow_id, p.given, coalesce(s.reply_to, ''), coalesce(s.correlation, ''), s.start_by, s.priority
FROM engine.submission s LEFT JOIN engine.published p USING (workflow) WHERE s.refused IS NULL AND s.submission_id > $1 ORDER BY s.submission_id LIMIT $2`
	submissionDrop   = `DELETE FROM engine.submission WHERE submission_id = ANY ($1::int8[])`
	submissionRefuse = `UPDATE engine.submission SET refused = $2, refused_at = pg_catalog.clock_timestamp() WHERE submission_id = $1 AND refused IS NULL`
	// submissionRefused counts refused submissions, and returns the one that was refused first.
	submissionRefused = `
SELECT (SELECT pg_catalog.count(*) FROM (SELECT FROM engine.submission WHERE refused IS NOT NULL LIMIT $1) c), run, workflow, refused, coalesce(refused_at, submitted_at)
FROM engine.submission WHERE refused IS NOT NULL ORDER BY coalesce(refused_at, submitted_at) LIMIT 1`
	submissionFind = `
SELECT submission_id, run, workflow, submitted_by, submitted_at, coalesce(refused, ''), coalesce(refused_at, submitted_at) FROM engine.submission WHERE run = $1`
	// submissionRetain removes submissions that were refused before the time $1, but not those that
	// were refused less than $2 microseconds ago. If the workflow of a submission has its own
	// retention, that retention counts, and not $1.
	submissionRetain = `
DELETE FROM engine.submission WHERE submission_id = ANY (ARRAY(
  SELECT s.submission_id FROM engine.submission s LEFT JOIN engine.published p USING (workflow) LEFT JOIN engine.workflow w USING (workflow_id)
  WHERE s.refused IS NOT NULL AND coalesce(s.refused_at, s.submitted_at) < pg_catalog.clock_timestamp() - $2::float8 * interval '1 microsecond'
    AND coalesce(s.refused_at, s.submitted_at) < coalesce(pg_catalog.clock_timestamp() - w.retention::float8 * interval '1 microsecond', $1)
  ORDER BY coalesce(s.refused_at, s.submitted_at) LIMIT $3 FOR UPDATE OF s SKIP LOCKED))`
)

// An Intake implements intake.Store in a PostgreSQL database.
type Intake struct{ *Store }

// Submissions returns the oldest submissions that wait.
func (s *Intake) Submissions(ctx context.Context, after int64, limit int) ([]intake.Submission, error) {
	rows, err := s.DB().QueryContext(ctx, submissionList, after, limit)
	if err != nil {
		return nil, s.Wrap("list submissions", err)
	}
	defer rows.Close()
	var list []intake.Submission
	for rows.Next() {
		var (
			x       intake.Submission
			id, pri sql.NullInt32
			by      sql.NullTime
		)
		if err := rows.Scan(&x.ID, &x.Run, &x.Workflow, &x.Input, &x.By, &x.At, &id, &x.Given, &x.ReplyTo, &x.Correlation, &by, &pri); err != nil {
			return nil, s.Wrap("list submissions", err)
		}
		x.WorkflowID, x.At = store.WorkflowID(id.Int32), x.At.UTC()
		if by.Valid {
			x.StartBy = by.Time.UTC()
		}
		if pri.Valid {
			n := int(pri.Int32)
			x.Priority = &n
		}
		list = append(list, x)
	}
	return list, s.wrapped("list submissions", rows.Err())
}

// Accept removes submissions whose runs are in the store.
func (s *Intake) Accept(ctx context.Context, ids ...int64) error {
	_, err := s.changed(ctx, submissionDrop, pq.Int64Array(ids))
	return s.wrapped("remove accepted submissions", err)
}

// Refuse records why a submission starts no run.
func (s *Intake) Refuse(ctx context.Context, id int64, why string) error {
	_, err := s.changed(ctx, submissionRefuse, id, why)
	return s.wrapped("refuse a submission", err)
}

// RefusedSubmissions counts the refused submissions, and returns the one that was refused first.
func (s *Intake) RefusedSubmissions(ctx context.Context) (intake.Refusals, error) {
	var r intake.Refusals
	o := &r.Oldest
	err := s.DB().QueryRowContext(ctx, submissionRefused, intake.CountLimit).Scan(&r.Count, &o.Run, &o.Workflow, &o.Refused, &o.RefusedAt)
	if errors.Is(err, sql.ErrNoRows) {
		return intake.Refusals{}, nil
	}
	o.RefusedAt = o.RefusedAt.UTC()
	return r, s.wrapped("count refused submissions", err)
}

// FindSubmission returns the submission of a run.
func (s *Intake) FindSubmission(ctx context.Context, run string) (intake.Submission, error) {
	var x intake.Submission
	err := s.DB().QueryRowContext(ctx, submissionFind, run).Scan(&x.ID, &x.Run, &x.Workflow, &x.By, &x.At, &x.Refused, &x.RefusedAt)
	if errors.Is(err, sql.ErrNoRows) {
		return x, store.ErrNotFound
	}
	if x.At, x.RefusedAt = x.At.UTC(), x.RefusedAt.UTC(); x.Refused == "" {
		x.RefusedAt = time.Time{}
	}
	return x, s.wrapped("find a submission", err)
}

// RetainSubmissions removes submissions that were refused before the given time, and at least
// intake.KeepFor ago. If the workflow of a submission has its own retention, that retention counts,
// and not the given time. One statement removes at most `page` submissions. RetainSubmissions
// returns how many it has removed.
func RetainSubmissions(ctx context.Context, db *sql.DB, before time.Time, page int) (removed int, err error) {
	for {
		res, err := db.ExecContext(ctx, submissionRetain, before, intake.KeepFor.Microseconds(), page)
		if err != nil {
			return removed, err
		}
		n, err := res.RowsAffected()
		if removed += int(n); err != nil || int(n) < page {
			return removed, err
		}
	}
}
