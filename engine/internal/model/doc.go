// Package model holds a run as plain data: the run itself, its nodes (steps and instances
// of for_each steps), their attempts, and patches, which say what a record changes of them.
//
// It exists because three packages read the same data and none of them should know the
// others: machine decides what the data become, wire writes patches as the journal's
// bytes, and story tells people what has happened.
//
// In: nothing; the package calls nobody. Out: the data, how two of them differ (Diff*), and
// how a patch changes them (Overwrite, WithPatches). It may touch only what it is given: it
// reads no clock and no store.
//
// Invariants:
//   - Nodes, heads, troubles and sayings are shared by states, records and drafts. Only
//     machine changes them, and only those that it has just copied.
//   - The numbers of fields, kinds and states are persisted (see the constants). A number
//     never changes its meaning and is never used twice.
//   - Node.More, Run.Head and Run.Trouble are never nil: NoMore, NoHead and NoTrouble are
//     used where there is nothing.
package model
