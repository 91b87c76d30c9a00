package heap

import (
	"context"
	"runtime/debug"
	"testing"
	"testing/synctest"
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
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { Pace(ctx, room); close(done) }()
			synctest.Wait()
			if now := debug.SetGCPercent(50); now != percent(room, 0) {
				t.Errorf("%d %% at the start, want %d", now, percent(room, 0))
			}
			cancel()
			<-done
			if now := debug.SetGCPercent(100); now != 100 {
				t.Errorf("%d %% afterwards, want 100", now)
			}
		})
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
