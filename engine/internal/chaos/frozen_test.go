package chaos

import (
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"
)

// places where a frozen engine is at its worst: about to say something, about
// to write, about to renew.
var freezing = []string{
	"store.Commit.before", "store.Commit.after", "store.Tick.before", "store.Tick.after", "send.before/do", "receive.before/do",
	"receive.after/do", "record.before/AttemptOK", "record.after/AttemptOK", "record.before/TimePassed", "store.Pass.after", "send.before/undo",
}

// T8: other engines take the runs of an engine over that is frozen for longer than its
// lease. When it continues, nothing that it writes lands, and no effect happens twice (S21
// S28 S29, I2 I3 I4).
func TestFrozenEngine(t *testing.T) {
	t.Parallel()
	began := time.Now()
	var mu sync.Mutex
	var sum Verdict
	rounds := times(len(freezing)/2, 500)
	t.Run("rounds", func(t *testing.T) {
		for i := range rounds {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, uint64(i))
				point := freezing[i%len(freezing)]
				w.crowd()
				w.signal("before")
				a := w.StartEngine("a", point+"=stop@2")
				w.Await("the engine to freeze at "+point, 20*time.Second, func() bool { return stopped(a.Pid()) })
				w.Note("a is frozen at %s", point)
				w.signal("frozen")
				w.StartEngine("b", "")
				time.Sleep(time.Duration(float64(lease) * []float64{0.5, 1, 2, float64(times(4, 10))}[(i+i/len(freezing))%4])) // freezing for this long is the fault
				if err := a.Signal(syscall.SIGCONT); err != nil {
					t.Fatal(err)
				}
				w.Note("a thaws")
				w.signal("before") // again: it counts once
				w.AwaitRest(90 * time.Second)
				if a.Ended() {
					t.Errorf("the engine that came back ended:\n%s", a.Output())
				}
				v := w.Judge()
				mu.Lock()
				defer mu.Unlock()
				sum.add(v)
			})
		}
	})
	if sum.Signals == 0 {
		t.Error("void: no signal has ended a wait")
	}
	report.count("T8 frozen engine", rounds, sum, began)
}

// T9: a Supervisor is frozen between finding runs and acting on them. That delays the
// others by one period. Each expiry still counts once (S45 S46, I9).
func TestFrozenSupervisor(t *testing.T) {
	t.Parallel()
	began := time.Now()
	var mu sync.Mutex
	var sum Verdict
	rounds := times(3, 100)
	t.Run("rounds", func(t *testing.T) {
		for i := range rounds {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, uint64(i))
				w.Submit(everything(w.URL), 4)
				x := w.StartEngine("x", "")
				w.awaitCalls(2)
				// a holds what it found for three leases before it goes on.
				point := []string{"store.Tick.after", "store.Pass.after", "store.Fence.before"}[i%3]
				a := w.StartEngine("a", point+"=pause=3s@3")
				w.StartEngine("b", "")
				w.StartEngine("c", "")
				x.Kill()
				w.Note("x is dead")
				w.AwaitRest(90 * time.Second)
				if a.Ended() {
					t.Errorf("the paused engine ended:\n%s", a.Output())
				}
				v := w.Judge()
				mu.Lock()
				defer mu.Unlock()
				sum.add(v)
			})
		}
	})
	report.count("T9 frozen Supervisor", rounds, sum, began)
}
