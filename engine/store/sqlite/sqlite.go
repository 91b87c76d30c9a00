// Package sqlite keeps runs in one file, inside the engine's process. It is the default for
// one machine. It obeys every rule of engine/store/storetest. Commits are as durable as the
// disk (WAL, synchronous=FULL). Only one process at a time can open the file for running
// engines. Other processes may read it, post messages to its runs, and submit runs without
// an owner (Options.Beside).
//
// The views runs and steps are for people. Any sqlite3 program can read them without this
// program.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	driver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/events"
	"github.com/saga-engine/engine/engine/store/goals"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/notice"
	"github.com/saga-engine/engine/engine/store/quota"
	"github.com/saga-engine/engine/engine/store/rekey"
	"github.com/saga-engine/engine/engine/store/replies"
	"github.com/saga-engine/engine/engine/store/schedules"
	"github.com/saga-engine/engine/engine/store/snapshots"
	"github.com/saga-engine/engine/engine/store/storekit"
)

// Options of a Store. Zero fields mean their defaults.
type Options struct {
	// ReadOnly opens the file even while another process writes it. Methods that write
	// fail.
	ReadOnly bool
	// Beside opens the file even while another process has it open, like ReadOnly, but allows
	// some writes. Post puts a message into an inbox. A run without an owner can be submitted
	// (PutDefinition, Pin, Join, Tick, OpenWriter, Commit, Leave). Each of these operations is
	// a short transaction on its own connection. They work even if no other process has the
	// file open. Such a store never locks the file, never migrates its schema and fences no
	// engine. The methods that are only for the owner of a run return an error.
	Beside bool
}

// A Store is a store.Store in one file. Several goroutines may use a Store at the same time.
// But only one goroutine at a time may use a Writer that OpenWriter returned. Each embedded
// part implements one interface of store.Store; all parts share the file.
type Store struct {
	*file
	*catalogue
	*members
	*inbox
	*runs
	*hands
	*published
	*eventbox
	*evidence
	*views
	*shorts
	*retention
	*resealer
	*notices
	*contexts
	*heirs
	*posts
	*shares
	*waker
}

// A file is the opened database: its lock, the connections that read, and the connection
// that writes.
type file struct {
	path string
	lock *lock   // lock of the file; nil = another process may have it
	read *sql.DB // pool for reading; it sees committed data and never waits for writers

	mu     sync.Mutex // protects following fields; only one transaction runs at a time
	db     *sql.DB    // pool that has only the writing connection; nil = it is not open
	conn   *sql.Conn
	stmts  map[string]*sql.Stmt
	tokens uint32
	beside string                    // path of the file if it was opened with Beside; otherwise ""
	flows  map[store.WorkflowID]bool // workflows that are known to exist in the file

	stepRows []byte // buffer for encoded step rows; each transition overwrites it
	written  int    // estimated bytes written since the last checkpoint of the WAL
	closing  bool   // Close has begun: no new checkpoint of the WAL may start

	checkpoints sync.WaitGroup // the checkpoints of the WAL that run now

	// commit commits a transaction. The argument what names the operation, such as "tick".
	// A test replaces this function with one that returns an error after the commit.
	commit func(x *tx, what string) error
}

var _ interface {
	store.Store
	store.Passes
	store.Hands
	store.Evidence
	store.Views
	store.Waker
	store.Retainer
	rekey.Resealer
	notice.Keeper
	goals.Keeper
	replies.Keeper
	schedules.Store
	events.Store
	quota.Sharer
	snapshots.Keeper
} = (*Store)(nil)

// Open opens the file at path. If neither ReadOnly nor Beside is set, it creates the file (mode
// 0600) and its directory (0700) if they are missing, migrates the schema, and locks the file
// for this process. The lock proves that every engine that used the file before is dead,
// whatever its lease says. Open returns a *sqlite.LockedError if another process has the lock.
// It returns a *store.SchemaError if the schema is newer, or if it is older and ReadOnly or
// Beside is set. The error wraps fs.ErrNotExist if there is no file to read.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("sqlite: %s: %w", path, err)
	}
	s := newStore(&file{path: path, stmts: make(map[string]*sql.Stmt), flows: make(map[store.WorkflowID]bool), commit: execCommit})
	if o.ReadOnly || o.Beside {
		if o.Beside {
			s.beside = abs
		}
		err = s.openRead(ctx, abs)
	} else {
		err = s.openWrite(ctx, abs)
	}
	if err != nil {
		return nil, errors.Join(s.explain("open", err), s.Close())
	}
	return s, nil
}

// newStore returns a store whose parts all use the file f.
func newStore(f *file) *Store {
	w := &waker{file: f}
	v := &views{file: f}
	c := &catalogue{file: f}
	return &Store{
		file: f, waker: w, views: v,
		catalogue: c,
		members:   &members{file: f},
		inbox:     &inbox{file: f, waker: w},
		runs:      &runs{file: f},
		hands:     &hands{file: f},
		notices:   &notices{file: f},
		contexts:  &contexts{file: f},
		heirs:     &heirs{file: f},
		posts:     &posts{file: f},
		published: &published{file: f},
		eventbox:  &eventbox{file: f},
		evidence:  &evidence{file: f, views: v},
		shorts:    &shorts{file: f},
		retention: &retention{file: f},
		resealer:  &resealer{file: f, catalogue: c},
		shares:    &shares{file: f},
	}
}

