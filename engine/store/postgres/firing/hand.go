package firing

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/lib/pq"

	"github.com/saga-engine/engine/engine/store/firings"
)

// A handFunc starts a run for each row of a page.
type handFunc = func(ctx context.Context, rows []firings.Row) (firings.Progress, error)

// A page describes a page of rows with which the function `hand` was called.
type page struct {
	progress firings.Progress
	keys     []string // keys of the rows; set only if Query.Repeats is true
	last     *string  // new watermark of the firing; nil = the watermark stays
	end      bool     // true = no row follows
}

// add adds the progress and the keys of the page `other` to p.
func (p *page) add(other page) {
	p.progress.Report.Add(other.progress.Report)
	p.progress.Bad = append(p.progress.Bad, other.progress.Bad...)
	p.keys = append(p.keys, other.keys...)
}

// Hand reads the next page of a firing and stores the progress. In between, it calls the function
// `hand`, which starts the runs of the page.
func (s *Store) Hand(ctx context.Context, f *firings.Firing, q firings.Query, hand handFunc) (moved bool, err error) {
	do := func(read func(func(tx *sql.Tx) error) error, tx *sql.Tx) error {
		var p page
		switch {
		case q.Keys != nil:
			p, err = s.named(ctx, read, f, q, hand)
		case q.Parallel > 1:
			p, err = s.parallel(ctx, f, q, hand)
		default:
			p, err = s.next(ctx, read, f.ID, q, f.Watermark, nil, f.Pass > 0, hand)
		}
		if err != nil {
			return err
		}
		next := *f
		if err := s.conclude(ctx, read, &next, q, &p); err != nil {
			return err
		}
		if moved, err = s.advance(ctx, tx, &next, p); err == nil && moved {
			*f = next
		}
		return err
	}
	if q.Lock {
		// The rows must stay locked until their progress is stored. So a single transaction reads
		// the rows and stores the progress.
		err = s.inside(ctx, true, func(tx *sql.Tx) error {
			return do(func(use func(*sql.Tx) error) error { return use(tx) }, tx)
		})
	} else {
		err = do(func(use func(*sql.Tx) error) error { return s.inside(ctx, false, use) }, nil)
	}
	if err != nil {
		return false, s.Wrap("read a page of a selection", explained(err))
	}
	return moved, nil
}

// next reads the rows after a watermark, and calls the function `hand` with them.
func (s *Store) next(ctx context.Context, within func(func(tx *sql.Tx) error) error, firing int64, q firings.Query, after, upTo *string, anew bool, hand handFunc) (p page, err error) {
	var rows []firings.Row
	n := 0
	err = within(func(tx *sql.Tx) (err error) {
		st := around(q)
		text := st.page(firing, after, upTo, anew, q.PageSize+1)
		rows, n, err = read(ctx, tx, text, st.args)
		return err
	})
	if err != nil {
		return page{}, err
	}
	p.end = n <= q.PageSize
	if last := len(rows) - 1; !p.end && rows[last].Copies == 1 && last > 0 {
		rows = rows[:last] // leave out the additional row: the next page reads it again
	}
	if len(rows) > 0 {
		p.last = &rows[len(rows)-1].Key
	}
	return p, handOn(ctx, q, rows, &p, hand)
}

// handOn calls the function `hand` with the rows, if there are any, and stores the result in p.
func handOn(ctx context.Context, q firings.Query, rows []firings.Row, p *page, hand handFunc) (err error) {
	if len(rows) == 0 {
		return nil
	}
	if p.progress, err = hand(ctx, rows); err != nil {
		return err
	}
	if q.Repeats {
		for _, r := range rows {
			p.keys = append(p.keys, r.Key)
		}
	}
	return nil
}

// named reads the rows with the keys q.Keys, and calls the function `hand` with them. If the row of
// a key does not exist any more, named counts this row as vanished.
func (s *Store) named(ctx context.Context, within func(func(tx *sql.Tx) error) error, f *firings.Firing, q firings.Query, hand handFunc) (p page, err error) {
	p = page{last: f.Watermark, end: q.Last}
	if len(q.Keys) == 0 {
		return p, nil
	}
	var rows []firings.Row
	err = within(func(tx *sql.Tx) (err error) {
		st := around(q)
		rows, _, err = read(ctx, tx, st.named(q.Keys), st.args)
		return err
	})
	if err != nil {
		return page{}, err
	}
	p.last = &q.Keys[len(q.Keys)-1]
	gone := int64(len(slices.Compact(slices.Clone(q.Keys))) - len(rows))
	if err := handOn(ctx, q, rows, &p, hand); err != nil {
		return page{}, err
	}
	p.progress.Report.Add(firings.Report{Selected: gone, Vanished: gone})
	return p, nil
}

