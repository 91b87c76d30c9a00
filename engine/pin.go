package engine

import (
	"context"
	"fmt"
)

const hintPinned = "set ENGINE_ENCRYPTION_KEY to the key of this state, or, where it is in the key file beside a state file, " +
	"restore that file and leave ENGINE_ENCRYPTION_KEY unset; another key needs another state"

// pinKey makes a store remember the key of the first engine that works on it,
// before that engine writes anything else, and refuses every engine with
// another key: two keys on one store would make runs that neither can read. An
// engine without a key is refused too, because it would write in the clear
// what the others seal. A store on which only engines without keys have worked
// remembers none.
func pinKey(ctx context.Context, store Catalogue, sealer Sealer) error {
	id := ""
	if sealer != nil {
		id = sealer.KeyID()
	}
	pinned, err := store.PinKey(ctx, id)
	switch {
	case err != nil:
		return fmt.Errorf("ask which key seals: %w", err)
	case pinned != id:
		return &KeyError{ID: pinned, Given: id, Hint: hintPinned}
	}
	return nil
}
