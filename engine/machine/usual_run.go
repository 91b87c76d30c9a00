package machine

import (
	"github.com/saga-engine/engine/engine/internal/model"
)

// A usualRun is a usual change of the run: see usualKind, which is the same of a
// node.
type usualRun uint8

const (
	runUnusual  usualRun = 0 // all is written
	runAccepted usualRun = 1 // the event starts the run, which says what the event says
	runEnded    usualRun = 2 // it succeeded
)

const (
	acceptFollow = model.RunStateBit | model.RunBegunBit | model.RunIDBit | model.RunNameBit | model.RunKeyBit | model.RunVarsBit | model.RunTriggerBit | model.RunStartedByBit | model.RunStartedBit
	endedFollow  = model.RunStateBit | model.RunLiveBit | model.RunFinishedBit
)

// follows are the fields whose values follow.
func (k usualRun) follows() uint64 {
	switch k {
	case runAccepted:
		return acceptFollow
	case runEnded:
		return endedFollow
	}
	return 0
}

// fields returns the fields that a usual change changes if the event is this one:
// what the event does not say is not changed.
func (k usualRun) fields(event Event) uint64 {
	switch k {
	case runAccepted:
		mask := acceptFollow | model.RunLiveBit | model.RunWorkflowBit | model.RunStepsBit
		ev, _ := event.(Started)
		if ev.Key == "" {
			mask &^= model.RunKeyBit
		}
		if ev.Vars.IsNull() {
			mask &^= model.RunVarsBit
		}
		if ev.Trigger == "" {
			mask &^= model.RunTriggerBit
		}
		if ev.StartedBy == "" {
			mask &^= model.RunStartedByBit
		}
		return mask
	case runEnded:
		return endedFollow | model.RunDoneBit
	}
	return 0
}

// usuallyRun returns which usual change of the run a patch is, in a record of this
// time and event.
func usuallyRun(p *model.RunPatch, at model.Instant, event Event) usualRun {
	r := &p.To
	if p.Mask&endedFollow == endedFollow {
		if endedDiffers(r, at) == 0 {
			return runEnded
		}
		return runUnusual
	}
	ev, is := event.(Started)
	if !is || acceptDiffers(r, at, &ev)&acceptFollow&p.Mask != 0 {
		return runUnusual
	}
	return runAccepted
}

// set makes the fields in mask, all of which follow, what they then are.
func (k usualRun) set(r *model.Run, mask uint64, at model.Instant, event Event) {
	switch k {
	case runAccepted:
		ev, _ := event.(Started)
		setAccepted(r, mask, at, &ev)
	case runEnded:
		setEnded(r, mask, at)
	}
}

// acceptDiffers returns the fields in which a run differs from one that was just
// accepted. It sets bits of those fields only that acceptance determines.
func acceptDiffers(r *model.Run, at model.Instant, ev *Started) uint64 {
	var m uint64
	for _, f := range [...]struct {
		differs bool
		bit     uint64
	}{
		{r.State != RunRunning, model.RunStateBit},
		{!r.Begun, model.RunBegunBit},
		{r.ID != ev.RunID, model.RunIDBit},
		{r.Name != ev.Name, model.RunNameBit},
		{r.Key != ev.Key, model.RunKeyBit},
		{!model.SameHeld(r.Vars, model.Held{V: ev.Vars}), model.RunVarsBit},
		{r.Trigger != ev.Trigger, model.RunTriggerBit},
		{r.StartedBy != ev.StartedBy, model.RunStartedByBit},
		{r.Started != at, model.RunStartedBit},
	} {
		if f.differs {
			m |= f.bit
		}
	}
	return m
}

// setAccepted makes the fields in mask what acceptDiffers compares them with.
func setAccepted(r *model.Run, mask uint64, at model.Instant, ev *Started) {
	if mask&model.RunStateBit != 0 {
		r.State = RunRunning
	}
	if mask&model.RunBegunBit != 0 {
		r.Begun = true
	}
	if mask&model.RunIDBit != 0 {
		r.ID = ev.RunID
	}
	if mask&model.RunNameBit != 0 {
		r.Name = ev.Name
	}
	if mask&model.RunKeyBit != 0 {
		r.Key = ev.Key
	}
	if mask&model.RunVarsBit != 0 {
		r.Vars = model.Held{V: ev.Vars}
	}
	if mask&model.RunTriggerBit != 0 {
		r.Trigger = ev.Trigger
	}
	if mask&model.RunStartedByBit != 0 {
		r.StartedBy = ev.StartedBy
	}
	if mask&model.RunStartedBit != 0 {
		r.Started = at
	}
}

// endedDiffers returns the fields in which a run is not as its success leaves it.
func endedDiffers(r *model.Run, at model.Instant) uint64 {
	var m uint64
	if r.State != RunSucceeded {
		m |= model.RunStateBit
	}
	if r.Live != 0 {
		m |= model.RunLiveBit
	}
	if r.Finished != at {
		m |= model.RunFinishedBit
	}
	return m
}

// setEnded makes the fields in mask what endedDiffers compares them with.
func setEnded(r *model.Run, mask uint64, at model.Instant) {
	if mask&model.RunStateBit != 0 {
		r.State = RunSucceeded
	}
	if mask&model.RunLiveBit != 0 {
		r.Live = 0
	}
	if mask&model.RunFinishedBit != 0 {
		r.Finished = at
	}
}
