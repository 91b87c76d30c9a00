package naming

import (
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode"

	"github.com/saga-engine/engine/engine/machine/status"
)

// A Scope says how long a run holds its unique key. The numbers are persisted.
type Scope int16

// The scopes of a unique block.
const (
	ScopeGoal   Scope = 0 // while the run is open, and after it has succeeded; the default
	ScopeActive Scope = 1 // while the run is open
	ScopeEver   Scope = 2 // for ever, even if the run was undone
)

var scopeNames = map[Scope]string{ScopeGoal: "goal", ScopeActive: "active", ScopeEver: "ever"}

// String returns the name of the scope in the language.
func (s Scope) String() string {
	if name := scopeNames[s]; name != "" {
		return name
	}
	return "scope " + strconv.Itoa(int(s))
}

// MaxRetain is the longest time for which KeyScope.Retain may keep a goal: 100 years.
const MaxRetain = 100 * 365 * 24 * time.Hour

// A KeyScope says how long a run holds its unique key. A run always holds its key while it is open
// or needs a person.
type KeyScope struct {
	Scope Scope
	// Retain is how long a run with ScopeGoal holds its key after it has succeeded, in whole
	// microseconds. 0 = until the goal is reset.
	Retain time.Duration
}

// Validate returns an error if a store cannot keep the scope.
func (h KeyScope) Validate() error {
	if scopeNames[h.Scope] == "" || h.Retain < 0 || h.Retain > MaxRetain || h.Retain != h.Retain.Truncate(time.Microsecond) {
		return fmt.Errorf("engine: a unique key with %v and retain %s is not valid", h.Scope, h.Retain)
	}
	return nil
}

// Holds reports whether a run holds its unique key. The parameter `state` is the state of the run,
// and the parameter `ended` is the time at which it ended. The parameter `reset` is true if the
// goal of the key was reset after the run had reached this goal. A reset frees only the key of a
// run that has ended.
func (h KeyScope) Holds(state status.RunState, ended time.Time, reset bool, now time.Time) bool {
	switch {
	case !state.Final():
		return true
	case reset:
		return false
	case h.Scope == ScopeEver:
		return true
	}
	return h.Scope == ScopeGoal && state == status.RunSucceeded && (h.Retain == 0 || ended.Add(h.Retain).After(now))
}

// ErrKey says that a text cannot be a unique key. If the key is not valid, the error of
// Names.Validate wraps ErrKey.
var ErrKey = errors.New("not a valid unique key")

// checkKey returns an error if a text cannot be a unique key. The text "" means that there is no
// key.
func checkKey(key string) error {
	if len(key) > MaxKeyBytes {
		return fmt.Errorf("engine: unique key of %d bytes exceeds %d: %w", len(key), MaxKeyBytes, ErrKey)
	}
	if key != CleanText(key) {
		return fmt.Errorf("engine: unique key %q holds bytes that are not text: %w", key, ErrKey)
	}
	for i, r := range key {
		if unicode.IsControl(r) {
			return fmt.Errorf("engine: unique key %q holds the control character %U at byte %d: %w", key, r, i, ErrKey)
		}
	}
	return nil
}

// The codes of runs that were cancelled because of their unique key.
const (
	CodeReplaced    = "replaced"     // a newer run of the key has replaced the run
	CodeGoalReached = "goal_reached" // the run waited for its key, and the run that held the key has reached the goal
)

// A Beaten run waits for a unique key that it cannot get: another run has ended and still holds the
// key, for example because it has reached the goal.
type Beaten struct {
	Run status.RunID
	By  status.RunID // the run that has ended and still holds the key
}
