// Package model defines the data of a run: the run itself, its nodes (steps and instances of
// for_each steps), the attempts of the nodes, and patches. A patch holds the fields that a
// record changes.
//
// Three packages use this data. Package machine decides how the data change. Package wire
// writes patches as the bytes of the journal. Package story explains to people what has
// happened. This package defines the data for all three and depends on none of them.
//
// The functions Diff… compare two runs, nodes or attempts and return which fields differ.
// The functions Overwrite and WithPatches apply changes. The package reads no clock and no
// store.
//
// Invariants:
//   - Several states and records may point to the same Node, Head, Rare or FailureText.
//     Only package machine changes a Node, a Head or a Rare. It changes only copies to
//     which nothing else points. No code changes a FailureText.
//   - The numbers of fields, kinds and states are persisted (see the constants). A number
//     never changes its meaning and is never used twice.
//   - Node.More, Run.Head and Run.Rare are never nil. NoMore, NoHead and NoRare are
//     used where there is no data.
package model
