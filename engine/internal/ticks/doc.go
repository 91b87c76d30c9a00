// Package ticks starts the runs of schedules.
//
// In: published workflows with their schedules, and the store's time. Out: submitted runs, and the
// next tick of each schedule. All engines of a store work on the same schedules. A tick never
// starts two runs, for three reasons:
//
//   - The name of a run is computed from its workflow, its schedule and its tick, and a store
//     accepts each name once. So two engines that start the same tick get the same run.
//   - A schedule moves to its next tick only after the run is in the store, and only if the
//     schedule still has the version that was read. If an engine dies before the schedule moves,
//     another engine starts the same tick again and finds that the run exists.
//   - The timetable alone determines the ticks. The clock of an engine does not change them.
//
// The source files form layers, lowest first: name, decide; plan; select, fire.
package ticks
