package postgres

import (
	"context"
	"database/sql"
	"errors"
)

const backendPID = `SELECT pg_catalog.pg_backend_pid()`

// poolerBegin begins a transaction with the settings of a writer's session. Behind a pooler
// each transaction may have another session. So poolerBegin applies the settings to each
// transaction.
const poolerBegin = `
BEGIN ISOLATION LEVEL READ COMMITTED;
SET LOCAL plan_cache_mode = force_generic_plan; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off;
SET LOCAL enable_seqscan = off; SET LOCAL enable_memoize = off; SET LOCAL jit = off;
SET LOCAL statement_timeout = '10s'; SET LOCAL idle_in_transaction_session_timeout = '5s';
` + transactionSettings

// poolerTurns is how many times detectPooler asks a session for its backend. Once is not
// enough: other clients may take a backend from the pooler and give it back meanwhile.
const poolerTurns = 24

// detectPooler reports whether there is a pooler in transaction mode in front of the
// server. Then settings of a session are lost after a transaction, and prepared statements,
// session locks and LISTEN do not work. detectPooler opens two sessions. There is a pooler
// if both have the same backend, or if one of them has two. The order of the questions also
// detects a pooler that uses its backends in turn. If there is no pooler, detectPooler
// applies sessionSettings to the two sessions. When they were opened, it was not known yet
// whether there is a pooler.
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
		// The order is 0 1 0 0 1 0 …, so that session 0 is asked both directly after itself
		// and after the other session.
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
	return false, settle(ctx, conns[:])
}

// noteLost records that there is a pooler if an error shows it: the server does not know a
// prepared statement that this session has made, or it knows one that this session has not
// made.
func (s *access) noteLost(err error) {
	if state := sqlstate(err); state == "26000" || state == "42P05" {
		s.behindPooler()
	}
}

// behindPooler records that there is a pooler, and logs it once.
func (s *access) behindPooler() {
	if s.pooled.CompareAndSwap(false, true) {
		s.log.Warn("the database is reached through a pooler in transaction mode: no wake-ups and no prepared statements, so engines look for work by themselves and commits cost more",
			"database", s.source.String(), "hint", "let engines connect to the server, or through a pooler in session mode")
	}
}
