package store

import (
	"cmp"
	"fmt"
	"unicode/utf8"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store/naming"
)

// MaxRowBytes is the largest size of Transition.Data, in bytes. Every store refuses larger
// rows. This is the last check: sizes are also limited where the bytes enter the engine.
const MaxRowBytes = 64 << 20

// Validate returns an error if a store must refuse the transition because of its contents.
// For example, it refuses an unknown state, the first row of a run without a state, and a
// running step without a complete-by (S10). Every store calls Validate, because the
// constraints of a database do not find all these faults.
func (t *Transition) Validate() error {
	switch {
	case t.Run <= 0:
		return fmt.Errorf("engine: run id %d is not positive", t.Run)
	case t.Seq < 0:
		return fmt.Errorf("engine: run %d: seq %d is negative", t.Run, t.Seq)
	case t.At.IsZero():
		return fmt.Errorf("engine: run %d seq %d: time is missing", t.Run, t.Seq)
	case t.State != status.RunInvalid && !validRunState(t.State):
		return fmt.Errorf("engine: run %d seq %d: no such run state: %v", t.Run, t.Seq, t.State)
	case t.Owner != nil && *t.Owner < 0:
		return fmt.Errorf("engine: run %d seq %d: owner %d is negative", t.Run, t.Seq, *t.Owner)
	case t.Seq == 0 && (t.Workflow <= 0 || t.State == status.RunInvalid || t.Owner == nil || t.NextCheck.IsZero()):
		return fmt.Errorf("engine: run %d: the first row must name workflow, state, owner and next check", t.Run)
	case len(t.Data) == 0:
		return fmt.Errorf("engine: run %d seq %d: row is empty", t.Run, t.Seq)
	case len(t.Data) > MaxRowBytes:
		return fmt.Errorf("engine: run %d seq %d: row of %d bytes exceeds %d", t.Run, t.Seq, len(t.Data), MaxRowBytes)
	}
	if t.Room != nil || t.Admit {
		if err := t.validateRoom(); err != nil {
			return err
		}
	}
	if err := cmp.Or(t.validateSubmission(), t.validateMove()); err != nil {
		return err
	}
	for _, s := range t.Steps {
		if s.State < status.StepPending || s.State > status.StepUndoFailed {
			return fmt.Errorf("engine: run %d seq %d: step %d: no such step state: %v", t.Run, t.Seq, s.Node, s.State)
		}
		if s.State == status.StepRunning && s.CompleteBy.IsZero() {
			return fmt.Errorf("engine: run %d seq %d: step %d is running without a complete-by", t.Run, t.Seq, s.Node)
		}
	}
	return nil
}

// validateSubmission returns an error if one of the fields Checks and Replaces is not valid. Only a
// submission may have them. A submission with Replaces needs a unique key. It must not have Admit,
// because its run waits until the replaced run has ended.
func (t *Transition) validateSubmission() error {
	m, n := t.Replaces, t.Names
	switch {
	case len(t.Checks) > 0 && n == nil:
		return fmt.Errorf("engine: run %d seq %d: only a submission may have checks", t.Run, t.Seq)
	case m == nil:
		return nil
	case n == nil || n.Key == "" || n.From != 0 || t.Admit:
		return fmt.Errorf("engine: run %d seq %d: only a submission with a unique key may replace another run, and it waits", t.Run, t.Seq)
	case len(m.Data) == 0 || m.Run != 0:
		return fmt.Errorf("engine: run %d seq %d: the message to the replaced runs is empty or names a run", t.Run, t.Seq)
	}
	own := *m
	own.Run = t.Run
	return own.Validate()
}

// validateMove returns an error if the field Moved is not valid. The first row of a run cannot move
// the run.
func (t *Transition) validateMove() error {
	if t.Moved < 0 || t.Moved > 0 && t.Seq == 0 {
		return fmt.Errorf("engine: run %d seq %d: the row must not move the run to workflow %d", t.Run, t.Seq, t.Moved)
	}
	return nil
}

// validateRoom returns an error if the fields Room (the limit of the run) and Admit are not valid.
// Only a submission may have a Room. If a submission has Admit, it must also have a Room.
func (t *Transition) validateRoom() error {
	switch {
	case t.Room != nil && (t.Seq != 0 || t.Names == nil):
		return fmt.Errorf("engine: run %d seq %d: only a submission may set the limit of a run", t.Run, t.Seq)
	case t.Room != nil:
		return t.Room.Validate()
	case t.Seq == 0:
		return fmt.Errorf("engine: run %d is admitted, but has no limit", t.Run)
	}
	return nil
}

func validRunState(s status.RunState) bool {
	return s >= status.RunQueued && s <= status.RunCompensationFailed ||
		s >= status.RunSucceeded && s <= status.RunCancelled
}

// Validate returns an error if a store must refuse the message. The message must have a run
// and a kind, and its Dedup and Data must not be too long. Dedup must be valid text.
func (m Message) Validate() error {
	switch {
	case m.Run <= 0:
		return fmt.Errorf("engine: message for run id %d, which is not positive", m.Run)
	case m.Kind <= 0:
		return fmt.Errorf("engine: message for run %d: no such kind: %d", m.Run, m.Kind)
	case m.Most < 0:
		return fmt.Errorf("engine: message for run %d: the bound of the inbox is negative: %d", m.Run, m.Most)
	case m.MostBytes < 0:
		return fmt.Errorf("engine: message for run %d: the bound of the inbox is negative: %d bytes", m.Run, m.MostBytes)
	case utf8.RuneCountInString(m.Dedup) > naming.MaxDedupLen:
		return fmt.Errorf("engine: message for run %d: dedup of %d characters exceeds %d", m.Run, utf8.RuneCountInString(m.Dedup), naming.MaxDedupLen)
	case m.Dedup != naming.CleanText(m.Dedup):
		return fmt.Errorf("engine: message for run %d: dedup %q holds bytes that are not text", m.Run, m.Dedup)
	case len(m.Data) > MaxRowBytes:
		return fmt.Errorf("engine: message of %d bytes for run %d exceeds %d", len(m.Data), m.Run, MaxRowBytes)
	}
	return nil
}

// Alert returns the alert that every store writes together with a late reply. In the texts of the
// alert, Alert replaces bytes that a store cannot keep as text (naming.CleanText).
func (l LateReply) Alert() Alert {
	return Alert{
		Kind: "late_reply", Step: naming.CleanText(l.Step), Code: naming.CleanText(l.Code),
		Message: "an answer came too late to count: " + naming.CleanText(l.Outcome),
	}
}
