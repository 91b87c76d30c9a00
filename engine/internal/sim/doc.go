// Package sim runs whole engines, several on one memory store, through random
// workflows and random faults, and judges the effects and journals. The seed
// decides the workflow, the far side, the fault plan (what goes wrong), and, in a
// binary built as package steady says, every turn that goroutines take: the same
// seed makes the same trace. Run inside a testing/synctest bubble, an hour of
// faults takes milliseconds.
//
// The judge reads the far side's own ledger, and folds the journal rows itself (fold.go,
// judge.go). It does not trust the states that engines keep in memory.
package sim
