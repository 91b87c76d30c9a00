// Package sim runs whole engines, several on one memory store, through random
// workflows and random misfortune, and judges what they leave behind. A seed
// decides the workflow, the far side and the faults; run inside a
// testing/synctest bubble, an hour of misfortune takes milliseconds. Goroutines
// interleave as the runtime likes, so a seed repeats the world, not each step.
//
// What is judged is what the far side's own ledger says, not what the engine
// believes: see judge.go.
package sim
