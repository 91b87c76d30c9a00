package postgres

import "fmt"

// A WrongServerError says that a store's address leads to a server to which the store must
// not write: the former primary after a failover, or another database cluster. The store
// has written nothing to this server.
type WrongServerError struct {
	Store      string // kind of the store: "postgres"
	Seen, Have int64  // PostgreSQL timelines: the highest of all servers so far; the timeline of this server
	Reason     string // what is wrong; only for display
}

// Error says what is wrong and what to do.
func (e *WrongServerError) Error() string {
	return fmt.Sprintf("%s: nothing is written to this server: %s (timeline %d, seen before: %d): let the DSN lead to the present primary, and stop the former one",
		e.Store, e.Reason, e.Have, e.Seen)
}
