// Package agents finds agent binaries, runs them as processes, and calls them for the engine.
//
// A Catalog finds the installed binaries and chooses one by name and version. A Pool runs the
// chosen binaries and calls them. The Pool implements invoke.Invoker and invoke.Capacity for
// the engine. A call passes through these parts of the Pool:
//
//	         AgentSpec.Key
//	Invoke ─▶ agent ─▶ limit ─▶ breaker ─▶ instance ─▶ plugin.Process
//	                     │         │           │
//	                     ▼         ▼           ▼
//	                   full   circuit open   not started       → *invoke.Deferred: nothing was sent
//
// A call that was sent ends with the agent's reply, or with an error if no answer came. If a
// process ends, for example by a crash, its calls end with an unknown outcome and sdk.CodeAgentLost
// (S30). The next call starts a new process. If the process failed to start, or ran for less than
// Options.Stable, there is a pause first. The pause grows with each such process in a row.
//
// Calls share processes if their AgentSpecs have equal keys. Such calls have the same agent
// block, binary and configuration.
//
// The source files form layers. A file uses only files in its own layer or in the layers above.
//
//	observer, discover, cache, recentsecrets, redact   events for observers; search of binaries; secrets in logs
//	errors, callbook, breaker                 errors; calls that a log line may be about; the breaker
//	catalog, lock, source, calllog            choice of binaries; lines that agents log
//	options, types                            a Pool and its parts: agent, instance, life, activeCall
//	crowd, status                             whether calls and processes may start; the state of a Pool
//	instance                                  a process: start, watch, end
//	agent, activecall                         choice of a process for a call; one call
//	pool                                      methods that the engine calls
package agents
