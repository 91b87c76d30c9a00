// Package failpoint names the places where a fault may strike: before and after
// every durable change, and around every call to an agent. In an ordinary build
// its functions are empty and cost nothing. Built with the tag failpoints, the
// environment decides what happens where:
//
//	ENGINE_FAILPOINTS=store.Commit.before=kill@3;receive.before/do=stop
//
// kill ends the process as SIGKILL does. stop freezes the process as SIGSTOP does.
// pause=DURATION lets the goroutine that reached the place sleep. @N means the N-th time
// that the place is passed; without it the first. ENGINE_FAILPOINTS_LOG names a
// file to which the name of every place is appended when it is first passed.
//
// points.txt lists all places; `go generate` writes it anew from the source,
// and a test fails if it is out of date or if a durable change has no place.
package failpoint

//go:generate go run ./cmd/failpoints -write
