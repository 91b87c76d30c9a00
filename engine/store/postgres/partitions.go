package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store/naming"
)

// These statements read and change the partitions of the journal. The statements that change
// partitions call SQL functions, which build the names of the partitions. Migration 00003 explains
// these functions.
const (
	partitionList     = `SELECT name, lo, hi, bytes, pg_catalog.clock_timestamp() FROM engine.journal_part ORDER BY lo`
	partitionLock     = `SELECT engine.journal_alone()`
	partitionNoVacuum = `SELECT engine.journal_quiet($1)`
	partitionLimit    = `SELECT engine.journal_limit($1)`
	partitionTrust    = `SELECT engine.journal_trust()`
	partitionFree     = `SELECT engine.journal_free()`
	partitionLimited  = `SELECT engine.journal_limited()`
	partitionCut      = `SELECT engine.journal_cut($1)`
	partitionGather   = `SELECT engine.journal_gather($1)`
	partitionDrop     = `SELECT engine.journal_drop($1)`
	partitionLastRun  = `SELECT coalesce(pg_catalog.max(run_id), 0) FROM engine.journal WHERE run_id >= $1`
	partitionLeftRuns = `SELECT pg_catalog.count(*) FROM (SELECT FROM engine.run WHERE run_id < $1 LIMIT $2) r`
	partitionLeftRows = `
SELECT pg_catalog.count(*), coalesce(pg_catalog.sum(size), 0) FROM (
  SELECT j.size FROM (SELECT run_id FROM engine.run WHERE run_id < $1 LIMIT $2) r
  CROSS JOIN LATERAL (SELECT pg_catalog.pg_column_size(data) + coalesce(pg_catalog.pg_column_size(steps), 0) AS size FROM engine.journal WHERE run_id = r.run_id OFFSET 0) j
  LIMIT $3) j`
	partitionTry   = `SAVEPOINT change`
	partitionAgain = `ROLLBACK TO SAVEPOINT change`
)

// Before the store drops a partition, it moves the rows of the remaining runs to another partition.
// These constants say how many runs, rows and bytes it moves at most. If it would have to move
// more, it does not drop the partition.
const (
	maxMovedRuns  = 1000
	maxMovedRows  = 100_000
	maxMovedBytes = 256 << 20
)

// Limits for partitions and for the work on them.
const (
	// partitionsPerAge is how many partitions cover one retention period. The rows of a partition
	// are removed together. So a row may stay longer than the retention period, by about the
	// time that one partition covers.
	partitionsPerAge = 8
	// leastWidth is the shortest time that a partition covers.
	leastWidth = time.Hour
	// smallTail is the largest size, in bytes, at which the last partition counts as small.
	// To end a small partition, the server reads all of it, and commits have to wait. With
	// a larger partition they would wait too long.
	smallTail = 8 << 20
	// firstWidth is the shortest time from now to the end of a large last partition. The method
	// `limitTail` forbids runs after this end. So the store must create the next partition before
	// the end. It has at least the time firstWidth to try this again and again.
	firstWidth = 7 * 24 * time.Hour
	// lockTries is how many times the method `change` requests the lock that commits need,
	// too. Each try waits up to 100 ms for the lock. The tries are a second apart.
	lockTries = 5
)

// restName is the beginning of some partitions' names. Such a partition contains only rows
// that the store has moved there before it dropped their former partitions.
const restName = "journal_rest_"

// A partition is one partition of the journal.
type partition struct {
	name   string
	lo, hi status.RunID // the partition contains runs with lo <= id < hi
	bytes  int64
}

// partitions returns the partitions, sorted by lo, and the store's time.
func (s *retention) partitions(ctx context.Context) (partitions []partition, now time.Time, err error) {
	rows, err := s.db.QueryContext(ctx, partitionList)
	if err != nil {
		return nil, now, wrap("list partitions", err)
	}
	defer rows.Close()
	for rows.Next() {
		var p partition
		if err := rows.Scan(&p.name, &p.lo, &p.hi, &p.bytes, &now); err != nil {
			return nil, now, wrap("list partitions", err)
		}
		partitions = append(partitions, p)
	}
	if err := rows.Err(); err != nil {
		return nil, now, wrap("list partitions", err)
	}
	if len(partitions) == 0 {
		return nil, now, errors.New("postgres: the journal has no partition")
	}
	return partitions, now, nil
}

