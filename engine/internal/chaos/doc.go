// Package chaos tests engines with faults. The tests run real engine processes, a real
// PostgreSQL and real agents. The remote service of the agents is package ledger, and it alone
// decides which effects happened. Every test ends with the same checks (Judge).
//
// `make test` runs each kind of fault only a short time. `make chaos` (CHAOS=full) runs as many
// rounds as docs/reliability.md says, and prints a report.
package chaos
