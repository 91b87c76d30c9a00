package engine

import (
	"github.com/saga-engine/engine/engine/internal/call"
	"github.com/saga-engine/engine/engine/internal/cluster"
)

// Conditions that callers branch on; the store has more.
var (
	ErrNotOwner = call.ErrNotOwner
	ErrStopping = cluster.ErrStopping
)
