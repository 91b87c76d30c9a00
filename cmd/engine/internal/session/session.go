package session

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/sqlite"
)

// A Session holds an open store, and the encryption keys and definitions that are needed to
// read the rows of the store.
type Session struct {
	Target
	Store  store.Full
	opened io.Closer
	Sealer crypt.Sealer // nil = no key is known
	Defs   *journal.Definitions
	Locked bool // another process has locked the embedded file
}

// Close closes the store. It returns no error, because each write has reported its own error.
func (s *Session) Close() {
	_ = s.opened.Close()
}

// Wrap returns an error of the store together with the name of the operation that failed. It does
// not change an error about a locked state file or about the schema, and it does not change
// context.Canceled.
func (s *Session) Wrap(doing string, err error) error {
	var locked *sqlite.LockedError
	var schema *store.SchemaError
	if errors.As(err, &locked) || errors.As(err, &schema) || errors.Is(err, context.Canceled) {
		return err
	}
	return &cli.StoreError{Doing: doing, Shown: s.Shown, Err: err}
}

// RightKey returns an error if the command must not seal data for the state. To seal data, the
// command needs all encryption keys of the state, and the first of its keys must be the newest key.
// Without this rule, engines could be unable to read the sealed values. If the state has no key,
// RightKey sets the field Sealer to nil, so that the command seals nothing.
func (s *Session) RightKey(ctx context.Context) error {
	ids, err := s.ReadKey(ctx)
	switch {
	case err != nil:
		return err
	case len(ids) > 0 && s.Sealer.KeyID() != ids[0]:
		return cli.Failed(cli.WrongKey, "%s is sealed with the key %s, and the first key given is %s. Put %s first in %s. "+
			"A new key becomes the first one when an engine begins with it.", s.Shown, ids[0], s.Sealer.KeyID(), ids[0], cli.KeyVariable)
	}
	return nil
}

// ReadKey returns the ids of all encryption keys of the state, newest first. It returns an error if
// the command does not have all these keys, because then the command cannot read everything. If the
// state has no key, ReadKey sets the field Sealer to nil.
func (s *Session) ReadKey(ctx context.Context) ([]string, error) {
	ids, err := journal.KeysOf(ctx, s.Store)
	switch {
	case err != nil:
		return nil, s.Wrap("ask which key seals", err)
	case len(ids) == 0:
		s.Sealer = nil
		return nil, nil
	case s.Sealer == nil:
		return nil, cli.Failed("Encryption key needed", "%s is sealed with the key %s. Set %s to that key.", s.Shown, ids[0], cli.KeyVariable)
	}
	given := crypt.KeyIDs(s.Sealer)
	if !slices.Contains(given, ids[0]) {
		return nil, cli.Failed(cli.WrongKey, "%s is sealed with the key %s, and the key given is %s. Set %s to the first.", s.Shown, ids[0], given[0], cli.KeyVariable)
	}
	for _, id := range ids[1:] {
		if !slices.Contains(given, id) {
			return nil, cli.Failed("Older encryption key needed", "%s may hold data that the older key %s sealed. Put that key behind the other in %s, with a comma between them, until `engine key rotate` has finished.",
				s.Shown, id, cli.KeyVariable)
		}
	}
	return ids, nil
}

// NoteState prints where the state is, if the user gave neither --dsn nor ENGINE_DSN.
func NoteState(a *cli.App, s *Session) {
	if s.implied {
		a.Note("State is kept in %s. Use --dsn for another place.", s.Shown)
	}
}
