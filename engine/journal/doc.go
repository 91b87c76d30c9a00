// Package journal encodes the records of runs as rows of a store, and reads these rows.
//
//	records ──▶ NewRow.Encode ──▶ row of a store ──▶ Load, Reader ──▶ Run
//
// NewRow.Encode makes the data of a row: it seals sensitive parts, and adds a check that depends
// on the rows before it. Load reads the rows of a run, verifies the checks, and computes the run's
// state from the records. Reader.Follow does the same while the run continues. Definitions keeps
// the definitions of runs.
//
// Invariants. A sealed row can be opened only as the row of its own run and number (I13). With a
// key, the package finds a row that was changed, removed or moved (decision 0020). The comment of
// Verify names two exceptions. Without a key, the package finds accidental changes. The same rows
// always give the same state (S87).
//
// The package makes no decisions and executes nothing.
package journal
