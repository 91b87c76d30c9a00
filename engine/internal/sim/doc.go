// Package sim runs several complete engines on one memory store, with random workflows and
// random faults. Afterwards it checks the effects and the journals. The seed determines the
// workflow, the remote service and the fault plan. In a binary that package steady has built,
// the seed also determines the order in which goroutines run: the same seed gives the same
// trace. In a testing/synctest bubble, an hour of faults takes milliseconds.
//
// The checks (judge.go) read the ledger of the simulated remote service, which lists all
// effects. They compute the states of runs from the journal rows (fold.go). They do not use the
// states that engines keep in memory.
//
// A third of the simulations have families (kin.go): package flows generates a module whose runs
// start child runs and announce their states, and whose limits count for all engines together. In
// these simulations, people send verbs until every run has ended. Further checks (kinjudge.go)
// compare parents, child runs and notifications.
//
// In two thirds of the simulations with families, people also migrate runs (move.go): package flows
// makes variants of the module, and the operator asks the owner of a run to move the run to a
// variant. The checks (movejudge.go) compute the workflow that each run has after each row. A child
// run, or the run of a group, must have a definition that its parent had when its call began, or
// later. A notification must have the definition that its run had when it reached the announced
// state. In the other simulations, which have no families, runs are never migrated.
package sim
