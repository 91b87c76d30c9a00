package journal

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// A family is a store with a run, the child runs of each run, and their messages.
type family struct {
	store.Store
	children map[status.RunID][]store.RunRow
	messages map[status.RunID]int
	asked    int
}

func (f *family) Runs(_ context.Context, filter store.RunFilter) ([]store.RunRow, error) {
	f.asked++
	return f.children[filter.Parent], nil
}

func (f *family) Messages(_ context.Context, run status.RunID, _ store.MessageID, _ int) ([]store.Message, error) {
	return make([]store.Message, f.messages[run]), nil
}

func child(run status.RunID, state status.RunState) store.RunRow {
	return store.RunRow{Head: store.Head{Run: run, State: state}}
}

// A child run counts if two questions in a row, a second apart, find it. A child run that has ended, or
// that has a message, does not count, and nothing below an ended one.
func TestChildThatNeedsAPerson(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &family{messages: map[status.RunID]int{}, children: map[status.RunID][]store.RunRow{
			1: {child(2, status.RunFailed), child(3, status.RunRunning)},
			2: {child(4, status.RunParked)},
			3: {child(5, status.RunCompensationFailed)},
		}}
		var w childWatch
		after := func(pause time.Duration, want status.RunID) {
			t.Helper()
			time.Sleep(pause)
			got, ok := w.ask(t.Context(), f, 1)
			if ok != (want != 0) || ok && got.Run != want {
				t.Errorf("found %d, %t; want %d", got.Run, ok, want)
			}
		}
		after(0, 0)
		if f.asked != 0 {
			t.Error("asked at once")
		}
		after(time.Second, 0) // found for the first time
		asked := f.asked
		after(time.Second/2, 0)
		if f.asked != asked {
			t.Error("asked twice in a second")
		}
		after(time.Second/2, 5)
		f.messages[5] = 1
		after(time.Second, 0)
		f.messages[5] = 0
		after(time.Second, 0)
		f.children[3][0].State = status.RunParked
		after(time.Second, 0)
		after(time.Second, 5)
		f.children[3][0].State = status.RunCompensating
		after(time.Second, 0)
	})
}
