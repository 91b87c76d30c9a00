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

// CommandLimit is how many bytes such a command takes before the collector runs more
// often than the room asks for.
const CommandLimit = 40 << 20

// goDefault is the percentage that nobody has chosen.
const goDefault = 100

// Pace makes the garbage collector run less often in a process with a small heap. A
// collection begins after room bytes were allocated, or as many as the heap holds,
// whichever is more. For example, with room = 64 MiB and a heap of 10 MiB it begins at
// 74 MiB; Go's default would begin at 20 MiB.
//
// Pace returns when ctx ends, and leaves the pace as it is then. It does nothing if GOGC
// is set, or if the program has set a percentage. A memory limit is still kept.
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
	afterEach(ctx, func(live uint64) {
		if p := percent(room, live); p != set {
			debug.SetGCPercent(p)
			set = p
		}
	})
}

// Hold has the collector run as often as it needs to keep the process within so many
// bytes. If more than that lives, the limit rises: to a quarter above what lives, and
// half of the given limit more. Pace alone would let a process take twice of what
// lives, and more on a busy machine. Hold returns when ctx ends and leaves the limit as
// it was. It does nothing if GOMEMLIMIT in the environment or the program has set a
// limit before.
func Hold(ctx context.Context, limit int64) {
	before := debug.SetMemoryLimit(-1) // reads it
	if before != math.MaxInt64 {
		return
	}
	defer debug.SetMemoryLimit(before)
	set := limit
	debug.SetMemoryLimit(set)
	afterEach(ctx, func(live uint64) {
		if l := max(limit, int64(live/4*5)+limit/2); l != set {
			debug.SetMemoryLimit(l)
			set = l
		}
	})
}

// afterEach calls do after each collection with what then lives, in bytes, until
// ctx ends.
func afterEach(ctx context.Context, do func(live uint64)) {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	ended := make(chan struct{}, 1)
	watch(ctx, ended)
	for {
		select {
		case <-ended:
			metrics.Read(sample)
			do(sample[0].Value.Uint64())
		case <-ctx.Done():
			return
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
