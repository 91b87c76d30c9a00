// Package firings is the role of a store that keeps the firings of selections, and reads the rows
// of business tables in the same database.
//
// In: queries of select blocks, and the progress of firings. Out: pages of rows, and the firings
// that are open. One engine at a time works on a firing. The package starts no run.
package firings

import (
	"context"
	"time"

	"github.com/saga-engine/engine/engine/store"
)

// The states of a firing.
const (
	Open      = "open"
	Complete  = "complete"  // all rows were read and handled
	Cancelled = "cancelled" // a person or the next tick ended the firing
)

// A Firing is one execution of a selection, at a tick of a schedule or because of an event.
type Firing struct {
	ID         int64
	Workflow   string
	Schedule   string           // name of the schedule, or of the on_event block
	Event      string           // id of the event; "" = a schedule or a person opened the firing
	Tick       time.Time        // for an event: the time at which it was sent
	Runs       string           // prefix of the names of all runs of the firing; only Fire uses it
	WorkflowID store.WorkflowID // workflow of the definition that was published when the firing began
	By         string           // person or program that opened the firing; only for display
	At, Ended  time.Time        // times by the store's clock; a zero Ended = the firing is open
	From, To   time.Time        // interval of the strategy `window`; zero for other strategies
	Args       []byte           // JSON object with the parameters that a person gave; nil = none
	State      string
	Pass       int     // number of finished passes over the rows
	Fresh      bool    // true = the present pass has handled at least one row; used only with Query.Repeats
	Watermark  *string // key of the last row that was handled in this pass; nil = none yet
	Report     Report
	Error      string // why the firing does not continue; "" = it continues
	Holder     string // engine that works on the firing, or worked on it last
	Version    int64  // number of times that the progress was written
	Given      []byte // values of deployment variables: schedules.Workflow.Given
	Published  bool   // false = the workflow is not published any more
}

// A Report counts the rows of a firing. The field Selected counts all rows that the query returned.
// Each of these rows is in exactly one of the counts Started, Refused, Filtered, Quarantined and
// Vanished. The rows in Missed are not in Selected.
type Report struct {
	Selected    int64 // rows that the query returned
	Started     int64 // rows whose run is in the store
	Refused     int64 // rows whose run was refused, for example because another run has the unique key
	Filtered    int64 // rows that the filter left out
	Quarantined int64 // rows that could start no run because of an error
	Vanished    int64 // rows that were gone after their keys had been read
	Missed      int64 // rows that other transactions had locked until the end of the firing
}

// Add adds the counts of other to r.
func (r *Report) Add(other Report) {
	r.Selected += other.Selected
	r.Started += other.Started
	r.Refused += other.Refused
	r.Filtered += other.Filtered
	r.Quarantined += other.Quarantined
	r.Vanished += other.Vanished
	r.Missed += other.Missed
}

// A Query reads the rows of a firing. The field Text has only SQL of the definition. All values of
// data are in the field Args.
type Query struct {
	Text     string
	Args     []*string // values of $1, $2 and so on; nil = NULL
	Key      string    // name of the key column
	PageSize int
	Parallel int  // number of pages that are read at the same time, at least 1
	Repeats  bool // true = passes over the rows repeat until a pass finds no new row
	Lock     bool // true = the rows of a page are locked until its progress is stored
	// Keys are the keys of the next page: the next call of Hand reads the rows with these keys. nil
	// = Hand finds the next page with the query.
	Keys []string
	Last bool // true = no keys follow after those in Keys
}

// A Row is a row of a query.
type Row struct {
	Key    string
	Copies int64  // number of rows with this key that were seen; more than 1 = the key is not unique
	Data   []byte // JSON object with all columns
}

// A Bad row is a row that could start no run.
type Bad struct {
	ID     int64 // id of the entry; the store sets it
	Firing int64 // Firing.ID; the store sets it
	Key    string
	At     time.Time // the store sets it
	Error  string
}

// A Progress says what has happened to the rows of a page.
type Progress struct {
	Report Report
	Bad    []Bad
}

