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
	Retain time.Duration // how long a reached goal is kept; 0 = until a person or a reset_on block resets it
	// These two fields say what happens to a new submission whose key a run already holds. At most
	// one field is true. If both are false, the submission attaches to the run that holds the key.
	Reject  bool // the submission is refused
	Replace bool // the run that holds the key is cancelled, and the new run starts when the key is free
	// Variable is the name of the variable whose value is the key; "" = the key is another
	// expression.
	Variable string
}
