package postgres

import (
	"context"
	"database/sql"
	"errors"
)

const backendPID = `SELECT pg_catalog.pg_backend_pid()`

// poolerBegin begins a transaction with the settings of writerSession. Behind a pooler each
// transaction may use another session, so the settings must be made again in each
// transaction.
const poolerBegin = `
BEGIN ISOLATION LEVEL READ COMMITTED;
SET LOCAL plan_cache_mode = force_generic_plan; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off;
SET LOCAL enable_seqscan = off; SET LOCAL enable_memoize = off; SET LOCAL jit = off;
SET LOCAL statement_timeout = '10s'; SET LOCAL idle_in_transaction_session_timeout = '5s';
` + transactionSettings

// poolerTurns is how many queries detectPooler sends on its two sessions to find a pooler.
// Two queries are not enough: a pooler may by chance give each of the two sessions its own backend.
const poolerTurns = 24

// detectPooler reports whether there is a pooler in transaction mode in front of the
// server. Behind such a pooler, settings of a session are lost after a transaction, and
// prepared statements, session locks and LISTEN do not work. detectPooler opens two
// sessions and asks both several times for the process id of their backend. There is a
// pooler if both sessions have the same backend, or if one session has two backends. The
// order of the queries also detects a pooler that uses its backends in turn. If there is no
// pooler, detectPooler applies sessionSettings to both sessions, because this was not done
// when they were opened.
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
		// The order of the sessions is 0 1 0 0 1 0 …, because a pooler may use two backends
		// in turn. With the order 0 1 0 1, each session would then always have the same backend.
		i := turn % 3 % 2
		var pid int64
		if err := conns[i].QueryRowContext(ctx, backendPID).Scan(&pid); err != nil {
			return false, err
		}
		if pids[i] != 0 && pids[i] != pid || pid == pids[1-i] {
			return true, nil
		}
		pids[i] = pid
	}
	return false, applySettings(ctx, conns[:])
}

// noteLost records that there is a pooler if err is one of two errors: the server does not know a
// prepared statement of this session, or the server already has a prepared statement that this
// session has not made.
func (s *access) noteLost(err error) {
	if state := sqlstate(err); state == "26000" || state == "42P05" {
		s.behindPooler()
	}
}

// behindPooler records that there is a pooler. The first call also logs a warning.
func (s *access) behindPooler() {
	if s.pooled.CompareAndSwap(false, true) {
		s.log.Warn("the database is reached through a pooler in transaction mode: no wake-ups and no prepared statements, so engines find work only by their scans, and commits cost more",
			"database", s.source.String(), "hint", "let engines connect to the server, or through a pooler in session mode")
	}
}
