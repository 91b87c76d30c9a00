package engine

import (
	"github.com/saga-engine/engine/engine/internal/call"
	"github.com/saga-engine/engine/engine/internal/cluster"
)

// Errors that callers may test for with errors.Is. Package store has more of them.
var (
	ErrNotOwner = call.ErrNotOwner
	ErrStopping = cluster.ErrStopping
)
