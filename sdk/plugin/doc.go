// Package plugin is the process protocol between the engine and its agents,
// both halves of it.
//
// An author calls Serve at the end of main. The binary is named
// engine-agent-NAME and is never started by hand, except as
//
//	engine-agent-NAME describe
//
// which prints its schema as JSON. A host reads that with the function
// Describe, starts the process with Open, and talks to it through Process.
//
// # What a host can rely on
//
//   - The process sees only the environment it is given, an empty standard
//     input, and no descriptor of the host's.
//   - The two sides authenticate each other with certificates made for this one
//     start, over a socket in a directory that only this user can enter.
//   - Where a checksum is given, a private copy is checked and the copy is run,
//     so nobody can swap the file between the check and the start.
//   - No message is larger than the payload limit and 64 KiB.
//   - The process leads its own process group and ends with all its
//     descendants: when it ends itself, when it is killed, and within two seconds
//     after the host has died, by whatever means. On Linux that includes those
//     that ignore SIGTERM or have left the group; elsewhere only the group ends,
//     and after the death of the host only what notices it.
//   - On Linux a keeper process stands between the host and each agent: the host's
//     own program, started again, which takes over before main begins.
//   - Standard output and standard error become log lines, limited in length
//     and in rate.
//
// # What a reply means
//
// Process.Invoke returns a Reply for whatever the agent said, and an unknown
// outcome with sdk.CodeAgentLost where the process was lost while the call was
// out. It returns an error and no reply when the context ended or complete-by
// passed: then nothing is known and nothing may be concluded. An error that is
// ErrNotSent says that the agent never saw the call.
//
// go-plugin is a detail of this package: none of its types and none of its
// global state can be reached through it.
package plugin
