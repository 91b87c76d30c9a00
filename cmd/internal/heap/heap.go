// Package heap paces the garbage collector of an engine's process. An engine has
// few objects that live long and makes many that do not: with Go's default the
// collector would run for every few megabytes of them.
package heap

import (
	"context"
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// Room is how many bytes may be allocated between two collections, however
// small the heap is: what a process may take beyond what it holds.
const Room = 128 << 20

// every is the pause between two looks at the heap.
const every = time.Second

// Pace has the collector run only when Room bytes were allocated, or as many as
// the heap holds, whichever is more. It returns when ctx ends and leaves the pace
// as it was. GOGC in the environment is obeyed instead.
func Pace(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	before := debug.SetGCPercent(percent(0))
	defer debug.SetGCPercent(before)
	tick := time.NewTicker(every)
	defer tick.Stop()
	set := percent(0)
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		metrics.Read(live)
		if p := percent(live[0].Value.Uint64()); p != set {
			debug.SetGCPercent(p)
			set = p
		}
	}
}

// least is what the heap is taken to hold at least: less would make the
// percentage absurd.
const least = 4 << 20

// percent returns the collector's percentage for a heap that holds so many bytes.
func percent(live uint64) int {
	p := float64(Room) / float64(max(live, least)) * 100
	return int(math.Round(max(100, p)/10)) * 10 // small changes are not worth setting
}
