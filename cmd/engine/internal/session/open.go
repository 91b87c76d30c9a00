package session

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/faultpoints"
	"github.com/saga-engine/engine/engine/store/postgres"
	"github.com/saga-engine/engine/engine/store/sqlite"
)

// An access says for what a command opens the state.
type access int

const (
	toRead  access = iota // read the state, while engines work on it
	ToSpeak               // read the state, send verbs to its runs, and record new runs
	// Work on the runs of the state. An embedded state can be open for this in only one process at
	// a time.
	toWork
)

// OpenReader opens the state to read it, while engines work on it. The parameter `dir` is the
// directory of the module, and `shown` is this directory as the user wrote it. If the state is an
// embedded file, the file must exist already.
func OpenReader(ctx context.Context, a *cli.App, dir, shown string) (*Session, error) {
	t, err := Resolve(a, a.Path(dir), shown)
	if err != nil {
		return nil, err
	}
	if t.Postgres == "" {
		if _, err := os.Stat(t.Path); errors.Is(err, fs.ErrNotExist) {
			return nil, NoState(t)
		}
	}
	return Open(ctx, a, t, true)
}

// OpenSpeaker opens the state of --dsn to send verbs to its runs, while engines work on them.
// If the state is an embedded file, the file must exist already.
func OpenSpeaker(ctx context.Context, a *cli.App) (*Session, error) {
	return openExisting(ctx, a, ToSpeak)
}

// OpenKept opens the state of --dsn for a command that changes stored data, such as
// `engine key rotate`. If the state is an embedded file, the file must exist already, and no engine
// may work on it.
func OpenKept(ctx context.Context, a *cli.App) (*Session, error) {
	return openExisting(ctx, a, toWork)
}

// openExisting opens the state of --dsn. The parameter `to` says what the command may do with the
// state. If the state is an embedded file, the file must exist already.
func openExisting(ctx context.Context, a *cli.App, to access) (*Session, error) {
	t, err := Resolve(a, a.Path("."), ".")
	if err != nil {
		return nil, err
	}
	if t.Postgres == "" {
		if _, err := os.Stat(t.Path); errors.Is(err, fs.ErrNotExist) {
			return nil, NoState(t)
		}
	}
	return OpenTo(ctx, a, t, to)
}

// OpenBeside opens the state of a module to read it, while another process has locked it.
func OpenBeside(ctx context.Context, a *cli.App, dir, shown string) (*Session, error) {
	t, err := Resolve(a, dir, shown)
	if err != nil {
		return nil, err
	}
	return Open(ctx, a, t, true)
}

// OpenWriter opens the state of a module to work on its runs.
func OpenWriter(ctx context.Context, a *cli.App, dir, shown string) (*Session, error) {
	t, err := Resolve(a, dir, shown)
	if err != nil {
		return nil, err
	}
	return Open(ctx, a, t, false)
}

// Open opens the state that t names. If readOnly is true, the Session can only read the state;
// otherwise it can work on runs.
func Open(ctx context.Context, a *cli.App, t Target, readOnly bool) (*Session, error) {
	if readOnly {
		return OpenTo(ctx, a, t, toRead)
	}
	return OpenTo(ctx, a, t, toWork)
}

// OpenTo opens the state that t names. The parameter `to` says what the command may do with the
// state.
func OpenTo(ctx context.Context, a *cli.App, t Target, to access) (*Session, error) {
	s := &Session{Target: t}
	if t.Postgres == "" {
		a.Private = []string{t.Path, t.Path + ".key"}
	}
	var (
		opened interface {
			store.Store
			io.Closer
		}
		err error
	)
	if t.Postgres != "" {
		opened, err = postgres.Open(ctx, t.Postgres, postgres.Options{Logger: a.Logger()})
	} else {
		opened, err = sqlite.Open(ctx, t.Path, sqlite.Options{ReadOnly: to == toRead, Beside: to == ToSpeak})
	}
	if err != nil {
		return nil, s.Wrap("open the state", err)
	}
	s.opened, s.Store = opened, store.Complete(faultpoints.Store(opened))
	if s.Sealer, err = sealer(ctx, a, s, to); err != nil {
		return nil, errors.Join(err, s.opened.Close())
	}
	s.Defs = journal.NewDefinitions(s.Store, s.Sealer)
	return s, nil
}

// sealer returns a Sealer with the known keys; nil = no key is known. The first key encrypts new
// values. Keys come from the environment. An embedded state also has a key file, next to the file
// of the state.
//
// A command that only reads uses the keys of the environment and of the key file. A command that
// writes uses the key file only if the environment has no key. The reason is a wrong key in the
// environment. An engine accepts a new first key if it also gets the newest key of the state, and
// this newest key is in the key file. So with both kinds of keys, the wrong key would become a new
// key of the state.
//
// If there is no key at all and the command works on runs of an embedded state, sealer creates the
// key file with a new key.
func sealer(ctx context.Context, a *cli.App, s *Session, to access) (crypt.Sealer, error) {
	readOnly := to != toWork
	var keys []crypt.Key
	if text, ok := a.Lookup(cli.KeyVariable); ok && text != "" {
		given, err := crypt.ParseKeys(text)
		if err != nil {
			return nil, cli.Failed("Invalid "+cli.KeyVariable, "%s.", words.UpperFirst(err.Error()))
		}
		keys = append(keys, given...)
	}
	if s.Postgres == "" && (len(keys) == 0 || to == toRead) {
		file := s.Path + ".key"
		_, err := os.Stat(file)
		if errors.Is(err, fs.ErrNotExist) && len(keys) == 0 && !readOnly {
			if err := s.unkeyed(ctx); err != nil {
				return nil, err
			}
		}
		if err == nil || len(keys) == 0 && !readOnly {
			kept, err := crypt.LoadOrCreateKeyFile(file)
			if err != nil {
				return nil, cli.Failed("Cannot use the encryption key", "%s.", words.UpperFirst(err.Error()))
			}
			keys = append(keys, kept...)
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	return crypt.NewSealer(keys...)
}

// unkeyed returns an error if the state was written with an encryption key. For such a state, the
// function `sealer` must not create a key file with a new key.
func (s *Session) unkeyed(ctx context.Context) error {
	ids, err := journal.KeysOf(ctx, s.Store)
	if err != nil {
		return s.Wrap("ask which key seals", err)
	}
	if len(ids) == 0 {
		return nil
	}
	return cli.Failed("Encryption key is missing", "%s.key is not there, and %s was written with the key in it (%s). Restore the file, or set %s to that key. "+
		"Without it the runs in this state cannot be read or finished; to begin anew, move the state file away.", s.Shown, s.Shown, ids[0], cli.KeyVariable)
}

// NoState returns the error that there is no embedded state at t.
func NoState(t Target) error {
	if t.implied {
		return cli.Failed("No state here", "There is no %s. Name the directory of the workflow with --chdir, or the state with --dsn.", t.Shown)
	}
	return cli.Failed("No such state", "There is no %s.", t.Shown)
}
