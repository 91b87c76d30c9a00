package storekit

import (
	"reflect"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// S9 S10 S63: what is stored of a step comes back; counters beyond their field
// show its largest value.
func TestStepRowsRoundTrip(t *testing.T) {
	by := time.Date(2026, 11, 21, 9, 0, 0, 123456000, time.UTC)
	rows := []store.StepRow{
		{Node: 0, State: status.StepPending},
		{Node: 1 << 30, State: status.StepRunning, Failures: 255, Attempt: 65535, CompleteBy: by},
		{Node: 7, State: status.StepUndoFailed, Failures: 3, Attempt: 4, CompleteBy: time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)},
	}
	b := AppendStepRows([]byte("x"), rows)
	if len(b) != 1+len(rows)*StepRowSize || b[0] != 'x' {
		t.Fatalf("%d bytes, want 1 and %d for each row", len(b), StepRowSize)
	}
	got, err := DecodeStepRows(b[1:])
	if err != nil || !reflect.DeepEqual(got, rows) {
		t.Errorf("rows = %+v, err = %v, want %+v", got, err, rows)
	}
	got, err = DecodeStepRows(AppendStepRows(nil, []store.StepRow{{Failures: 1000, Attempt: 1 << 20}, {Failures: -1, Attempt: -1}}))
	if want := []store.StepRow{{Failures: 255, Attempt: 65535}, {}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("rows = %+v, err = %v, want %+v", got, err, want)
	}
	if _, err := DecodeStepRows(make([]byte, 17)); err == nil {
		t.Error("17 bytes were decoded")
	}
}

// S14: every node shows, pending until something is known of it.
func TestFoldSteps(t *testing.T) {
	by := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	got := FoldSteps(
		[]store.NodeName{{Node: 2, Step: 1, Name: `b["x"]`}, {Node: 0, Name: "a"}, {Node: 1, Step: 1, Name: "b"}}, 9,
		[]store.StepRow{{Node: 0, State: status.StepRunning, CompleteBy: by}, {Node: 2, State: status.StepRunning, CompleteBy: by}, {Node: 0, State: status.StepFailed, Failures: 1}, {Node: 55}})
	want := []store.StepView{
		{Name: "a", StepRow: store.StepRow{Node: 0, State: status.StepFailed, Failures: 1}},
		{Name: "b", StepRow: store.StepRow{Node: 1, State: status.StepPending}},
		{Name: `b["x"]`, LockedBy: 9, StepRow: store.StepRow{Node: 2, State: status.StepRunning, CompleteBy: by}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("steps = %+v, want %+v", got, want)
	}
}
