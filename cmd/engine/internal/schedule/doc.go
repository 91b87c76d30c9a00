// Package schedule publishes workflows, and shows and changes their schedules.
//
// In: a module or the state of --dsn, and the names that a person gave. Out: text or JSON. The
// package starts no engine: engines that serve the state start the runs.
package schedule