// tend drops partitions that have only few remaining runs, and returns how many it has dropped.
// It drops no partition that may contain a run with a greater id than the parameter `end`. It also
// makes sure that there is a partition for future runs. If another session is changing
// partitions, tend stops without an error.
func (s *retention) tend(ctx context.Context, before time.Time, end status.RunID) (int, error) {
	dropped, err := s.dropPartitions(ctx, before, end)
	if errors.Is(err, errOthers) {
		err = nil
	}
	return dropped, err
}

func (s *retention) dropPartitions(ctx context.Context, before time.Time, end status.RunID) (dropped int, err error) {
	partitions, now, err := s.partitions(ctx)
	if err != nil {
		return 0, err
	}
	for i := len(partitions) - 1; i >= 0; i-- {
		if partitions[i].hi > end+1 || onlyRest(partitions[:i+1]) {
			continue
		}
		few, err := s.fewLeft(ctx, partitions[i].hi)
		if err != nil {
			return 0, err
		}
		if few {
			if dropped, err = s.dropBelow(ctx, partitions[i].hi); err != nil {
				return dropped, err
			}
			break
		}
	}
	return dropped, s.cutTail(ctx, partitions[len(partitions)-1], now, max(leastWidth, now.Sub(before)/partitionsPerAge))
}

// onlyRest reports whether all given partitions contain only moved rows (restName).
func onlyRest(partitions []partition) bool {
	for _, p := range partitions {
		if !strings.HasPrefix(p.name, restName) {
			return false
		}
	}
	return true
}

// fewLeft reports whether the remaining runs with smaller ids than the parameter `below` are so few
// and so small that the store may move their rows.
func (s *retention) fewLeft(ctx context.Context, below status.RunID) (bool, error) {
	var runs, rows, bytes int64
	err := s.db.QueryRowContext(ctx, partitionLeftRuns, int64(below), maxMovedRuns+1).Scan(&runs)
	if err == nil && runs <= maxMovedRuns {
		err = s.db.QueryRowContext(ctx, partitionLeftRows, int64(below), maxMovedRuns+1, maxMovedRows+1).Scan(&rows, &bytes)
	}
	if err != nil {
		return false, wrap("count runs that are left", err)
	}
	return runs <= maxMovedRuns && rows <= maxMovedRows && bytes <= maxMovedBytes, nil
}

// dropBelow moves the rows of the remaining runs with smaller ids than the parameter `below` to a
// new partition. Then it drops the former partitions of these runs, and returns how many it has
// dropped.
func (s *retention) dropBelow(ctx context.Context, below status.RunID) (dropped int, err error) {
	err = s.change(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, partitionNoVacuum, int64(below)); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, partitionGather, int64(below))
		return err
	}, func(tx *sql.Tx) error { return tx.QueryRowContext(ctx, partitionDrop, int64(below)).Scan(&dropped) })
	if err != nil {
		return 0, wrap("drop partitions", err)
	}
	return dropped, nil
}

// cutTail ends the last partition, and creates a new last partition for later runs. The end is
// a run id. So it is also a time, because a run id contains the time at which the run was
// created. cutTail does nothing if the last partition begins far enough in the future. The
// parameter `width` is the time that a partition covers.
func (s *retention) cutTail(ctx context.Context, tail partition, now time.Time, width time.Duration) error {
	if tail.lo > naming.FirstRunOf(now.Add(width/2)) {
		return nil
	}
	var last, limited status.RunID
	err := s.db.QueryRowContext(ctx, partitionLastRun, int64(tail.lo)).Scan(&last)
	if err == nil {
		err = s.db.QueryRowContext(ctx, partitionLimited).Scan(&limited)
	}
	if err != nil {
		return wrap("look at the last partition", err)
	}
	small := tail.bytes <= smallTail
	at := cutAt(tail.lo, last, now, width, small)
	if !small {
		if limited == 0 {
			if err := s.limitTail(ctx, at); err != nil {
				return err
			}
		} else {
			at = limited // an earlier call of limitTail has chosen the end already
		}
		if err := s.trustTail(ctx); err != nil {
			return err
		}
	}
	err = s.change(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, partitionNoVacuum, int64(math.MaxInt64))
		return err
	}, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, partitionCut, int64(at))
		return err
	})
	if err != nil {
		return wrap("make a partition", err)
	}
	return nil
}

