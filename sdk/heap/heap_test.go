package heap

import (
	"context"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

const room = 128 << 20

func TestPercent(t *testing.T) {
	for _, c := range []struct {
		name string
		live uint64
		want int
	}{
		{"nothing yet", 0, 3200},
		{"small", 16 << 20, 800},
		{"as large as the room", room, 100},
		{"larger", 10 * room, 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := percent(room, c.live); got != c.want {
				t.Errorf("%d %%, want %d", got, c.want)
			}
		})
	}
}

// The pace is given back, and what the environment says is obeyed.
func TestPace(t *testing.T) {
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	t.Run("for a while", func(t *testing.T) {
		t.Setenv("GOGC", "")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { Pace(ctx, room); close(done) }()
		await(t, "at the start", func(now int) bool { return now == percent(room, 0) })
		held := make([]byte, 2*room)
		await(t, "with a large heap", func(now int) bool { return now == 100 })
		runtime.KeepAlive(held)
		held = nil
		await(t, "with a small heap again", func(now int) bool { return now > 1000 })
		cancel()
		<-done
		if now := debug.SetGCPercent(100); now != 100 {
			t.Errorf("%d %% afterwards, want 100", now)
		}
	})
	t.Run("not against the environment", func(t *testing.T) {
		t.Setenv("GOGC", "100")
		Pace(t.Context(), room)
		if now := debug.SetGCPercent(100); now != 100 {
			t.Errorf("%d %%, want 100", now)
		}
	})
	t.Run("not against the program", func(t *testing.T) {
		t.Setenv("GOGC", "")
		defer debug.SetGCPercent(debug.SetGCPercent(50))
		Pace(t.Context(), room)
		if now := debug.SetGCPercent(50); now != 50 {
			t.Errorf("%d %%, want 50", now)
		}
	})
}

// The limit follows what lives, is given back, and what was set before is obeyed.
func TestHold(t *testing.T) {
	const limit = 64 << 20
	is := func(want func(now int64) bool) func(int) bool {
		return func(int) bool { return want(debug.SetMemoryLimit(-1)) }
	}
	t.Run("for a while", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { Hold(ctx, limit); close(done) }()
		await(t, "at the start", is(func(now int64) bool { return now == limit }))
		held := make([]byte, 4*limit)
		await(t, "with a large heap", is(func(now int64) bool { return now > 5*limit }))
		runtime.KeepAlive(held)
		held = nil
		await(t, "with a small heap again", is(func(now int64) bool { return now == limit }))
		cancel()
		<-done
		if now := debug.SetMemoryLimit(-1); now != math.MaxInt64 {
			t.Errorf("a limit of %d bytes afterwards, want none", now)
		}
	})
	t.Run("not against the program", func(t *testing.T) {
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(1 << 40))
		Hold(t.Context(), limit)
		if now := debug.SetMemoryLimit(-1); now != 1<<40 {
			t.Errorf("a limit of %d bytes, want that of the program", now)
		}
	})
}

// await waits until the collector's percentage is as wanted. It says what it is after
// ten seconds.
func await(t *testing.T, when string, right func(now int) bool) {
	t.Helper()
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	for late := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		runtime.GC()
		metrics.Read(sample)
		now := int(sample[0].Value.Uint64())
		if right(now) {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("%d %% %s", now, when)
		}
	}
}
