// Package sim runs whole engines, several on one memory store, through random
// workflows and random misfortune, and judges what they leave behind. The seed
// decides the workflow, the far side, the fault plan (what goes wrong), and, in a
// binary built as package steady says, every turn that goroutines take: the same
// seed makes the same trace. Run inside a testing/synctest bubble, an hour of
// misfortune takes milliseconds.
//
// What is judged is what the far side's own ledger says and what the journal
// says when its rows are folded beside the engines (fold.go, judge.go), not what
// an engine believes.
package sim
