// Package firings is the role of a store that keeps the firings of selections, and reads the rows of
// business tables in the same database.
//
// In: queries of select blocks, and the progress of firings. Out: pages of rows, and the firings that
// are open. One engine at a time works on a firing. The package starts no run.
package firings

import (
	"context"
	"time"

	"github.com/saga-engine/engine/engine/store"
)

// The states of a firing.
const (
	Open      = "open"
	Complete  = "complete"  // all rows were handed on
	Cancelled = "cancelled" // a person or the next tick ended the firing
)

// A Firing is one execution of a selection at a tick.
type Firing struct {
	ID         int64
	Workflow   string
	Schedule   string
	Tick       time.Time
	WorkflowID store.WorkflowID // workflow in the definition that was published when the firing began
	By         string           // person or program that opened the firing; only for display
	At, Ended  time.Time        // times by the store's clock; a zero Ended = the firing is open
	From, To   time.Time        // interval of the strategy window; zero for other strategies
	Args       []byte           // JSON object with the parameters that a person gave; nil = none
	State      string
	Pass       int     // number of finished passes over the rows
	Fresh      bool    // true = the present pass has handed on a row
	Watermark  *string // key of the last row that was handed on in this pass; nil = none yet
	Report     Report
	Error      string // why the firing does not continue; "" = it does
	Holder     string // engine that works on the firing, or worked on it last
	Version    int64  // number of times that the progress was written
	Given      []byte // schedules.Workflow.Given of the published workflow
	Published  bool   // false = the workflow is not published any more
}

// A Report counts the rows of a firing. Each selected row is in exactly one of the other counts,
// apart from Missed, which counts rows that were not selected.
type Report struct {
	Selected    int64 // rows that the query returned
	Started     int64 // rows whose run is in the store
	Refused     int64 // rows whose run was refused, such as rows whose unique key another run has
	Filtered    int64 // rows that the filter left out
	Quarantined int64 // rows that could start no run because of an error
	Vanished    int64 // rows whose keys were read, and that were gone afterwards
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

// A Query reads the rows of a firing. The text is the query of a definition, and is not made from
// data.
type Query struct {
	Text     string
	Args     []*string // values of $1, $2 and so on; nil = NULL
	Key      string    // name of the key column
	PageSize int
	Parallel int  // number of pages that are read at the same time, at least 1
	Repeats  bool // true = passes over the rows repeat until a pass finds no new row
	Lock     bool // true = the rows of a page are locked until its progress is stored
	// Keys are the keys of the next page. nil = the keys are found by the query. With Keys the call of
	// Hand reads one page with these keys.
	Keys []string
	Last bool // true = no more Keys follow
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

// A Progress is what a page has come to.
type Progress struct {
	Report Report
	Bad    []Bad
}

// A Store is a store that keeps firings. The role is optional: only a store in the same database as
// the business tables can have it.
type Store interface {
	// Columns returns the columns of a query. It returns an error that explains what is wrong if the
	// database does not accept the query in a page.
	Columns(ctx context.Context, q Query) ([]string, error)
	// Fire opens a firing, if there is none with this workflow, schedule and tick. It reports whether
	// it has opened one. A cancelled firing is opened again, and continues after its watermark. If
	// windowed is set, the interval of the firing ends at its tick. It begins at the end of the
	// interval before, or at f.From if there is none. A tick whose interval was covered by another
	// firing opens none.
	Fire(ctx context.Context, f Firing, windowed bool) (bool, error)
	// Claim gives an open firing that no engine holds to the holder, for the time of the lease. It
	// returns nil if there is none. Firings of one schedule are claimed one after the other.
	Claim(ctx context.Context, holder string, lease time.Duration) (*Firing, error)
	// Renew extends the lease of a claimed firing. It reports whether the holder still has it.
	Renew(ctx context.Context, f *Firing, lease time.Duration) (bool, error)
	// Release gives a claimed firing back. Another engine may claim it after the pause. The parameter
	// why is the reason; "" = there was no error.
	Release(ctx context.Context, f *Firing, pause time.Duration, why string) error
	// Hand reads the next page of a claimed firing, calls hand with its rows, and stores the progress.
	// It changes f to the new progress. If hand returns an error, Hand stores nothing and returns the
	// error. If Query.Parallel is above 1, several goroutines call hand. Hand reports false if the
	// holder has lost the firing, or if the firing was cancelled.
	Hand(ctx context.Context, f *Firing, q Query, hand func(ctx context.Context, rows []Row) (Progress, error)) (bool, error)
	// Keys returns the keys of all rows after the watermark, in order, with duplicates. It returns no
	// more keys than the parameter limit says.
	Keys(ctx context.Context, f *Firing, q Query, limit int) ([]string, error)
	// Rows returns the rows with the keys Query.Keys.
	Rows(ctx context.Context, q Query) ([]Row, error)
	// Firings returns the newest firings, the newest first.
	Firings(ctx context.Context, limit int) ([]Firing, error)
	// Find returns the firing of a schedule at a tick; nil = there is none.
	Find(ctx context.Context, workflow, schedule string, tick time.Time) (*Firing, error)
	// Cancel ends an open firing. It reports whether the firing was open.
	Cancel(ctx context.Context, id int64, why string) (bool, error)
	// Quarantined returns the quarantined rows of a firing, the oldest first.
	Quarantined(ctx context.Context, firing int64, after int64, limit int) ([]Bad, error)
	// Settle removes an entry of the quarantine, and moves its row to the count of started or refused
	// rows. It does nothing if the entry is gone.
	Settle(ctx context.Context, b Bad, refused bool) error
	// Explain replaces the error of an entry of the quarantine.
	Explain(ctx context.Context, b Bad) error
}

// A Keeper is a store with the role Store. Methods of the role have the names of other methods of a
// store, so the role is a value of its own.
type Keeper interface {
	// Selections returns the role; nil = the store does not have it.
	Selections() Store
}

// Of returns the role Store of a store. ok is false if the store does not have it.
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
