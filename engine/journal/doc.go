// Package journal encodes the records of runs as rows of a store, and reads these rows.
//
//	records ──▶ EncodeRow ──▶ row of a store ──▶ Load, Follow ──▶ Run
//
// EncodeRow makes the data of a row: it seals sensitive parts, and adds a check that binds the
// row to the rows before it. Load reads the rows of a run, verifies the checks, and folds the
// records into a state. Follow does the same while the run continues. Definitions keeps the
// definitions of runs.
//
// Invariants. A row can be opened only in its own place: its run and its number (I13). A row
// that was changed, removed or moved is found (decision 0020). The same rows always fold to
// the same state (S87).
//
// The package makes no decisions and executes nothing.
package journal
