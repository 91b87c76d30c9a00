package noun

import "time"

// A Scope says how long a run holds its unique key.
type Scope uint8

// The scopes of a unique block.
const (
	ScopeGoal   Scope = iota // while the run is open, and after it has succeeded; the default
	ScopeActive              // while the run is open
	ScopeEver                // for ever, even if the run was undone
)

// A Unique holds what a unique block says besides its key. The zero value has the defaults.
type Unique struct {
	Scope  Scope
	Retain time.Duration // how long a goal that is reached is kept; 0 = until a person resets it
	Reject bool          // true = a submission is refused if another run holds its key; false = it attaches to that run
}
