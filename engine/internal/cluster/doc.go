// Package cluster is the part of an engine that works together with the other engines of
// its store.
//
// A Membership begins when an engine joins the store. It ends when the engine leaves or is
// declared dead. The Supervisor of the Membership sends ticks to the store. A tick renews
// the lease, and returns the work that waits in the store. The Supervisor notifies
// the engine's runs that are due. The scanner looks for runs that no engine works on, and
// the taker takes these runs over (S36 to S47). The package passes the takeovers and the
// events to the owner package. It calls no agent.
package cluster
