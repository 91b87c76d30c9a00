package postgres

import (
	"context"
	"database/sql"
	"errors"
)

const backendPID = `SELECT pg_catalog.pg_backend_pid()`

// poolerBegin begins a transaction with what a writer's session has otherwise:
// behind a pooler the session is another one in every transaction.
const poolerBegin = `
BEGIN ISOLATION LEVEL READ COMMITTED;
SET LOCAL plan_cache_mode = force_generic_plan; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off;
SET LOCAL enable_seqscan = off; SET LOCAL enable_memoize = off; SET LOCAL jit = off;
SET LOCAL statement_timeout = '10s'; SET LOCAL idle_in_transaction_session_timeout = '5s';
` + transactionSettings

// poolerTurns is how often the two sessions are asked: others may take a backend
// from the pooler and give it back meanwhile.
const poolerTurns = 24

// detectPooler reports whether a pooler in transaction mode stands before the
// server: then what a session was told is not known to the next transaction, and
// prepared statements, session locks and LISTEN do not work. Two sessions that
// are open at once have one backend, or one session has two. The order of asking
// finds a pooler that hands out its backends in turn, too. Where there is none, the
// two sessions are settled: they were made before that was known.
func detectPooler(ctx context.Context, db *sql.DB) (pooled bool, err error) {
	var conns [2]*sql.Conn
	for i := range conns {
		if conns[i], err = db.Conn(ctx); err != nil {
			return false, err
		}
		defer func() { err = errors.Join(err, conns[i].Close()) }()
	}
	var pids [2]int64
	for turn := range poolerTurns {
		i := turn % 3 % 2 // 0 1 0, again and again: with pauses of one and of none
		var pid int64
		if err := conns[i].QueryRowContext(ctx, backendPID).Scan(&pid); err != nil {
			return false, err
		}
		if pids[i] != 0 && pids[i] != pid || pid == pids[1-i] {
			return true, nil
		}
		pids[i] = pid
	}
	return false, settle(ctx, conns[:])
}

// noteLost switches to what works behind a pooler if an error shows one: a
// prepared statement that this session made is not known to it, or one that it
// did not make is.
func (s *access) noteLost(err error) {
	if state := sqlstate(err); state == "26000" || state == "42P05" {
		s.behindPooler()
	}
}

// behindPooler remembers that a pooler was found and says so, once.
func (s *access) behindPooler() {
	if s.pooled.CompareAndSwap(false, true) {
		s.log.Warn("the database is reached through a pooler in transaction mode: no wake-ups and no prepared statements, so engines look for work by themselves and commits cost more",
			"database", s.source.String(), "hint", "let engines connect to the server, or through a pooler in session mode")
	}
}
