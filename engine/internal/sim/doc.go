// Package sim runs whole engines, several on one memory store, through random workflows and
// random faults. Then it checks the effects and the journals. The seed determines the
// workflow, the remote service and the fault plan. In a binary that package steady has built,
// the seed also determines the order in which goroutines run: the same seed gives the same
// trace. In a testing/synctest bubble, an hour of faults takes milliseconds.
//
// The judge reads the ledger of the simulated remote service, and folds the journal rows
// itself (fold.go, judge.go). It does not use the states that engines keep in memory.
package sim
