package engine

import (
	"github.com/saga-engine/engine/engine/internal/call"
	"github.com/saga-engine/engine/engine/internal/owner"
	"github.com/saga-engine/engine/engine/refusal"
)

// Errors that callers may test for with errors.Is. Package store has more of them.
var (
	ErrNotOwner = call.ErrNotOwner
	ErrStopping = owner.ErrStopping
)

// Errors that callers may test for with errors.As. They say why a submission (KeyError, FullError)
// or a publication (VariableError, SelectionError) was refused. RestartError is another one.
type (
	KeyError       = refusal.KeyError
	FullError      = refusal.FullError
	VariableError  = refusal.VariableError
	SelectionError = refusal.SelectionError
)
