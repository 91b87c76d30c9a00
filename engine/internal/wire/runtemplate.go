package wire

import (
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
)

// A runTemplate is a short form for a frequent change of the run. It works like a `template`, which
// is for changes of nodes.
type runTemplate uint8

const (
	noRunTemplate runTemplate = 0 // no template: all changed fields are written
	runAccepted   runTemplate = 1 // the run was accepted; most of the values are in the event Started
	runEnded      runTemplate = 2 // the run ended with success; other ends have no template
)

const (
	acceptFollow = model.RunStateBit | model.RunBegunBit | model.RunIDBit | model.RunNameBit | model.RunKeyBit | model.RunVarsBit | model.RunTriggerBit | model.RunStartedByBit | model.RunStartedBit
	endedFollow  = model.RunStateBit | model.RunLiveBit | model.RunFinishedBit
)

// follows returns the set of fields whose values a reader can compute from the template and the
// event.
func (k runTemplate) follows() uint64 {
	switch k {
	case runAccepted:
		return acceptFollow
	case runEnded:
		return endedFollow
	}
	return 0
}

// fields returns the set of fields that usually change with this template and this event. A
// field that is empty in the event is not in the set.
func (k runTemplate) fields(event machine.Event) uint64 {
	switch k {
	case runAccepted:
		mask := acceptFollow | model.RunLiveBit | model.RunWorkflowBit | model.RunStepsBit
		ev, _ := event.(machine.Started)
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

// runTemplateOf returns the template that fits a patch of the run in a record with the given
// time and event; noRunTemplate = none fits.
func runTemplateOf(p *model.RunPatch, at model.Instant, event machine.Event) runTemplate {
	r := &p.To
	if p.Mask&endedFollow == endedFollow {
		if endedDiffers(r, at) == 0 {
			return runEnded
		}
		return noRunTemplate
	}
	ev, is := event.(machine.Started)
	if !is || acceptDiffers(r, at, &ev)&acceptFollow&p.Mask != 0 {
		return noRunTemplate
	}
	return runAccepted
}

// set computes the fields in `mask` from the template, and sets them in r. Each of these fields
// must also be in the set that k.follows() returns.
func (k runTemplate) set(r *model.Run, mask uint64, at model.Instant, event machine.Event) {
	switch k {
	case runAccepted:
		ev, _ := event.(machine.Started)
		setAccepted(r, mask, at, &ev)
	case runEnded:
		setEnded(r, mask, at)
	}
}

// acceptDiffers returns the set of fields in which a run differs from a run that was just
// accepted. It compares only the fields in acceptFollow.
func acceptDiffers(r *model.Run, at model.Instant, ev *machine.Started) uint64 {
	var m uint64
	for _, f := range [...]struct {
		differs bool
		bit     uint64
	}{
		{r.State != status.RunRunning, model.RunStateBit},
		{!r.Begun, model.RunBegunBit},
		{r.ID != ev.RunID, model.RunIDBit},
		{r.Name != ev.Name, model.RunNameBit},
		{r.Key != ev.Key, model.RunKeyBit},
		{!model.SameStored(r.Vars, model.StoredValue{V: ev.Vars}), model.RunVarsBit},
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

// setAccepted sets the fields in `mask` to the values of a run that was just accepted.
// acceptDiffers compares a run with the same values.
func setAccepted(r *model.Run, mask uint64, at model.Instant, ev *machine.Started) {
	if mask&model.RunStateBit != 0 {
		r.State = status.RunRunning
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
		r.Vars = model.StoredValue{V: ev.Vars}
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

// endedDiffers returns the set of fields in which a run differs from a run that has just
// succeeded.
func endedDiffers(r *model.Run, at model.Instant) uint64 {
	var m uint64
	if r.State != status.RunSucceeded {
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

// setEnded sets the fields in `mask` to the values of a run that has just succeeded.
// endedDiffers compares a run with the same values.
func setEnded(r *model.Run, mask uint64, at model.Instant) {
	if mask&model.RunStateBit != 0 {
		r.State = status.RunSucceeded
	}
	if mask&model.RunLiveBit != 0 {
		r.Live = 0
	}
	if mask&model.RunFinishedBit != 0 {
		r.Finished = at
	}
}
