// Package admission describes the checks of business rows that decide whether a run is accepted.
//
//	in:   the admit blocks of a workflow, with the values of one submission
//	out:  checks for the store, and the error that says why a check refuses a run
//
// The package runs no statement. The PostgreSQL store runs the checks, inside the transaction that
// accepts the run.
package admission

import "fmt"

// A Check is one admit block with the values of one submission.
type Check struct {
	Name     string    // label of the block
	SQL      string    // one SELECT, to which the store adds the locking clause Lock.Clause
	Args     []*string // the parameters $1, $2 and so on of SQL as texts; nil = NULL
	Message  string    // text for people if the check refuses the run
	Lock     Lock
	Bump     string    // with LockVersion: one UPDATE of the rows that the SELECT in SQL reads; otherwise ""
	BumpArgs []*string // the parameters of Bump
}

// A Lock says how a check protects the rows that it has read until the run is accepted.
type Lock int

// The locks of an admit block.
const (
	LockShare Lock = iota // FOR SHARE: other transactions can read and lock the rows, but not change them
	// FOR UPDATE: other transactions can read the rows, but neither lock nor change them. So only
	// one check of these rows runs at a time.
	LockUpdate
	LockVersion // FOR NO KEY UPDATE, and then the check itself changes the rows with Check.Bump
)

// LockNames are the words of the argument `lock`, in the order of the locks.
var LockNames = []string{"share", "update", "version"}

// Clause returns the locking clause that the store adds to the SELECT of a check.
func (l Lock) Clause() string {
	return [...]string{"FOR SHARE", "FOR UPDATE", "FOR NO KEY UPDATE"}[l]
}

// A Code says why a run is not accepted.
type Code string

// The codes of an Error.
const (
	Refused     Code = "refused"     // the first column of a row is not true
	NoRow       Code = "no_row"      // the statement has returned no row
	NotBoolean  Code = "not_boolean" // the first column of the statement has another type
	Failed      Code = "failed"      // the database has refused the statement
	Writes      Code = "writes"      // the SELECT has changed rows
	NotLocked   Code = "not_locked"  // the SELECT has read rows that it has not locked
	NotBumped   Code = "not_bumped"  // the UPDATE has left out rows that the SELECT has read
	Busy        Code = "busy"        // the rows were locked for too long, or the statement took too long
	Unsupported Code = "unsupported" // the store cannot run checks
)

// An Error says which check has not accepted a run, and why. The run is not in the store.
type Error struct {
	Name    string // label of the admit block
	Code    Code
	Message string // error_message of the block; only with Refused and NoRow
	Detail  string // what has happened, and what to do
	Err     error  // cause; nil = none
}

// Error returns a sentence for people.
func (e *Error) Error() string {
	text := fmt.Sprintf("admit %q: ", e.Name)
	switch {
	case e.Message != "" && e.Detail != "":
		text += e.Message + " (" + e.Detail + ")"
	default:
		text += e.Message + e.Detail
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Temporary reports whether a second try with the same submission may succeed, even if no row has
// changed meanwhile.
func (e *Error) Temporary() bool { return e.Code == Busy }

// Unable returns the error of a store that cannot run the checks. The parameter `kind` names the
// store.
func Unable(kind string, checks []Check) error {
	return &Error{
		Name: checks[0].Name, Code: Unsupported,
		Detail: "the workflow checks rows of a PostgreSQL database, and this state is " + kind +
			": submit the run to engines that keep their state in the PostgreSQL database with these rows (--dsn postgres://…), or remove the admit block",
	}
}
