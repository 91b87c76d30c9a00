// Package journal writes what happens to runs as rows of a store, and reads it back.
//
//	records ──▶ EncodeRow ──▶ row of a store ──▶ Load, Follow ──▶ Run
//
// EncodeRow makes the data of a row: it seals what is sensitive, and adds a check that
// binds the row to the rows before it. Load reads the rows of a run, verifies the checks,
// and folds the records into a state. Follow does the same while the run goes on.
// Definitions keeps the definitions that runs are pinned to.
//
// Invariants: a row opens only as the row of its run and number (I13); a row that was
// changed, removed or moved is found (decision 0020); the same rows always fold to the same
// state (S87).
//
// The package decides nothing and runs nothing.
package journal
