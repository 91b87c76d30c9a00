// Package ticks starts the runs of schedules.
//
// In: published workflows with their schedules, and the store's time. Out: submitted runs, and the
// next tick of each schedule. All engines of a store work on the same schedules. Three things keep
// a tick from starting two runs:
//
//   - The name of a run is computed from its workflow, its schedule and its tick, and a store accepts
//     each name once. So two engines that start the same tick get the same run.
//   - A schedule moves to its next tick only after the run is in the store, and only if its version
//     is the one that was read. An engine that dies between the two leaves a schedule whose tick
//     starts again, and finds the run.
//   - Ticks are points in time that Decide computes from the timetable alone. No engine keeps a
//     clock of its own for them.
//
// The files form layers: name, decide; plan; fire.
package ticks
