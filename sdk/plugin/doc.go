// Package plugin implements both sides of the protocol between the engine and its agent
// processes.
//
// An author calls Serve at the end of main. The binary is named engine-agent-NAME. People
// never start it by hand, except as
//
//	engine-agent-NAME describe
//
// This command prints the agent's schema as JSON. A host reads the schema with the function
// Describe, starts the process with Open, and calls the actions with the methods of Process.
//
// # What a host can rely on
//
//   - The process gets only the environment that the host passes to Open and the variables of
//     the handshake. It gets an empty standard input, and none of the host's open files.
//   - The two sides authenticate each other with certificates that are made for this start
//     only. They use a socket in a directory that only this user can enter.
//   - If a checksum is given, the host makes a private copy, checks it and runs the copy. So
//     no other user can replace the file between the check and the start.
//   - No message is larger than the payload limit plus 64 KiB.
//   - The process leads its own process group. When the process ends or is killed, its
//     descendants end, too. If the host dies in any way, all of them end within two seconds.
//     On Linux this includes descendants that ignore SIGTERM or have left the group. On other
//     systems only the process group ends. If the host dies there, a process ends only if it
//     notices that the host has died.
//   - On Linux there is a keeper process between the host and each agent. It is the host's own
//     program, started again. The code of the keeper runs before main would begin.
//   - Standard output and standard error become log lines, with a limited length and rate.
//
// # What a reply means
//
// Process.Invoke returns a Reply for every answer that arrives before complete-by. If the process
// ended during the call, Invoke returns an unknown outcome with sdk.CodeAgentLost. If the context
// ended or complete-by passed, and no answer came in time, Invoke returns an error and no reply:
// then the outcome is not known. But if the error wraps ErrNotSent, the agent has never received
// the call.
//
// This package uses go-plugin internally. It exports none of go-plugin's types or global
// state.
package plugin
