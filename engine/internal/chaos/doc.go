// Package chaos injects faults into real engines: real processes, a real PostgreSQL, real
// agents, and a remote service of its own (package ledger). Only that service decides which
// effects happened. Every test ends with the same checks (Judge), whatever its faults.
//
// `make test` runs each fault once and for a short time. `make chaos` (CHAOS=full) runs the
// numbers of docs/reliability.md and prints a report.
package chaos
