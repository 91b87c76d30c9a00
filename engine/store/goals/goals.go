// Package goals is the role of a store that shows which run holds each unique key, and that frees
// the keys of goals that were reached.
//
// In: the unique keys of submitted runs (naming.Names), and the resets of people. Out: a list of
// keys with the runs that hold them. A store keeps one row for each workflow and key, in the table
// `context`. The row names the run that took the key last. Whether the key is free is computed from
// the state of this run, so no commit changes the row when the run ends. After retention has
// removed the run, the row stays as long as the run holds the key.
package goals

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// A State says whether another run of a key can start, and why not.
type State string

// The states of a goal. In the first four, no other run of the key can start.
const (
	Open        State = "open"         // the run of the key has not ended, or another run waits for the key
	NeedsPerson State = "needs_person" // the run waits for a person
	Reached     State = "reached"      // the run has succeeded: the goal is reached
	// the run did not succeed, but the workflow allows only one run of each key, for ever
	Used State = "used"
	Free State = "free" // another run of the key can start
)

// A Goal is the goal of one unique key, with the runs that hold the key or wait for it.
type Goal struct {
	Workflow, Key string
	Run           status.RunID // the last run that took the key
	Name          string       // public name of Run
	Gone          bool         // retention has removed Run; the goal is kept because Run holds the key
	RunState      status.RunState
	KeyScope      naming.KeyScope // how long Run holds the key
	State         State
	Next          status.RunID // the open run that waits until the key is free; 0 = none
	NextName      string       // public name of Next
	ReachedAt     time.Time    // time at which Run succeeded; zero = it has not succeeded
	FreeAt        time.Time    // time at which a goal that is reached becomes free; zero = no such time
	Resets        int          // number of resets of the key
	LastReset     Reset        // the latest reset; zero = none
}

// Held reports whether the key is held now. While the key is held, no other run of the key can
// start.
func (g *Goal) Held() bool { return g.State != Free }

// SetState sets State, ReachedAt and FreeAt. The caller must have set all other fields that
// describe g.Run, and the field Next. The parameter `ended` is the time at which the run in g.Run
// ended; zero = the run is open. The parameter `reset` is true if the goal was reset after that run
// had reached it.
func (g *Goal) SetState(ended time.Time, reset bool, now time.Time) {
	g.ReachedAt, g.FreeAt = time.Time{}, time.Time{}
	if g.RunState == status.RunSucceeded {
		g.ReachedAt = ended
	}
	switch {
	case g.RunState.NeedsHuman():
		g.State = NeedsPerson
	case !g.RunState.Final():
		g.State = Open
	case !g.KeyScope.Holds(g.RunState, ended, reset, now):
		if g.State = Free; g.Next != 0 {
			// Another run waits for the key, and gets the key next.
			g.State = Open
		}
	case g.RunState == status.RunSucceeded:
		if g.State = Reached; g.KeyScope.Scope == naming.ScopeGoal && g.KeyScope.Retain > 0 {
			g.FreeAt = ended.Add(g.KeyScope.Retain)
		}
	default:
		g.State = Used
	}
}

// A Reset says that a person, or an event, has freed the key of a goal that was reached.
type Reset struct {
	Workflow, Key string
	Run           status.RunID // the run that had reached the goal
	Name          string       // public name of Run
	At            time.Time    // store time; the store sets it
	By, Reason    string       // who reset the goal, and why; both at most MaxText bytes
}

// MaxText is the largest length of Reset.By and Reset.Reason, in bytes.
const MaxText = 2000

// Validate returns an error if a store cannot keep the reset.
func (r Reset) Validate() error {
	for _, s := range []string{r.Workflow, r.Key, r.By, r.Reason} {
		if s == "" || len(s) > MaxText || s != naming.CleanText(s) {
			return fmt.Errorf("engine: a reset needs a workflow, a key, a person and a reason, each a text of 1 to %d bytes", MaxText)
		}
	}
	return nil
}

// A Filter selects goals.
type Filter struct {
	Workflow string // "" = all workflows
	Key      string // "" = all keys; only together with Workflow
	// To read page by page: only goals after this workflow and key, in the order of Goals. Both
	// "" = the first page.
	AfterWorkflow, AfterKey string
	Limit                   int // largest number of goals
}

// A Keeper is a store that keeps goals. The role is optional. On a store without this role,
// goals cannot be shown or reset.
type Keeper interface {
	// Goals returns the goals that a filter selects, ascending by workflow and key. It never
	// blocks a writer.
	Goals(ctx context.Context, f Filter) ([]Goal, error)
	// ResetGoal frees the key of a goal that was reached, and records who did it and why. It
	// returns the goal as it was before. It returns an error that wraps ErrOpen, ErrNotReached or
	// ErrEver if the goal cannot be reset; then it changes nothing, and the result is the present
	// goal. It returns store.ErrNotFound if the store has no goal of this key. A
	// submission at the same time takes effect either before the reset or after it.
	ResetGoal(ctx context.Context, r Reset) (Goal, error)
	// Resets returns the resets of the goals that the given run had reached, oldest first.
	Resets(ctx context.Context, run status.RunID) ([]Reset, error)
}

// The reasons why a goal cannot be reset.
var (
	ErrOpen       = errors.New("the run of the key is open")
	ErrNotReached = errors.New("the goal is not reached")
	ErrEver       = errors.New("the workflow allows one run for each key, for ever")
)

// Resettable returns an error if the goal cannot be reset: ErrOpen, ErrNotReached or ErrEver.
func (g *Goal) Resettable() error {
	switch {
	case g.State == Open || g.State == NeedsPerson:
		return ErrOpen
	case g.State == Free:
		return ErrNotReached
	case g.KeyScope.Scope == naming.ScopeEver:
		return ErrEver
	}
	return nil
}

// Of returns the optional role Keeper of the store s. If s does not have this role, `ok` is false.
func Of(s store.Store) (role Keeper, ok bool) {
	if full, complete := s.(store.Full); complete {
		s = full.Store
	}
	role, ok = s.(Keeper)
	return role, ok
}

// Find returns the goal of a unique key. It returns store.ErrNotFound if there is none, or if the
// store does not keep goals.
func Find(ctx context.Context, s store.Store, workflow, key string) (Goal, error) {
	role, ok := Of(s)
	if !ok || workflow == "" || key == "" {
		return Goal{}, store.ErrNotFound
	}
	found, err := role.Goals(ctx, Filter{Workflow: workflow, Key: key, Limit: 1})
	if err == nil && len(found) == 0 {
		err = store.ErrNotFound
	}
	if err != nil {
		return Goal{}, err
	}
	return found[0], nil
}
