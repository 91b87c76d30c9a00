// Package sqlite keeps runs in one file, in the process itself: the default for
// one machine. It obeys every rule of engine/store/storetest. Commits are as durable
// as the disk is (WAL, synchronous=FULL); one process at a time holds it and
// runs engines in it, others may read beside it, post messages to its runs and
// leave it runs to do (Options.Beside).
//
// The views runs and steps are for people, and for any sqlite3: they need
// nothing of this program.
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
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/storekit"
)

// Options of a Store. Zero fields mean defaults.
type Options struct {
	// ReadOnly opens the file while another process may write it. Methods that
	// write fail.
	ReadOnly bool
	// Beside opens the file while another process may hold it, as ReadOnly does,
	// and lets this one say something: Post puts a message into an inbox, and a
	// run without an owner may be submitted (PutDefinition, Pin, Join, Tick,
	// OpenWriter, Commit, Leave). Each does so by a short transaction on a connection of its
	// own, also if no process holds the file. Such a store never takes the file,
	// never brings its schema up to date and fences nobody off; what only a
	// run's owner does fails.
	Beside bool
}

// A Store is a store.Store in one file. It is safe for concurrent use; its
// writers are not. It is made of one part for each role, and all of them share the file.
type Store struct {
	*file
	*catalogue
	*members
	*inbox
	*runs
	*hands
	*evidence
	*views
	*retention
	*waker
}

// A file is the opened database: its lock, connections that read, and the one that writes.
type file struct {
	path string
	lock *lock   // nil = another process may hold the file
	read *sql.DB // sees what is committed, waits for nobody

	mu     sync.Mutex // protects following fields: one transaction at a time
	db     *sql.DB    // of one connection; nil = read only
	conn   *sql.Conn
	stmts  map[string]*sql.Stmt
	tokens uint32
	beside string                    // the file, if it was opened Beside; else ""
	flows  map[store.WorkflowID]bool // workflows that are known to be in the file

	stepRows []byte // reused by each transition
	written  int    // bytes since the last checkpoint, about
	closing  bool   // no checkpoint begins any more

	checkpoints sync.WaitGroup // those that go on

	// commit ends a transaction that does what. A test replaces it to lose an
	// answer.
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
} = (*Store)(nil)

// Open opens the file at path. For writing it makes the file (mode 0600) and
// its directory (0700) where they are missing, brings the schema up to date, and
// takes the file for this process: every engine that was in it before is dead,
// whatever its lease says. Returns *sqlite.LockedError if another process has
// it, *store.SchemaError if its schema is newer, or older and ReadOnly or
// Beside is set,
// and an error that wraps fs.ErrNotExist if there is none to read.
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

// newStore makes the parts of a store.
func newStore(f *file) *Store {
	w := &waker{file: f}
	v := &views{file: f}
	return &Store{
		file: f, waker: w, views: v,
		catalogue: &catalogue{file: f},
		members:   &members{file: f},
		inbox:     &inbox{file: f, waker: w},
		runs:      &runs{file: f},
		hands:     &hands{file: f},
		evidence:  &evidence{file: f, views: v},
		retention: &retention{file: f},
	}
}

// prepareFile makes the file and its directory, so that they have our modes.
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
	// Looked at before anything is changed: opening in WAL mode would mark even a
	// file that is not ours.
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
	// The lock proves that every engine that was in this file has ended.
	_, err = s.conn.ExecContext(ctx, memberLapse, micros(time.Now()))
	return err
}

// openWriter opens a pool of one connection that writes durably.
func (s *file) openWriter(path string, pragmas ...string) (err error) {
	pragmas = append(append([]string{"busy_timeout(10000)"}, pragmas...), "synchronous(FULL)", autoCheckpoint, "foreign_keys(1)")
	if s.db, err = sql.Open("sqlite", dsn(path, "rw", pragmas...)); err == nil {
		s.db.SetMaxOpenConns(1)
	}
	return err
}

// openRead opens a file that another process may be writing. Where the file or
// its directory cannot be written, SQLite cannot share the WAL's index: then
// the file is read without it, if nobody has left a WAL, or as it stands on a
// disk that does not change. On a full disk it is read likewise, or with the
// index in memory.
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
	// asItStands reads without locks and without the WAL: what stands in the WAL
	// would be overlooked.
	asItStands = "ro&immutable=1"
	// alone keeps the WAL's index in memory, where a full disk has no room for it,
	// and the file for this process for as long as it reads.
	alone = "rw&vfs=unix-excl"
)

// walWaits reports whether the WAL holds something.
func walWaits(path string) bool {
	info, err := os.Stat(path + "-wal")
	return err == nil && info.Size() > 0
}

// noRoom reports that the disk has no room for the WAL's index.
func noRoom(err error) bool {
	var e *driver.Error
	return errors.As(err, &e) && e.Code() == sqlite3.SQLITE_IOERR_SHMSIZE
}

// cannotOpen reports that SQLite could not open the file in this mode.
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

// readers is how many read at once, and one that writes the WAL back.
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

// disconnect ends the writing connection; s.mu is held. The pool is kept where
// the file is ours, so that later calls find it closed.
func (s *file) disconnect() error {
	var errs []error
	// An open statement would keep the connection from closing, and the WAL from
	// being written back.
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

// code returns the primary result code of SQLite's error, or 0.
func code(err error) int {
	var e *driver.Error
	if errors.As(err, &e) {
		return e.Code() & 0xFF
	}
	return 0
}

// explain wraps an error with what was being done to which file, and says what
// to do about it.
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

// micros is how times are stored.
func micros(t time.Time) int64 { return t.UnixMicro() }

func fromMicros(n int64) time.Time { return time.UnixMicro(n).UTC() }

// isText reports whether s is text that the file can hold.
func isText(s string) bool { return naming.CleanText(s) == s }
