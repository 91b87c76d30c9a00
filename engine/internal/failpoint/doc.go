// Package failpoint names the points at which a test can inject a fault: before and after most
// durable changes, and around every call to an agent. In an ordinary build its functions are empty
// and cost nothing. In a build with the tag failpoints, an environment variable says which fault is
// injected at which point:
//
//	ENGINE_FAILPOINTS=store.Commit.before=kill@3;receive.before/do=stop
//
// The fault `kill` ends the process like SIGKILL. `stop` freezes it like SIGSTOP. `pause=DURATION`
// makes the goroutine that reaches the point sleep. `@N` means that the fault is injected when
// the point is reached for the N-th time; without `@N`, it is the first time. ENGINE_FAILPOINTS_LOG
// names a file. When a point is reached for the first time, its name is appended to that file.
//
// points.txt lists all points. `go generate` creates it from the source. A test fails if points.txt
// is out of date, or if a method that changes a store has no point (source.DurableMethods).
package failpoint

//go:generate go run ./cmd/failpoints -write
