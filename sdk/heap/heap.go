// Package heap paces the garbage collector of an engine's or an agent's process.
// Both have few objects that live long and make many that do not: with Go's
// default the collector would run for every few megabytes of them, for a fifth of
// the process's CPU.
package heap

import (
	"context"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// How many bytes of room processes take. Beyond it little is gained: under load an
// engine then collects once a second, and an agent three times.
const (
	EngineRoom  = 256 << 20
	AgentRoom   = 32 << 20
	CommandRoom = 16 << 20 // of a command that works on no runs
)

// goDefault is the percentage that nobody has chosen.
const goDefault = 100

// Pace has the collector run only when room, in bytes, was allocated, or as many as
// the heap holds, whichever is more: room is what the process may take beyond
// what it holds, however small that is. It returns when ctx ends and leaves the
// pace as it was. GOGC in the environment, or a percentage that the program has
// set before, is obeyed instead. A memory limit holds as ever.
func Pace(ctx context.Context, room int) {
	if os.Getenv("GOGC") != "" {
		return
	}
	set := percent(room, 0)
	before := debug.SetGCPercent(set)
	defer func() { debug.SetGCPercent(before) }()
	if before != goDefault {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	ended := make(chan struct{}, 1)
	watch(ctx, ended)
	for {
		select {
		case <-ended:
		case <-ctx.Done():
			return
		}
		metrics.Read(live)
		if p := percent(room, live[0].Value.Uint64()); p != set {
			debug.SetGCPercent(p)
			set = p
		}
	}
}

// watch hints after each collection, until ctx ends.
func watch(ctx context.Context, ended chan<- struct{}) {
	type garbage struct{ _ [64]byte } // large enough to be an object of its own
	runtime.AddCleanup(new(garbage), func(struct{}) {
		select {
		case ended <- struct{}{}:
		default:
		}
		if ctx.Err() == nil {
			watch(ctx, ended)
		}
	}, struct{}{})
}

// least is what the heap is taken to hold at least: less would make the
// percentage absurd.
const least = 4 << 20

// percent returns the collector's percentage for a heap that holds so many bytes.
func percent(room int, live uint64) int {
	p := float64(room) / float64(max(live, least)) * 100
	return int(math.Round(max(goDefault, p)/10)) * 10 // small changes are not worth setting
}