// A Store is a store that keeps firings. The role is optional: only a store in the same database as
// the business tables can have it.
type Store interface {
	// Columns returns the names of the columns of a query. It also checks the statement that reads
	// a page of the query. If the database does not accept this statement, the error says why.
	Columns(ctx context.Context, q Query) ([]string, error)
	// Fire opens a firing, and reports whether it has opened it. If there is already a firing with
	// this workflow, schedule and tick, Fire opens no firing. But if that firing is cancelled, Fire
	// opens it again, and the firing continues after its watermark. If f.Event is set, Fire opens a
	// firing only if there is none with this workflow and event, not even a cancelled one.
	//
	// If `windowed` is true, the interval of the firing ends at its tick. The interval begins where
	// the previous interval ends; if there is no previous interval, it begins at f.From. If another
	// firing has covered the interval already, Fire opens no firing.
	Fire(ctx context.Context, f Firing, windowed bool) (bool, error)
	// Claim selects an open firing without a holder. Until the lease ends, the engine in the
	// parameter `holder` is the holder of this firing. Claim returns nil if there is no such
	// firing. Firings of one schedule are claimed one after the other. The firings of events do not
	// wait for each other.
	Claim(ctx context.Context, holder string, lease time.Duration) (*Firing, error)
	// Renew extends the lease of a claimed firing. It reports whether the holder still has the
	// firing.
	Renew(ctx context.Context, f *Firing, lease time.Duration) (bool, error)
	// Release gives a claimed firing back. Another engine may claim it after the pause. The
	// parameter `why` is the reason; "" = there was no error.
	Release(ctx context.Context, f *Firing, pause time.Duration, why string) error
	// Hand reads the next page of a claimed firing and calls the function `hand` with the rows of
	// the page. Then it writes the new progress to the store and to `f`. If the function `hand`
	// returns an error, Hand stores nothing and returns the error. If Query.Parallel is above 1,
	// several goroutines call the function `hand`. Hand returns false if the holder has lost the
	// firing, or if the firing was cancelled.
	Hand(ctx context.Context, f *Firing, q Query, hand func(ctx context.Context, rows []Row) (Progress, error)) (bool, error)
	// Keys returns the keys of all rows after the watermark, in order, with duplicates. It returns
	// no more keys than the parameter `limit` says.
	Keys(ctx context.Context, f *Firing, q Query, limit int) ([]string, error)
	// Rows returns the rows whose keys are in Query.Keys.
	Rows(ctx context.Context, q Query) ([]Row, error)
	// Firings returns the newest firings, the newest first.
	Firings(ctx context.Context, limit int) ([]Firing, error)
	// Find returns the firing of a schedule at a tick; nil = there is none.
	Find(ctx context.Context, workflow, schedule string, tick time.Time) (*Firing, error)
	// FindEvent returns the firing of an event and a workflow; nil = there is none.
	FindEvent(ctx context.Context, workflow, event string) (*Firing, error)
	// Cancel ends an open firing. It reports whether the firing was open.
	Cancel(ctx context.Context, id int64, why string) (bool, error)
	// Quarantined returns the quarantined rows of a firing, the oldest first.
	Quarantined(ctx context.Context, firing int64, after int64, limit int) ([]Bad, error)
	// Resolve removes a row from the quarantine, because its run is in the store or was refused. It
	// counts the row as refused if the parameter `refused` is true, and as started if `refused` is
	// false. If the row is not in the quarantine any more, Resolve does nothing.
	Resolve(ctx context.Context, b Bad, refused bool) error
	// Explain replaces the stored error of a quarantined row.
	Explain(ctx context.Context, b Bad) error
}

// A Keeper is a store with the role Store. Some methods of the role have the same names as other
// methods of a store. So the role is a separate value.
type Keeper interface {
	// Selections returns the role; nil = the store does not have it.
	Selections() Store
}

// Of returns the optional role Store of the store s. If s does not have this role, `ok` is false.
func Of(s store.Store) (role Store, ok bool) {
	if full, complete := s.(store.Full); complete {
		s = full.Store
	}
	k, ok := s.(Keeper)
	if !ok {
		return nil, false
	}
	role = k.Selections()
	return role, role != nil
}
