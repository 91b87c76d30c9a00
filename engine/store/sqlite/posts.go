package sqlite

import (
	"context"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/replies"
)

const (
	replyAdd = `
INSERT INTO reply (run_id, n, sink, correlation, state, at)
VALUES (?1, 1 + (SELECT coalesce(max(n), 0) FROM reply WHERE run_id = ?1), ?2, ?3, ?4, ?5)`
	replyColumns = `
SELECT p.run_id, p.n, p.sink, p.correlation, p.state, p.at, p.tries, p.why, p.done, m.run, w.name, coalesce(m.key, '')
FROM reply p CROSS JOIN run u ON u.run_id = p.run_id CROSS JOIN workflow w ON w.workflow_id = u.workflow_id CROSS JOIN run_public m ON m.run_id = p.run_id`
	replyIsNext = ` WHERE p.sink = ?1 AND p.done = 0
  AND (p.n = 1 OR NOT EXISTS (SELECT 1 FROM reply q WHERE q.run_id = p.run_id AND q.n = p.n - 1 AND q.done = 0))`
	replyNext    = replyColumns + replyIsNext + ` ORDER BY p.due, p.run_id, p.n LIMIT ?2`
	replyNextDue = replyColumns + replyIsNext + ` AND p.due <= ?3 ORDER BY p.due, p.run_id, p.n LIMIT ?2`
	replyWaiting = replyColumns + ` WHERE p.sink = ?1 AND p.done = 0 ORDER BY p.due, p.run_id, p.n LIMIT ?2`
	replyOfRun   = replyColumns + ` WHERE p.run_id = ?1 ORDER BY p.n`
	replyDone    = `UPDATE reply SET done = 1, why = '' WHERE run_id = ?1 AND n = ?2 AND done = 0`
	replyTried   = `UPDATE reply SET tries = tries + 1 WHERE run_id = ?1 AND n = ?2`
	replyWhy     = `UPDATE reply SET why = ?3 WHERE run_id = ?1 AND n = ?2 AND done = 0`
	replyClaimed = `UPDATE reply SET due = ?3 WHERE run_id = ?1 AND n >= ?2 AND done = 0`
	// replySinks finds each sink with one search in the index, and does not read all replies.
	replySinks = `
WITH RECURSIVE hop(sink) AS (
  SELECT * FROM (SELECT sink FROM reply WHERE done = 0 AND sink > ?1 AND sink < ?2 ORDER BY sink LIMIT 1)
  UNION ALL
  SELECT (SELECT sink FROM reply WHERE done = 0 AND sink > hop.sink AND sink < ?2 ORDER BY sink LIMIT 1) FROM hop WHERE hop.sink IS NOT NULL
)`
	replyDue = replySinks + `
SELECT hop.sink FROM hop WHERE hop.sink IS NOT NULL AND EXISTS (SELECT 1 FROM reply WHERE done = 0 AND sink = hop.sink AND due <= ?4) LIMIT ?3`
	replyLag = replySinks + `
SELECT hop.sink, (SELECT count(*) FROM (SELECT 1 FROM reply WHERE done = 0 AND sink = hop.sink LIMIT ?4)),
  (SELECT min(at) FROM (SELECT at FROM reply WHERE done = 0 AND sink = hop.sink ORDER BY due LIMIT ?4))
FROM hop WHERE hop.sink IS NOT NULL LIMIT ?3`
)

// posts is the part of a Store that keeps replies. It implements replies.Keeper.
type posts struct{ *file }

// Replies returns the outbox.
func (s *posts) Replies() replies.Outbox { return (*outbox)(s) }

// An outbox implements replies.Outbox. Take also works in a store that was opened with
// Options.Beside.
type outbox posts

// post writes the replies of a transition.
func post(x *tx, run status.RunID, at int64, p *naming.Post) error {
	if p == nil {
		return nil
	}
	for _, state := range p.States {
		if _, err := x.exec(replyAdd, int64(run), naming.CleanText(p.Sink), naming.CleanText(p.Correlation), naming.CleanText(state), at); err != nil {
			return err
		}
	}
	return nil
}

// scanReplies returns a function that reads one row of replyColumns and appends it to a list.
func scanReplies(to *[]replies.Reply) func(row) error {
	return func(r row) error {
		var (
			x       replies.Reply
			run, at int64
		)
		err := r.Scan(&run, &x.N, &x.Sink, &x.Correlation, &x.State, &at, &x.Tries, &x.Why, &x.Done, &x.Name, &x.Workflow, &x.Key)
		x.Run, x.At = status.RunID(run), fromMicros(at)
		*to = append(*to, x)
		return err
	}
}

