package journal

import (
	"fmt"

	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/store"
)

// DecodeLate returns the answer in a late reply: machine.AttemptOK, AttemptFailed, AttemptUnknown
// or AttemptNotDone. If the parameter `sealer` is nil, DecodeLate can read only data that is not
// sealed. The error contains a *KeyError if the key is unknown, wire.ErrFormat if a newer version
// wrote the reply, or wire.ErrCorrupt if the reply is damaged.
func DecodeLate(sealer crypt.Sealer, l store.LateReply) (machine.Event, error) {
	e, err := DecodeMessage(sealer, l.Run, l.Data)
	if err != nil {
		return nil, fmt.Errorf("read the late answer of %s: %w", l.Step, err)
	}
	return e, nil
}
