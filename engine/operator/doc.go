// Package operator sends verbs to runs, such as cancel, retry and settle.
//
// A verb becomes a message in the inbox of its run. The engine that owns the run decides on
// the message; if no engine runs, the message waits. The package needs no running engine
// and owns no run.
package operator
