// Package chaos lets faults strike real engines: real processes, a real
// PostgreSQL, real agents, and a far side of its own (package ledger) that is
// the only truth about effects. Every test ends with the same judgement
// (Judge), whichever faults it made.
//
// `make test` runs each fault once and briefly; `make chaos` (CHAOS=full) runs
// the numbers of docs/reliability.md and prints a report.
package chaos
