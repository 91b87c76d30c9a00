package postgres

import "fmt"

// A WrongServerError says that a store's address leads to a server that must not
// be written to any more: the former primary of a database that was failed over,
// or another database altogether. Nothing was written to it.
type WrongServerError struct {
	Store      string // "postgres"
	Seen, Have int64  // timelines: the highest one seen, and that of this server
	Reason     string // what is wrong, for people
}

// Error names what is wrong and the remedy.
func (e *WrongServerError) Error() string {
	return fmt.Sprintf("%s: nothing is written to this server: %s (timeline %d, seen before: %d): let the DSN lead to the present primary, and stop the former one",
		e.Store, e.Reason, e.Have, e.Seen)
}
