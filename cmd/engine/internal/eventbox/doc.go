// Package eventbox sends events, and shows and changes the events in the inbox of a state.
//
// In: the state of --dsn, and what a person gave. Out: text or JSON. The package starts no engine:
// engines that serve the state start the runs.
package eventbox
