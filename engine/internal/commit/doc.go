// Package commit is the group commit of an engine: it sends many transitions to the store in
// one batch.
//
// In: transitions, each with the receiver of its outcome. Out: the outcomes, in the order in which
// the store answers. The package writes through the writers of the store, and reads nothing.
//
// If the store does not answer, the package sends the whole batch again (decision 18), but each
// submission at most SubmitTries times. Each receiver gets the outcome of its transition once,
// unless the membership of the engine ends first. The package knows neither runs nor agents.
package commit
