package engine

import "errors"

// Conditions that callers branch on; the store has more.
var (
	ErrNotOwner = errors.New("engine: another engine owns the run")
	ErrStopping = errors.New("engine: this engine is stopping")
)
