// Package selection describes a select block: the query whose rows start runs, and the strategy by
// which engines read these rows.
//
// In: the text of a query, with named parameters such as $status. Out: the same query with numbered
// parameters, or the reason why it is refused. The package sends no query, and knows no database.
//
// The source files form layers: selection.go uses query.go.
package selection

// A Selection says which rows of business tables start runs, and how engines read them.
type Selection struct {
	Query    *Query
	Args     map[string]*string // value of each parameter as text, by name; nil value = NULL
	Strategy Strategy
	Key      string // column that identifies a row and orders the rows
	PageSize int    // largest number of rows in one page
	Parallel int    // number of pages that one engine works on at the same time, at least 1
	MaxKeys  int    // largest number of keys that the strategy `in_memory` may read
	// Columns holds the names of the columns to which the select block refers as row.COLUMN,
	// sorted.
	Columns []string
}

// A Strategy says how engines read the rows of a selection.
type Strategy uint8

// The values of Strategy.
const (
	Keyset   Strategy = iota // one pass over the rows, page by page in the order of the key
	Exhaust                  // several passes over the rows, until one pass finds no row that is new in this firing
	Window                   // one pass over the rows of an interval of time, which no other firing reads
	Locked                   // as Exhaust, but the engine locks each row while it records the run of the row
	InMemory                 // all keys are read first; then the rows with these keys
)

// StrategyNames maps each Strategy to its word in the argument `strategy`.
var StrategyNames = []string{"keyset", "exhaust", "window", "locked", "in_memory"}

// String returns the word that means s in the argument `strategy`.
func (s Strategy) String() string { return StrategyNames[s] }

// Repeats reports whether the strategy makes several passes over the rows. Such a strategy must
// remember the keys of the rows whose runs a firing has already started or refused.
func (s Strategy) Repeats() bool { return s == Exhaust || s == Locked }

// Limits and defaults of the arguments of a select block.
const (
	DefaultPageSize = 1000
	MaxPageSize     = 10_000
	MaxParallel     = 16
	DefaultMaxKeys  = 100_000
	MaxMaxKeys      = 1_000_000
)

// The parameters that a firing gives to a query. A select block cannot give them a value.
const (
	ParamTick = "tick" // tick of the firing
	ParamFrom = "from" // beginning of the interval that the strategy "window" reads, which includes this time
	ParamTo   = "to"   // end of the interval that the strategy "window" reads, which excludes this time
)