// parallel calls the function `hand` with several pages at the same time. It first reads the
// keys of these pages, to find out where each page begins and ends.
func (s *Store) parallel(ctx context.Context, f *firings.Firing, q firings.Query, hand handFunc) (all page, err error) {
	var keys []string
	limit := q.PageSize * q.Parallel
	err = s.inside(ctx, false, func(tx *sql.Tx) (err error) {
		st := around(q)
		text := st.keys(f.Watermark, limit+1)
		keys, err = readKeys(ctx, tx, text, st.args)
		return err
	})
	if err != nil {
		return page{}, err
	}
	if all.end = len(keys) <= limit; !all.end {
		keys = keys[:limit]
	}
	var (
		group sync.WaitGroup
		mu    sync.Mutex
		errs  []error
		after = f.Watermark
	)
	for chunk := range slices.Chunk(keys, q.PageSize) {
		from, upTo := after, &chunk[len(chunk)-1]
		after = upTo
		group.Go(func() {
			p, err := s.between(ctx, f.ID, q, from, upTo, hand)
			mu.Lock()
			defer mu.Unlock()
			all.add(p)
			errs = append(errs, err)
		})
	}
	group.Wait()
	all.last = after
	return all, errors.Join(errs...)
}

// between calls the function `hand` with all rows of a range of keys. It reads several pages if
// rows were added to the range.
func (s *Store) between(ctx context.Context, firing int64, q firings.Query, after, upTo *string, hand handFunc) (all page, err error) {
	within := func(use func(*sql.Tx) error) error { return s.inside(ctx, false, use) }
	for {
		p, err := s.next(ctx, within, firing, q, after, upTo, false, hand)
		if err != nil {
			return page{}, err
		}
		all.add(p)
		if p.end {
			return all, nil
		}
		after = p.last
	}
}

// conclude stores in f the progress of the firing after the page p. At the end of the firing it
// also counts the rows that are in no page: rows without a key, and rows that were locked until the
// end.
func (s *Store) conclude(ctx context.Context, within func(func(tx *sql.Tx) error) error, f *firings.Firing, q firings.Query, p *page) error {
	f.Version++
	f.Error = ""
	f.Fresh = f.Fresh || p.last != nil && q.Repeats
	if p.last != nil {
		f.Watermark = p.last
	}
	if !p.end {
		f.Report.Add(p.progress.Report)
		return nil
	}
	if q.Repeats && f.Fresh {
		f.Pass, f.Fresh, f.Watermark = f.Pass+1, false, nil
		f.Report.Add(p.progress.Report)
		return nil
	}
	f.State = firings.Complete
	err := within(func(tx *sql.Tx) error {
		st := around(q)
		n, err := count(ctx, tx, st.without(), st.args)
		if err != nil {
			return err
		}
		if n > 0 {
			p.progress.Report.Selected += n
			p.progress.Report.Quarantined += n
			p.progress.Bad = append(p.progress.Bad, firings.Bad{Error: fmt.Sprintf("%d rows have no key: column %s is NULL", n, q.Key)})
		}
		if q.Lock {
			st := around(q)
			text := st.left(f.ID)
			p.progress.Report.Missed, err = count(ctx, tx, text, st.args)
		}
		return err
	})
	f.Report.Add(p.progress.Report)
	return err
}

const (
	// firingAdvance stores the progress of a firing, but only if the firing is open and its stored
	// version is f.Version - 1.
	firingAdvance = `
WITH f AS (
  UPDATE engine.firing SET version = version + 1, watermark = $3, pass = $4, fresh = $5, state = $6, error = '',
    ended_at = CASE WHEN $6 <> 'open' THEN pg_catalog.clock_timestamp() END, selected = $7, started = $8, refused = $9, filtered = $10,
    quarantined = $11, vanished = $12, missed = $13
  WHERE firing_id = $1 AND version = $2 AND state = 'open' RETURNING firing_id
), k AS (
  INSERT INTO engine.firing_key (firing_id, key) SELECT firing_id, x FROM f, pg_catalog.unnest($14::text[]) x ON CONFLICT DO NOTHING
), q AS (
  INSERT INTO engine.quarantine (firing_id, key, error)
  SELECT firing_id, NULLIF(x, ''), e FROM f, ROWS FROM (pg_catalog.unnest($15::text[]), pg_catalog.unnest($16::text[])) v(x, e)
)
SELECT pg_catalog.count(*) FROM f`
	firingForget = `DELETE FROM engine.firing_key WHERE firing_id = $1`
)

// advance stores the progress of a firing. It reports false if the firing has another version or is
// not open any more. If tx is nil, advance uses a transaction of its own.
func (s *Store) advance(ctx context.Context, tx *sql.Tx, f *firings.Firing, p page) (moved bool, err error) {
	if tx == nil {
		err = s.inside(ctx, true, func(tx *sql.Tx) error {
			moved, err = s.advance(ctx, tx, f, p)
			return err
		})
		return moved, err
	}
	keys, bad, why := pq.StringArray(p.keys), pq.StringArray{}, pq.StringArray{}
	for _, b := range p.progress.Bad {
		bad, why = append(bad, b.Key), append(why, b.Error)
	}
	if keys == nil {
		keys = pq.StringArray{}
	}
	r := f.Report
	n, err := count(ctx, tx, firingAdvance, []any{f.ID, f.Version - 1, f.Watermark, f.Pass, f.Fresh, f.State,
		r.Selected, r.Started, r.Refused, r.Filtered, r.Quarantined, r.Vanished, r.Missed, keys, bad, why})
	if err != nil {
		return false, err
	}
	if n > 0 && f.State != firings.Open {
		_, err = tx.ExecContext(ctx, firingForget, f.ID)
	}
	return n > 0, err
}
