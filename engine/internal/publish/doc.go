// Package publish publishes workflows, and opens the firings of their selections.
//
// In: a definition with the names of the workflows to publish; or a tick, an event or a person's
// request, each of which opens a firing. Out: rows of published workflows and of their schedules,
// and rows of firings. Engines work on these rows later: see packages ticks and selects.
//
// A workflow is published only if engines can start the runs of its schedules without another
// question: all variables have valid values, the keys for sensitive values are there, and the
// database accepts the queries of selections. The package starts no run, calls no agent, and needs
// no running engine.
//
// The source files form layers, lowest first: selection, firing, publish.
package publish
