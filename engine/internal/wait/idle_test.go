package wait

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// Idle ends after a pause, but not while it is quiet; a hint ends it at once.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, hints := time.Now(), make(chan struct{}, 1)
		if hinted, err := Idle(t.Context(), time.Second, hints, nil); hinted || err != nil || time.Since(began) != time.Second {
			t.Errorf("hinted %t, %v, after %s", hinted, err, time.Since(began))
		}
		began = time.Now()
		quiet := func() bool { return time.Since(began) < 3500*time.Millisecond }
		if hinted, err := Idle(t.Context(), time.Second, hints, quiet); hinted || err != nil || time.Since(began) != 4*time.Second {
			t.Errorf("hinted %t, %v, after %s", hinted, err, time.Since(began))
		}
		time.AfterFunc(time.Minute, func() { Wake(hints) })
		began = time.Now()
		if hinted, err := Idle(t.Context(), time.Second, hints, func() bool { return true }); !hinted || err != nil || time.Since(began) != time.Minute {
			t.Errorf("hinted %t, %v, after %s", hinted, err, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := Idle(ctx, time.Minute, hints, nil); err == nil {
			t.Error("the end of the context does not end it")
		}
	})
}
