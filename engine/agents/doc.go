// Package agents finds agent binaries, runs them as processes, and calls them
// for the engine.
//
// A Catalog knows which binaries there are, and chooses one by name and
// version; a Pool runs those that are called. The Pool is the engine's Invoker
// and its Capacity: everything between "this call" and "a process" is its
// affair alone:
//
//	         AgentSpec.Key
//	Invoke ─▶ agent ─▶ limit ─▶ breaker ─▶ instance ─▶ plugin.Process
//	                     │         │           │
//	                     ▼         ▼           ▼
//	                   full   circuit open   not started       → *invoke.Deferred: nothing was sent
//
// A call that was sent ends in a reply or in silence, and nothing here turns
// one into the other. A process that dies takes its calls with it: their
// outcome is unknown, with sdk.CodeAgentLost, and that is all that a crash
// means (S30). The next call starts a new process, after a pause that grows
// while starts fail.
//
// Processes are shared by calls whose specs have equal keys: the same agent
// block, binary and configuration.
package agents
