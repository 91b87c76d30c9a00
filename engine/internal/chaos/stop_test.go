package chaos

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
)

// T13: kill -9 of an engine takes its agents with it, within two seconds.
func TestKilledEngineLeavesNoAgents(t *testing.T) {
	w := newWorld(t, 1)
	w.Submit(slow(w.URL), 2)
	a := w.StartEngine("a", "")
	w.awaitCalls(1)
	agents := descendants(a.Pid())
	if len(agents) == 0 {
		t.Fatal("the engine has no agents")
	}
	a.Kill()
	time.Sleep(2 * time.Second) // the agents may take 2 s to end
	for _, pid := range agents {
		if !gone(pid) {
			t.Errorf("agent %d has outlived its engine by two seconds", pid)
		}
	}
	w.StartEngine("b", "")
	w.AwaitRest(60 * time.Second)
	w.Judge()
}

// T25: SIGTERM with many calls in flight. Answers in time are recorded, all other runs
// are handed over at once, and nothing is cancelled (S49, E24).
func TestGracefulStop(t *testing.T) {
	t.Parallel()
	began := time.Now()
	n := min(1000, times(24, 1000))
	w := newWorld(t, 1)
	w.Submit(slow(w.URL), n)
	a := w.StartEngine("a", "")
	w.awaitCalls(n / 2)
	code, err := a.Terminate(patience(30 * time.Second))
	if err != nil || code != 0 {
		t.Fatalf("the engine ended with %d, %v\n%s", code, err, a.Output())
	}
	w.Note("a has stopped")
	for _, r := range w.Runs() {
		if head, err := w.head(r.ID); err != nil || head.State == status.RunCancelled || head.State == status.RunCompensating {
			t.Errorf("%s is %v (%v): stopping an engine turned it", r.Name, head.State, err)
		}
	}
	w.StartEngine("b", "")
	w.AwaitRest(5 * time.Minute)
	v := w.Judge()
	if v.Ends[status.RunSucceeded] != n {
		t.Errorf("%s: want %d succeeded", v, n)
	}
	report.count("T25 graceful stop", 1, v, began)
}

// T26: ten engines, each with its Supervisor; some engines die. Every run has one owner,
// and every expiry counts once (S21 S45 S55, I2 I9).
func TestManySupervisors(t *testing.T) {
	t.Parallel()
	began := time.Now()
	w := newWorld(t, 1)
	n := times(12, 200)
	for range n {
		w.Submit(NewFlow(w.Rng, w.URL), 1)
	}
	engines := min(10, times(4, 10))
	var started []*Process
	for i := range engines {
		started = append(started, w.StartEngine(string(rune('a'+i)), ""))
	}
	w.awaitCalls(n / 2)
	for i, p := range started[:engines/2] {
		if i%2 == 0 {
			p.Kill()
			w.Note("%s is dead", p.Name)
		} else {
			w.Freeze(p, 2*lease)
		}
	}
	w.AwaitRest(10 * time.Minute)
	v := w.Judge()
	report.count("T26 many Supervisors", 1, v, began)
}

// A second SIGTERM ends an engine also while a shard of it hangs in a decision,
// which nothing can interrupt; other engines go on with its runs.
func TestSecondSignalEndsAHangingEngine(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.Submit(slow(w.URL), 2)
	a := w.StartEngine("a", "record.before/AttemptOK=pause=1h")
	w.awaitCalls(1)
	const place = "record.before/AttemptOK"
	w.Await("a decision hangs", time.Minute, func() bool {
		passed, err := os.ReadFile(filepath.Join(w.dir, "a.points"))
		return err == nil && strings.Contains(string(passed), place)
	})
	signal := func() {
		if err := a.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	signal()
	w.Await("the engine has seen the first signal", time.Minute, func() bool { return strings.Contains(a.Output(), "stopping") })
	signal()
	if code, err := a.Wait(patience(20 * time.Second)); err != nil || code != 6 {
		t.Fatalf("the engine ended with %d, %v, want 6\n%s", code, err, a.Output())
	}
	w.StartEngine("b", "")
	w.AwaitRest(5 * time.Minute)
	w.Judge()
}
