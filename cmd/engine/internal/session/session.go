package session

import (
	"context"
	"errors"
	"io"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/sqlite"
)

// A Session holds an open store, and the key and definitions that are needed to read its
// rows.
type Session struct {
	Target
	Store  store.Full
	opened io.Closer
	Sealer crypt.Sealer // nil = no key is known
	Defs   *journal.Definitions
	Held   bool // another process has locked the embedded file
}

// Close closes the store. It returns no error, because each write has reported its own error.
func (s *Session) Close() {
	_ = s.opened.Close()
}

// Wrap returns an error of the store together with the name of the operation that failed.
func (s *Session) Wrap(doing string, err error) error {
	var locked *sqlite.LockedError
	var schema *store.SchemaError
	if errors.As(err, &locked) || errors.As(err, &schema) || errors.Is(err, context.Canceled) {
		return err
	}
	return &cli.StoreError{Doing: doing, Shown: s.Shown, Err: err}
}

// RightKey returns an error if the command does not have the key of the state. With another key,
// engines could not read the values that the command seals. If the state has no key, RightKey sets
// the field Sealer to nil, so that the command seals nothing.
func (s *Session) RightKey(ctx context.Context) error {
	pinned, err := s.Store.Pin(ctx, journal.SettingKey, "")
	switch {
	case err != nil:
		return s.Wrap("ask which key seals", err)
	case pinned == "":
		s.Sealer = nil
	case s.Sealer != nil && s.Sealer.KeyID() != pinned:
		return cli.Failed(cli.WrongKey, "%s is sealed with the key %s, and the key given is %s. Set %s to the first.", s.Shown, pinned, s.Sealer.KeyID(), cli.KeyVariable)
	case s.Sealer == nil:
		return cli.Failed("Encryption key needed", "%s is sealed with the key %s. Set %s to that key.", s.Shown, pinned, cli.KeyVariable)
	}
	return nil
}

// NotePlace prints where the state is, if neither --dsn nor ENGINE_DSN says so.
func NotePlace(a *cli.App, s *Session) {
	if s.implied {
		a.Note("State is kept in %s. Use --dsn for another place.", s.Shown)
	}
}
