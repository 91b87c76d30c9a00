package sqlite

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	driver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/storekit"
)

// A file is the opened database: its lock, the connections that read, and the connection
// that writes.
type file struct {
	path string
	lock *lock   // lock of the file; nil = this process does not have the lock
	read *sql.DB // pool for reading; it sees committed data and never waits for writers

	mu     sync.Mutex // protects the fields from db to closing; only one transaction runs at a time
	db     *sql.DB    // pool that has only the writing connection; nil = it was never opened
	conn   *sql.Conn
	stmts  map[string]*sql.Stmt
	tokens uint32
	beside string                    // path of the file if it was opened with Beside; otherwise ""
	flows  map[store.WorkflowID]bool // workflows that are known to exist in the file

	stepRows []byte // buffer for encoded step rows; each transition overwrites it
	written  int    // estimated bytes written since the last checkpoint of the WAL
	closing  bool   // Close has begun: no new checkpoint of the WAL may start

	checkpoints sync.WaitGroup // the checkpoints of the WAL that run now

	// commit commits a transaction. The argument `what` is the name of the operation, such as
	// "tick". A test replaces this function with one that returns an error after the commit.
	commit func(x *tx, what string) error
}

var (
	errReadOnly = errors.New("sqlite: the store is open for reading only")
	errBeside   = errors.New("sqlite: while another process has locked the file, only a run without an owner can be submitted")
	errForeign  = errors.New("it is an SQLite database of another program")
)

// openWriter sets the field `db` to a pool with one connection. The connection writes durably.
func (s *file) openWriter(path string, pragmas ...string) (err error) {
	pragmas = append(append([]string{"busy_timeout(10000)"}, pragmas...), "synchronous(FULL)", autoCheckpoint, "foreign_keys(1)")
	if s.db, err = sql.Open("sqlite", dsn(path, "rw", pragmas...)); err == nil {
		s.db.SetMaxOpenConns(1)
	}
	return err
}

// diskFull reports whether an error says that the disk has no space for the index of the WAL.
func diskFull(err error) bool {
	var e *driver.Error
	return errors.As(err, &e) && e.Code() == sqlite3.SQLITE_IOERR_SHMSIZE
}

// readers is the largest number of connections in the pool file.read: four that read, and
// one that writes the WAL back.
const readers = 4 + 1

func (s *file) openPool(path, mode string) (err error) {
	s.read, err = sql.Open("sqlite", dsn(path, mode, "busy_timeout(10000)", "synchronous(FULL)", "query_only(1)"))
	if err == nil {
		s.read.SetMaxOpenConns(readers)
		s.read.SetMaxIdleConns(readers)
	}
	return err
}

func dsn(path, mode string, pragmas ...string) string {
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: "mode=" + mode}
	for _, p := range pragmas {
		u.RawQuery += "&_pragma=" + p
	}
	return u.String()
}

// disconnect closes the writing connection. The caller holds s.mu. The field `db` stays set,
// although the pool is closed. So a write after Close returns an error.
func (s *file) disconnect() error {
	var errs []error
	// An open statement would prevent the connection from closing and the WAL from being
	// written back.
	for _, st := range s.stmts {
		errs = append(errs, st.Close())
	}
	if s.conn != nil {
		if err := s.conn.Close(); !errors.Is(err, sql.ErrConnDone) {
			errs = append(errs, err)
		}
	}
	if s.db != nil {
		errs = append(errs, s.db.Close())
	}
	s.conn = nil
	clear(s.stmts)
	return errors.Join(errs...)
}

// code returns the primary result code of an SQLite error. For any other error it returns 0.
func code(err error) int {
	var e *driver.Error
	if errors.As(err, &e) {
		return e.Code() & 0xFF
	}
	return 0
}

// explain returns an error whose text names the operation and the file. For some errors, the
// text also says what the person can do. The method `explain` returns nil, a *LockedError and a
// *store.SchemaError unchanged.
func (s *file) explain(what string, err error) error {
	var (
		locked *LockedError
		schema *store.SchemaError
		hint   string
	)
	switch c := code(err); {
	case err == nil || errors.As(err, &locked) || errors.As(err, &schema):
		return err
	case c == sqlite3.SQLITE_NOTADB:
		hint = "it is not a state file, or its beginning is damaged: move it away, or restore it from a backup"
	case c == sqlite3.SQLITE_CORRUPT:
		hint = "the state file is damaged: restore it from a backup"
	case c == sqlite3.SQLITE_FULL, diskFull(err), errors.Is(err, syscall.ENOSPC):
		hint = "the disk is full: make room; nothing that was accepted is lost"
	case c == sqlite3.SQLITE_BUSY:
		hint = "another process has been writing to it for too long: try again"
	case c == sqlite3.SQLITE_READONLY, errors.Is(err, syscall.EROFS):
		hint = "the file or its directory is read-only"
	case errors.Is(err, fs.ErrPermission):
		hint = "this user may not write there"
	case c == sqlite3.SQLITE_CANTOPEN:
		hint = "the file cannot be opened: check that it is readable and its directory writable"
	case errors.Is(err, errForeign):
		hint = "name another file"
	}
	if c := code(err); c == sqlite3.SQLITE_NOTADB || c == sqlite3.SQLITE_CORRUPT {
		err = storekit.Damaged(err)
	}
	if hint != "" {
		return fmt.Errorf("sqlite: %s %s: %w: %s", what, s.path, err, hint)
	}
	return fmt.Errorf("sqlite: %s %s: %w", what, s.path, err)
}

// micros returns a time in the form in which the file stores it: microseconds since 1970.
func micros(t time.Time) int64 { return t.UnixMicro() }

func fromMicros(n int64) time.Time { return time.UnixMicro(n).UTC() }

// isText reports whether s is a text that the file may contain: CleanText would not change s.
func isText(s string) bool { return naming.CleanText(s) == s }

// SQLite normally writes a long WAL back into the file as part of a commit, and the caller of
// that commit has to wait. This store writes the WAL back in the background, in two parts. The
// first part writes most of the WAL back while commits continue. The second part runs between
// two commits and writes the small rest. Only then can the WAL start again from its beginning.
// Without the second part the WAL would grow while there are commits.
const (
	// checkpointBytes is how many bytes are committed between two checkpoints. This is an
	// estimate, because SQLite does not report the length of the WAL.
	checkpointBytes = 16 << 20
	// autoCheckpoint is for the case that the other checkpoints are not made in time. If the WAL
	// has grown to 16,000 pages, SQLite itself runs a checkpoint as part of a commit.
	autoCheckpoint = "wal_autocheckpoint(16000)"

	// Estimated number of bytes that are written in addition to the data: for each commit, and
	// for each row.
	commitBytes = 12 << 10
	rowBytes    = 512

	walBack = `PRAGMA wal_checkpoint(PASSIVE)`
)
