// Package chaos tests engines with faults. The tests run real engine processes and real agents,
// with a real PostgreSQL or a file of SQLite. The remote service of the agents is package ledger.
// The tests believe only the ledger about which effects happened. Every test ends with the same
// checks (Judge).
//
// `make test` runs each kind of fault only a short time. `make chaos` (CHAOS=full) runs as many
// rounds as docs/reliability.md says, and prints a report.
package chaos
