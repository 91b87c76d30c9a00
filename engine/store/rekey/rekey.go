// Package rekey is the role of a store whose sealed data can be sealed again with another key.
//
// In: new data for stored rows, messages, late replies and definitions. Out: whether the store
// has replaced the former data. The package knows no key, and opens and seals nothing.
package rekey

import (
	"context"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// A Resealer is a store in which stored data can be replaced by the same data, sealed with
// another key. The role is optional. A store without this role keeps its first key for ever.
//
// Messages, late replies and definitions are written once and never changed, except by a
// Resealer. So two resealers that work at the same time do no harm. The journal of a run is
// different: each row depends on the row before it. Therefore Reseal appends a row to a run
// whose rows it replaces. An engine that has the run in memory cannot commit its next row
// then: it gets store.ErrStale, and reads the run again.
type Resealer interface {
	// Repin replaces the value of a setting, but only if the present value equals the parameter
	// `old` ("" = the setting has no value yet). It returns the value that the setting has
	// afterwards.
	Repin(ctx context.Context, setting, old, value string) (string, error)
	// Definitions returns definitions without their workflows, in the order of their digests. It
	// returns only definitions whose digest is greater than the parameter `after`, and no more than
	// the parameter `limit` says.
	Definitions(ctx context.Context, after string, limit int) ([]store.Definition, error)
	// AllMessages returns all messages and all late replies of the given runs.
	AllMessages(ctx context.Context, runs ...status.RunID) ([]store.Message, []store.LateReply, error)
	// Reseal replaces data of one run, completely or not at all. It returns store.ErrStale if the
	// run was removed. If it has to replace rows of the journal, it also returns store.ErrStale if
	// the journal does not have exactly Resealed.Next rows. It ignores messages and late replies
	// that the store does not have any more.
	Reseal(ctx context.Context, r Resealed) error
	// ResealDefinition replaces the data of a definition. If there is no such definition, it
	// does nothing.
	ResealDefinition(ctx context.Context, digest string, data []byte) error
}

// A Resealed holds new data for one run.
type Resealed struct {
	Run  status.RunID
	Rows []store.Row // rows to replace, ascending by Seq; only Seq and Data are used
	// Next is the number of the row that Reseal appends. The row changes nothing else of the
	// run. If Rows is empty, Reseal appends no row.
	Next     int32
	At       time.Time       // time of the row that Reseal appends, in whole microseconds
	Data     []byte          // data of the row that Reseal appends
	Messages []store.Message // messages to replace; only ID and Data are used
	// Late holds the late replies to replace. The fields Node, Call and Outcome say which late
	// reply is replaced. Of the other fields, only Data is used.
	Late []store.LateReply
}

// Of returns the optional role Resealer of the store s. If s does not have this role, `ok` is
// false.
func Of(s store.Store) (role Resealer, ok bool) {
	if full, complete := s.(store.Full); complete {
		s = full.Store
	}
	role, ok = s.(Resealer)
	return role, ok
}
