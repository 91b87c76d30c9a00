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

// NotePlace says where the state is if nobody said where to keep it.
func NotePlace(a *cli.App, s *Session) {
	if s.implied {
		a.Note("State is kept in %s. Use --dsn for another place.", s.Shown)
	}
}

// RightKey makes sure that what is said is sealed with the key of the state, so
// that its engines can read it.
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

// A Session is an open store and what it takes to read it.
type Session struct {
	Target
	Store  store.Full
	opened io.Closer
	Sealer crypt.Sealer // nil = no key is known
	Defs   *journal.Definitions
	Held   bool // another process holds the embedded file
}

// Close closes the store. What it could not write it has told the caller that wrote.
func (s *Session) Close() {
	_ = s.opened.Close()
}

// Wrap says what was done when the state gave an error.
func (s *Session) Wrap(doing string, err error) error {
	var locked *sqlite.LockedError
	var schema *store.SchemaError
	if errors.As(err, &locked) || errors.As(err, &schema) || errors.Is(err, context.Canceled) {
		return err
	}
	return &cli.StoreError{Doing: doing, Shown: s.Shown, Err: err}
}
