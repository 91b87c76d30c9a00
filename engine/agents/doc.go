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
//
// The files form layers. A file uses only files of its own line and of earlier lines.
//
//	observer, discover, cache, hush, redact   what others see; places of binaries; texts that are hidden
//	errors, callbook, breaker                 errors; calls that a log line may be about; the breaker
//	catalog, lock, calllog                    which binaries there are; what agents log
//	options, parts                            a Pool and what it is made of: agent, instance, life, activeCall
//	room, status                              room for calls and for processes
//	instance                                  a process: start, watch, end
//	agent, activecall                         a process for a call; the way of a call
//	pool                                      what the engine calls
package agents