// prepareFile creates the file (mode 0600) and its directory (0700) if they are missing. It
// returns the error of checkPlace, if there is one. shown is the name of the file in errors.
func prepareFile(path, shown string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := checkPlace(path, shown, true); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|careful, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

var (
	errReadOnly = errors.New("sqlite: the store is open for reading only")
	errBeside   = errors.New("sqlite: beside the process that holds the file only a run of nobody can be submitted")
	errForeign  = errors.New("it is an SQLite database of another program")
)

func (s *file) openWrite(ctx context.Context, path string) (err error) {
	if err := prepareFile(path, s.path); err != nil {
		return err
	}
	if s.lock, err = takeLock(path, s.path); err != nil {
		return err
	}
	// The file is checked before anything is changed, because opening in WAL mode would
	// change even a file of another program.
	if err := s.openPool(path, "rw"); err != nil {
		return err
	}
	if have, err := version(ctx, s.read); err != nil {
		return err
	} else if have > schemaVersion {
		return mismatch(have)
	}
	if err := s.openWriter(path, "journal_mode(WAL)"); err != nil {
		return err
	}
	if err := migrate(ctx, s.db); err != nil {
		return err
	}
	if s.conn, err = s.db.Conn(ctx); err != nil {
		return err
	}
	// The lock proves that every engine that used this file has ended. So end their leases.
	_, err = s.conn.ExecContext(ctx, memberLapse, micros(time.Now()))
	return err
}

// openWriter sets the field db to a pool with one connection. The connection writes durably.
func (s *file) openWriter(path string, pragmas ...string) (err error) {
	pragmas = append(append([]string{"busy_timeout(10000)"}, pragmas...), "synchronous(FULL)", autoCheckpoint, "foreign_keys(1)")
	if s.db, err = sql.Open("sqlite", dsn(path, "rw", pragmas...)); err == nil {
		s.db.SetMaxOpenConns(1)
	}
	return err
}

// openRead opens a file that another process may be writing. It tries up to four modes. "rw"
// and "ro" fail if SQLite cannot share the index of the WAL: the file or its directory is not
// writable, or the disk is full. Then openRead tries the constant asItStands as the mode, but
// only if the WAL is empty. At last, but only if the disk is full, it tries the constant named
// alone.
func (s *file) openRead(ctx context.Context, path string) error {
	if _, err := os.Lstat(path); err != nil {
		return err
	}
	if err := checkPlace(path, s.path, s.beside != ""); err != nil {
		return err
	}
	var errs []error
	for _, mode := range []string{"rw", "ro", asItStands, alone} {
		if mode == asItStands && walWaits(path) || mode == alone && !noRoom(errors.Join(errs...)) {
			continue
		}
		if err := s.openPool(path, mode); err != nil {
			return err
		}
		err := awaitVersion(ctx, s.read)
		if !cannotOpen(err) {
			return err
		}
		errs = append(errs, err, s.read.Close())
		s.read = nil
	}
	return errors.Join(errs...)
}

const (
	// asItStands is the mode in which SQLite uses neither locks nor the WAL. In this mode
	// SQLite would miss data that is only in the WAL.
	asItStands = "ro&immutable=1"
	// alone is the mode in which SQLite keeps the index of the WAL in memory. It is for a full
	// disk, which has no space for the index. While this process reads in this mode, no other
	// process can use the file.
	alone = "rw&vfs=unix-excl"
)

// walWaits reports whether the WAL contains data.
func walWaits(path string) bool {
	info, err := os.Stat(path + "-wal")
	return err == nil && info.Size() > 0
}

// noRoom reports whether an error says that the disk has no space for the index of the WAL.
func noRoom(err error) bool {
	var e *driver.Error
	return errors.As(err, &e) && e.Code() == sqlite3.SQLITE_IOERR_SHMSIZE
}

// cannotOpen reports whether an error says that SQLite could not open the file. Opening it in
// another mode may help.
func cannotOpen(err error) bool {
	if noRoom(err) {
		return true
	}
	switch code(err) {
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		return true
	}
	return false
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

// Close closes the file and releases its lock. Writers cannot be used any more.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	s.checkpoints.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	if s.read != nil {
		errs = append(errs, s.read.Close())
	}
	errs = append(errs, s.disconnect())
	if s.lock != nil {
		errs = append(errs, s.lock.release())
	}
	s.lock, s.beside = nil, ""
	return errors.Join(errs...)
}

// disconnect closes the writing connection. The caller holds s.mu. The field db stays set,
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
// text also says what the person can do. explain returns nil, a *LockedError and a
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
	case c == sqlite3.SQLITE_FULL, noRoom(err), errors.Is(err, syscall.ENOSPC):
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
