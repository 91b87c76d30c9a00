package engine

import (
	"github.com/saga-engine/engine/engine/internal/call"
	"github.com/saga-engine/engine/engine/internal/cluster"
)

// Errors that callers may test for. Package store has more.
var (
	ErrNotOwner = call.ErrNotOwner
	ErrStopping = cluster.ErrStopping
)