// Take returns the next replies of runs that have a reply for the sink, one of each run and at most
// `limit` replies. It marks these replies as done.
func (s *outbox) Take(ctx context.Context, sink string, limit int) (out []replies.Reply, err error) {
	err = s.writeUnowned(ctx, "take replies", func(tx *tx) error {
		out = nil
		if err := tx.each(replyNext, []any{sink, limit}, scanReplies(&out)); err != nil {
			return err
		}
		for i := range out {
			if _, err := tx.exec(replyDone, int64(out[i].Run), out[i].N); err != nil {
				return err
			}
			out[i].Done = true
		}
		return nil
	})
	return out, err
}

// Waiting returns replies for the sink that are not done.
func (s *outbox) Waiting(ctx context.Context, sink string, limit int) (out []replies.Reply, err error) {
	err = s.query(ctx, "list replies", replyWaiting, []any{sink, limit}, scanReplies(&out))
	return out, err
}

// OfRun returns all replies of a run, ascending by number.
func (s *outbox) OfRun(ctx context.Context, run status.RunID) (out []replies.Reply, err error) {
	err = s.query(ctx, "list the replies of a run", replyOfRun, []any{int64(run)}, scanReplies(&out))
	return out, err
}

// Due returns the sinks that have a reply which an engine may claim now, sorted by name.
func (s *outbox) Due(ctx context.Context, after, before string, limit int) (out []string, err error) {
	err = s.query(ctx, "look for replies to send", replyDue, []any{after, before, limit, micros(now())}, func(r row) error {
		var sink string
		err := r.Scan(&sink)
		out = append(out, sink)
		return err
	})
	return out, err
}

// Claim claims and returns the next replies of runs that have a reply for the sink, one of each run
// and at most `limit` replies. It leaves out replies that no engine can claim now.
func (s *outbox) Claim(ctx context.Context, sink string, limit int, claimTime time.Duration) (out []replies.Reply, err error) {
	err = s.write(ctx, "claim replies", func(tx *tx) error {
		out = nil
		at := now()
		if err := tx.each(replyNextDue, []any{sink, limit, micros(at)}, scanReplies(&out)); err != nil {
			return err
		}
		for i := range out {
			out[i].Tries++
			if _, err := tx.exec(replyTried, int64(out[i].Run), out[i].N); err != nil {
				return err
			}
			if _, err := tx.exec(replyClaimed, int64(out[i].Run), out[i].N, micros(at.Add(claimTime))); err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}

// Delivered marks replies as done.
func (s *outbox) Delivered(ctx context.Context, done ...replies.ID) error {
	if len(done) == 0 {
		return nil
	}
	return s.write(ctx, "mark replies", func(tx *tx) error {
		for _, id := range done {
			n, err := tx.changed(replyDone, int64(id.Run), id.N)
			if err == nil && n > 0 { // end the claim, so that the next reply of the run can be claimed now
				_, err = tx.exec(replyClaimed, int64(id.Run), id.N, 0)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Later records why a reply was not delivered. After the given pause, an engine may claim the reply
// again. Later does nothing if the reply is done.
func (s *outbox) Later(ctx context.Context, id replies.ID, pause time.Duration, why string) error {
	return s.write(ctx, "put off a reply", func(tx *tx) error {
		n, err := tx.changed(replyWhy, int64(id.Run), id.N, naming.CleanText(why))
		if err == nil && n > 0 {
			_, err = tx.exec(replyClaimed, int64(id.Run), id.N, micros(now().Add(pause)))
		}
		return err
	})
}

// Lag returns the sinks for which replies wait, sorted by name.
func (s *outbox) Lag(ctx context.Context) (out []replies.Lag, err error) {
	err = s.query(ctx, "count the replies that wait", replyLag, []any{"", "~", replies.MaxSinks, replies.LagLimit}, func(r row) error {
		var (
			l  replies.Lag
			at int64
		)
		err := r.Scan(&l.Sink, &l.Waiting, &at)
		l.Oldest = fromMicros(at)
		out = append(out, l)
		return err
	})
	return out, err
}

// Hint does nothing: the consumers of replies poll the file.
func (s *outbox) Hint(context.Context, ...string) error { return nil }
