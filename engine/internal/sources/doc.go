// Package sources starts the runs that no caller submits to an engine.
//
// In: the rows of four sources in the store: schedules that are due, submissions of other programs,
// sent events, and open firings of selections. Out: submissions. The packages ticks, intake, inbox
// and selects read the rows and say which runs they ask for. This package submits these runs, and
// says of each error whether the row must be refused or tried again.
//
// The package posts messages to runs of schedules and resets goals, because a row asks for it. It
// decides nothing about a run, and calls no agent. All engines of a store work on the same sources.
// A row starts a run once, because the name of the run follows from the row.
//
// The source files form layers, lowest first: idlehint, pages; sources; samerun; runs.
package sources
