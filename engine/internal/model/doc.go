// Package model holds a run as plain data: the run itself, its nodes (steps and instances
// of for_each steps), their attempts, and patches. A patch says what a record changes.
//
// Three packages use this data. Package machine decides how the data change. Package wire
// writes patches as the bytes of the journal. Package story explains to people what has
// happened. This package defines the data for all three and depends on none of them.
//
// In: runs, nodes and attempts as arguments. Out: their differences (Diff*), or the data
// after a patch (Overwrite, WithPatches). The package reads no clock and no store.
//
// Invariants:
//   - States, records and drafts share data of the types Node, Head, Trouble and Saying.
//     Only package machine changes such data, and only a copy that nothing else shares.
//   - The numbers of fields, kinds and states are persisted (see the constants). A number
//     never changes its meaning and is never used twice.
//   - Node.More, Run.Head and Run.Trouble are never nil. NoMore, NoHead and NoTrouble are
//     used where there is no data.
package model
