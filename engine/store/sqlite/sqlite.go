// Package sqlite keeps runs in one file, inside the engine's process. It is the default for one
// machine. It obeys every rule of engine/store/storetest. Commits are as durable as the disk (WAL,
// synchronous=FULL). Only one process at a time can open the file to run engines. Other processes
// may read it, post messages to its runs, submit runs without an owner, and make some other writes
// (Options.Beside).
//
// The SQL views `runs` and `steps` are for people. Any sqlite3 program can read them without this
// program.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

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
)

// Options say how Open opens a file. With the zero value, Open opens the file to run engines.
type Options struct {
	// ReadOnly opens the file even while another process writes it. Methods that write
	// fail.
	ReadOnly bool
	// Beside opens the file even while another process has it open, like ReadOnly, but allows some
	// writes. Post puts a message into an inbox. A run without an owner can be submitted
	// (PutDefinition, Pin, Join, Tick, OpenWriter, Commit, Leave). Published workflows, sent
	// events, resets of goals, the outbox's method Take, Absolve and Repin work, too. Each of these
	// operations is a short transaction on its own connection. They work even if no other process
	// has the file open. Such a store never locks the file, never migrates its schema and fences no
	// other engine. The methods that are only for the owner of a run return an error.
	Beside bool
}

// A Store is a store.Store in one file. Several goroutines may use a Store at the same time. But
// only one goroutine at a time may use a Writer that OpenWriter returned. The embedded parts
// implement the roles of the store. All of them use the same file.
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

var _ interface {
	store.Store
	store.Passes
	store.Hands
	store.Evidence
	store.Views
	store.Waker
	store.Retainer
	naming.Heirs
	rekey.Resealer
	notice.Keeper
	goals.Keeper
	replies.Keeper
	schedules.Store
	events.Store
	quota.Sharer
	snapshots.Keeper
} = (*Store)(nil)

// Open opens the file at path. If neither ReadOnly nor Beside is set, Open creates the file (mode
// 0600) and its directory (0700), if they are missing. Then it locks the file for this process, and
// migrates the schema. The lock proves that every engine that used the file before is dead,
// whatever its lease says. Open returns a *sqlite.LockedError if another process has the lock. It
// returns a *store.SchemaError if the schema is newer, or if it is older and ReadOnly or Beside is
// set. The error wraps fs.ErrNotExist if there is no file to read.
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
// returns the error of checkFiles, if there is one. The parameter `shown` is the name of the
// file in errors.
func prepareFile(path, shown string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := checkFiles(path, shown, true); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|safeOpenFlags, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

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

// openRead opens a file that another process may be writing. It tries up to four modes. "rw"
// and "ro" fail if SQLite cannot share the index of the WAL: the file or its directory is not
// writable, or the disk is full. If both fail, openRead tries the mode immutable, but only if
// the WAL is empty. The last mode is `exclusive`, but only if the disk is full.
func (s *file) openRead(ctx context.Context, path string) error {
	if _, err := os.Lstat(path); err != nil {
		return err
	}
	if err := checkFiles(path, s.path, s.beside != ""); err != nil {
		return err
	}
	var errs []error
	for _, mode := range []string{"rw", "ro", immutable, exclusive} {
		if mode == immutable && walWaits(path) || mode == exclusive && !diskFull(errors.Join(errs...)) {
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
	// immutable is the mode in which SQLite uses neither locks nor the WAL. In this mode
	// SQLite would miss data that is only in the WAL.
	immutable = "ro&immutable=1"
	// exclusive is the mode in which SQLite keeps the index of the WAL in memory. It is for a full
	// disk, which has no space for the index. While this process reads in this mode, no other
	// process can use the file.
	exclusive = "rw&vfs=unix-excl"
)

// walWaits reports whether the WAL contains data.
func walWaits(path string) bool {
	info, err := os.Stat(path + "-wal")
	return err == nil && info.Size() > 0
}

// cannotOpen reports whether an error says that SQLite could not open the file. Opening it in
// another mode may help.
func cannotOpen(err error) bool {
	if diskFull(err) {
		return true
	}
	switch code(err) {
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		return true
	}
	return false
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
