package journal

import (
	"fmt"

	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/store"
)

// DecodeLate returns the answer that a late reply holds: machine.AttemptOK,
// AttemptFailed, AttemptUnknown or AttemptNotDone. A nil sealer opens only what
// is not sealed. Returns a *KeyError inside the error if the key is not known,
// wire.ErrFormat if a newer version wrote it, wire.ErrCorrupt if it is
// damaged.
func DecodeLate(sealer crypt.Sealer, l store.LateReply) (machine.Event, error) {
	e, err := DecodeMessage(sealer, l.Run, l.Data)
	if err != nil {
		return nil, fmt.Errorf("read the late answer of %s: %w", l.Step, err)
	}
	return e, nil
}
