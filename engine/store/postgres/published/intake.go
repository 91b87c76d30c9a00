package published

import (
	"context"
	"database/sql"

	"github.com/lib/pq"

	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/intake"
)

const (
	submissionList = `
SELECT s.submission_id, s.run, s.workflow, s.input, s.submitted_by, s.submitted_at, p.workflow_id, p.given, coalesce(s.reply_to, ''), coalesce(s.correlation, '')
FROM engine.submission s LEFT JOIN engine.published p USING (workflow) WHERE s.refused IS NULL AND s.submission_id > $1 ORDER BY s.submission_id LIMIT $2`
	submissionDrop   = `DELETE FROM engine.submission WHERE submission_id = ANY ($1::int8[])`
	submissionRefuse = `UPDATE engine.submission SET refused = $2 WHERE submission_id = $1`
)

// An Intake is the part of a PostgreSQL store that implements intake.Store.
type Intake struct{ *Part }

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
			x  intake.Submission
			id sql.NullInt32
		)
		if err := rows.Scan(&x.ID, &x.Run, &x.Workflow, &x.Input, &x.By, &x.At, &id, &x.Given, &x.ReplyTo, &x.Correlation); err != nil {
			return nil, s.Wrap("list submissions", err)
		}
		x.WorkflowID, x.At = store.WorkflowID(id.Int32), x.At.UTC()
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
