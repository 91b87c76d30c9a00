package engine

import (
	"errors"

	"github.com/saga-engine/engine/engine/internal/call"
)

// Conditions that callers branch on; the store has more.
var (
	ErrNotOwner = call.ErrNotOwner
	ErrStopping = errors.New("engine: this engine is stopping")
)