// cutAt returns the run id at which the last partition will end. A run id contains a time. The
// time in this id is in the future, and later than the time in the id of every existing run. It
// is a multiple of the parameter `width`, counted from the time of the run id 0.
func cutAt(lo, last status.RunID, now time.Time, width time.Duration, small bool) status.RunID {
	from := now
	if !small {
		from = now.Add(firstWidth)
	}
	for _, id := range []status.RunID{lo, last} {
		if t := naming.TimeOfRun(id); t.After(from) {
			from = t
		}
	}
	zero := naming.TimeOfRun(0)
	return naming.FirstRunOf(zero.Add((from.Sub(zero)/width + 2) * width))
}

// limitTail adds a constraint to the last partition: the partition may contain only runs whose
// id is smaller than the parameter `at`. The server does not check the constraint for existing
// rows (NOT VALID).
func (s *retention) limitTail(ctx context.Context, at status.RunID) error {
	err := s.change(ctx, nil, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, partitionLimit, int64(at))
		return err
	})
	if err != nil {
		return wrap("limit the last partition", err)
	}
	return nil
}

// trustTail makes the server check the constraint of limitTail for all existing rows. If the server
// reports an error, for example because a row violates the constraint, trustTail drops the
// constraint and returns the error. If the outcome is unknown, or ctx has ended, trustTail only
// returns an error: the next call of cutTail tries again.
func (s *retention) trustTail(ctx context.Context) error {
	_, err := s.db.ExecContext(ctx, partitionTrust)
	if err == nil {
		return nil
	}
	if judge(err) == unknown || ctx.Err() != nil {
		return wrap("prove the last partition's limit", err) // the next call of cutTail tries again
	}
	free := s.change(context.WithoutCancel(ctx), nil, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, partitionFree)
		return err
	})
	return wrap("prove the last partition's limit", errors.Join(err, free))
}

// errOthers says that another session is changing partitions, so this session has nothing
// to do.
var errOthers = errors.New("another session is at work on the journal's partitions")

// change runs a transaction that changes partitions: first it calls the function `prepare`, unless
// `prepare` is nil, and then the function `last`. If another session is in such a transaction,
// change returns errOthers. The function `prepare` may take long. The function `last` requests the
// lock that commits need, too. If `last` does not get the lock within 100 ms, change waits for a
// second and calls `last` again, until it has called it lockTries times. So commits do not wait
// long.
func (s *retention) change(ctx context.Context, prepare, last func(tx *sql.Tx) error) error {
	tx, err := s.begin(ctx)
	if err != nil {
		return err
	}
	var alone bool
	if err = tx.QueryRowContext(ctx, partitionLock).Scan(&alone); err == nil && !alone {
		err = errOthers
	}
	if err == nil && prepare != nil {
		err = prepare(tx)
	}
	for try := 1; err == nil; try++ {
		if _, err = tx.ExecContext(ctx, partitionTry); err != nil {
			break
		}
		err = last(tx)
		if err == nil {
			return tx.Commit()
		}
		if sqlstate(err) != "55P03" || try == lockTries {
			break
		}
		if _, err = tx.ExecContext(ctx, partitionAgain); err == nil {
			err = wait.For(ctx, time.Second)
		}
	}
	if sqlstate(err) == "55P03" {
		err = fmt.Errorf("%w: a session reads the journal for long; tried again with the next pass", err)
	}
	return rolledBack(tx, err)
}
