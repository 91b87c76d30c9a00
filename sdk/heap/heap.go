// Package heap makes the garbage collector run less often in engines and agents. Both keep
// few objects for long, and make many short-lived ones. With Go's default the collector
// would run after every few megabytes and take a fifth of the process's CPU time.
package heap

import (
	"context"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// Values for the parameter `growth` of Pace: how many bytes a process may allocate between two
// collections. Larger values would save only little more CPU time. With these values, an
// engine under load collects once a second, and an agent three times a second.
const (
	EngineGrowth  = 256 << 20
	AgentGrowth   = 32 << 20
	CommandGrowth = 16 << 20 // for a command that works on no runs
)

// CommandLimit is the parameter `limit` of Hold, in bytes, for a command that works on no runs.
const CommandLimit = 40 << 20

// goDefault is Go's own default for GOGC, in percent.
const goDefault = 100

// Pace makes the garbage collector run less often in a process with a small heap. A collection
// begins when the process has allocated a certain number of bytes since the previous
// collection. This number is the parameter `growth` or the size of the live objects, whichever is
// larger. For example, if `growth` is 64 MiB and the live objects have 10 MiB, a collection begins
// at 74 MiB. With Go's default it would begin at 20 MiB.
//
// Pace returns when ctx ends, and restores the former setting. It does nothing if the environment
// sets GOGC, or if the program has set another percentage than Go's default. A memory limit still
// applies.
func Pace(ctx context.Context, growth int) {
	if os.Getenv("GOGC") != "" {
		return
	}
	set := percent(growth, 0)
	before := debug.SetGCPercent(set)
	defer func() { debug.SetGCPercent(before) }()
	if before != goDefault {
		return
	}
	afterEach(ctx, func(live uint64) {
		if p := percent(growth, live); p != set {
			debug.SetGCPercent(p)
			set = p
		}
	})
}

// Hold makes the collector run as often as needed to keep the memory of the process below the
// parameter `limit`, in bytes. After each collection, Hold computes 1.25 times the size of the live
// objects, plus half of the parameter `limit`. While this sum is larger than the parameter `limit`,
// Hold uses the sum as the limit. With Pace alone, the memory of a process could be twice the size
// of its live objects, and even more on a busy machine. Hold returns when ctx ends, and restores
// the former limit. If the environment or the program has already set a memory limit, Hold does
// nothing.
func Hold(ctx context.Context, limit int64) {
	before := debug.SetMemoryLimit(-1) // a negative argument only reads the limit
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

// afterEach calls the function `do` after each garbage collection, until ctx ends. If a collection
// ends while `do` runs or is about to run, afterEach may call `do` once for several collections.
// The argument of `do` is the size of the live objects, in bytes.
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

// watch sends a value to the channel `ended` after each garbage collection, until ctx ends. It
// does not wait if the channel is full.
func watch(ctx context.Context, ended chan<- struct{}) {
	type garbage struct{ _ [64]byte } // large enough that Go does not put it into one block with other objects
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

// least is a size in bytes. If the live objects are smaller than that, the function `percent`
// computes with this size, because otherwise the percentage would be extremely large.
const least = 4 << 20

// percent returns a value for GOGC. With this value, the next collection begins after the program
// has allocated as many bytes as the parameter `growth` says. The result is at least Go's default.
// The parameter `live` is the size of the live objects, in bytes.
func percent(growth int, live uint64) int {
	p := float64(growth) / float64(max(live, least)) * 100
	// The percentage is rounded, because small changes are not worth a new setting.
	return int(math.Round(max(goDefault, p)/10)) * 10
}
