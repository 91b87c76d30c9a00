package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"

	"github.com/lib/pq"

	"github.com/saga-engine/engine/engine/store/storekit"
)

// Statements name the schema of each table and of each function, including pg_catalog
// (TestFunctionsAreQualified). They cannot name the schema of operators well. The server finds
// operators, and names in the bodies of functions, with the search path. By default, the search
// path contains the schema `public`. A role that may create objects in public could make an engine
// or `db migrate` run its code. So every session of a Store has the search path pg_catalog,
// pg_temp. Each migration has it, too. pg_temp must be named last, because otherwise the server
// would search it first.
//
// Behind a pooler, a Store cannot change its sessions, so only its transactions have this search
// path. A single statement then has the search path of the session. But for each operator in a
// statement, pg_catalog has one for exactly the types of its operands, and the server prefers it
// (TestOperatorsAreOfTheServer).
const (
	// sessionSettings is an SQL expression that changes the settings of the session. It makes the
	// server confirm commits only when they are durable. If synchronous_commit has a stricter value
	// already, it keeps this value. The expression also disables bitmap scans. A plain index scan
	// marks the index entries of ended runs, and later scans skip the marked entries. A bitmap scan
	// marks none.
	sessionSettings = `pg_catalog.concat(
         CASE WHEN pg_catalog.current_setting('synchronous_commit') IN ('off', 'local') THEN pg_catalog.set_config('synchronous_commit', 'on', false) END,
         pg_catalog.set_config('enable_bitmapscan', 'off', false),
         pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', false))`
	sessionApply = `SELECT ` + sessionSettings

	// transactionDurable makes the server confirm the commit of one transaction only when
	// it is durable. For a whole session, sessionSettings does this.
	transactionDurable = `SELECT pg_catalog.set_config('synchronous_commit', 'on', true) WHERE pg_catalog.current_setting('synchronous_commit') IN ('off', 'local')`

	// transactionPath and transactionSettings change settings only for one transaction. The
	// store uses them if a pooler may give the session to another client afterwards.
	transactionPath     = `SET LOCAL search_path = pg_catalog, pg_temp`
	transactionSettings = transactionPath + `; ` + transactionDurable
)

// keeps reports whether a store may change the settings of its sessions. It returns false
// if a pooler may give a session to another client, or if this is not known yet.
func (s *access) keeps() bool { return s.direct.Load() && !s.pooled.Load() }

// applySettingsBare applies sessionSettings to a new connection, before the pool gets the
// connection.
func applySettingsBare(ctx context.Context, w wire) error {
	_, err := first(ctx, w, 1, sessionApply)
	return err
}

// applySettings applies sessionSettings to open connections of the pool.
func applySettings(ctx context.Context, conns []*sql.Conn) error {
	for _, c := range conns {
		if _, err := c.ExecContext(ctx, sessionApply); err != nil {
			return err
		}
	}
	return nil
}

// begin begins a transaction. Behind a pooler the session may have the settings of other
// clients, so begin applies transactionSettings.
func (s *access) begin(ctx context.Context) (*sql.Tx, error) {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil || !s.pooled.Load() {
		return tx, err
	}
	if _, err := tx.ExecContext(ctx, transactionSettings); err != nil {
		return nil, rolledBack(tx, err)
	}
	return tx, nil
}

// An access holds what all parts of a Store need to use the database: the connection pools, whether
// there is a pooler, and the lineage, which says to which server the store wrote last.
type access struct {
	source  source
	db      *sql.DB // pool for everything except commits and the uses of the next two pools
	reads   *sql.DB // pool for the queries of people (method `read`, package contexts)
	tables  *sql.DB // pool for firings: for their own tables, and for business tables
	log     *slog.Logger
	pooled  atomic.Bool // a pooler in transaction mode is between the engine and the server
	direct  atomic.Bool // examineServer has found no pooler
	lineage *lineage
}

// sqlstate returns the SQLSTATE of an error of the server. It returns "" for any other
// error.
func sqlstate(err error) string {
	var e *pq.Error
	if errors.As(err, &e) {
		return string(e.Code)
	}
	return ""
}

// unmigrated reports whether an error says that a schema or table does not exist.
func unmigrated(err error) bool {
	state := sqlstate(err)
	return state == "3F000" || state == "42P01"
}

// wrap adds the name of the failed operation to the text of an error. If the function `meaning`
// returns an explanation, wrap adds it, too. An error about damaged data becomes a
// store.ErrDamaged.
func wrap(what string, err error) error {
	if state := sqlstate(err); state == "XX001" || state == "XX002" { // the codes data_corrupted and index_corrupted
		err = storekit.Damaged(err)
	}
	if why := meaning(err); why != "" {
		return fmt.Errorf("postgres: %s: %w: %s", what, err, why)
	}
	return fmt.Errorf("postgres: %s: %w", what, err)
}

// wrapIf returns wrap(what, err), or nil if err is nil.
func wrapIf(what string, err error) error {
	if err == nil {
		return nil
	}
	return wrap(what, err)
}

// meaning returns an explanation for an error whose cause is the server, its settings or a
// pooler. It returns "" for any other error.
func meaning(err error) string {
	const readOnly = "the database takes no writes: it is a standby, or default_transaction_read_only is set; let the DSN lead to the primary"
	switch sqlstate(err) {
	case "25006":
		return readOnly
	case "0A000":
		if strings.Contains(err.Error(), "during recovery") { // error of BEGIN READ WRITE on a standby
			return readOnly
		}
	case "53100":
		return "the database's disk is full: nothing is lost, and work goes on once there is space"
	case "53200":
		return "the database's server is out of memory"
	case "53300":
		return "the database's server has no connection left: raise max_connections, or let fewer engines connect"
	case "57014":
		return "the statement took longer than allowed, or was cancelled: is something locked, or the server overloaded?"
	case "57P01", "57P02":
		return "the database's server is stopping or was restarted"
	case "57P03":
		return "the database's server is starting or stopping"
	case "42501":
		return "the database's user lacks a privilege"
	case "26000", "42P05":
		return "a pooler in transaction mode stands before the server"
	}
	return ""
}

// rolledBack rolls back a transaction after the error err, and returns err. If the rollback fails,
// too, rolledBack returns both errors. But if the verdict on err is `unknown`, it returns only err:
// then the connection may be broken, or err does not come from the server.
func rolledBack(tx *sql.Tx, err error) error {
	if e := tx.Rollback(); e != nil && !errors.Is(e, sql.ErrTxDone) && judge(err) != unknown {
		return errors.Join(err, e)
	}
	return err
}

// A wire is a connection of the driver that has all methods which this package needs.
type wire interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.QueryerContext
	driver.ExecerContext
	driver.Pinger
	driver.NamedValueChecker
	driver.SessionResetter
	driver.Validator
}

var errNoRow = errors.New("postgres: no row")

// first returns the first row of a query, which it runs on a connection of the driver. It
// returns errNoRow if the query has no row, but not if the row could not be read.
func first(ctx context.Context, w wire, columns int, query string, args ...driver.NamedValue) (values []driver.Value, err error) {
	rows, err := w.QueryContext(ctx, query, args)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	values = make([]driver.Value, columns)
	switch err := rows.Next(values); {
	case errors.Is(err, io.EOF): // there is no row; a broken connection has another error
		return nil, errNoRow
	case err != nil:
		return nil, err
	}
	return values, nil
}

func noRows(err error) bool { return errors.Is(err, sql.ErrNoRows) }

// A source holds the parsed DSN of a database, with defaults for missing settings.
type source struct {
	cfg pq.Config
	dsn string // the DSN as text; only for the connection that receives notifications
}
