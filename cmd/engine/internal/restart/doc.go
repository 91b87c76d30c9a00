// Package restart is the work of `engine restart`: it shows what a new run takes over from an
// ended run, and records the new run. The package starts no engine and calls no agent.
package restart
