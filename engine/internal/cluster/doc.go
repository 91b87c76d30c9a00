// Package cluster is the part of an engine that works together with the other engines of
// its store.
//
// In: the store's answers to ticks; a tick renews the lease. Out: takeovers, claims and
// times that have passed, for the owner package. A Membership begins when an engine joins
// the store. It ends when the engine leaves or is declared dead. Its taker takes runs over.
// Its Supervisor renews the lease, notifies own runs that time has passed, and looks for
// runs that no engine works on (S36 to S47). The package calls no agent.
package cluster
