package machine

// A usualRun is a usual change of the run: see usualKind, which is the same of a
// node.
type usualRun uint8

const (
	runUnusual  usualRun = 0 // all is written
	runAccepted usualRun = 1 // the event starts the run, which says what the event says
	runEnded    usualRun = 2 // it succeeded
)

const (
	acceptFollow = runStateBit | runBegunBit | runIDBit | runNameBit | runKeyBit | runVarsBit | runTriggerBit | runStartedByBit | runStartedBit
	endedFollow  = runStateBit | runLiveBit | runFinishedBit
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
		mask := acceptFollow | runLiveBit | runWorkflowBit | runStepsBit
		ev, _ := event.(Started)
		if ev.Key == "" {
			mask &^= runKeyBit
		}
		if ev.Vars.IsNull() {
			mask &^= runVarsBit
		}
		if ev.Trigger == "" {
			mask &^= runTriggerBit
		}
		if ev.StartedBy == "" {
			mask &^= runStartedByBit
		}
		return mask
	case runEnded:
		return endedFollow | runDoneBit
	}
	return 0
}

// usuallyRun returns which usual change of the run a patch is, in a record of this
// time and event.
func usuallyRun(p *runPatch, at instant, event Event) usualRun {
	r := &p.to
	if p.mask&endedFollow == endedFollow {
		if endedDiffers(r, at) == 0 {
			return runEnded
		}
		return runUnusual
	}
	ev, is := event.(Started)
	if !is || acceptDiffers(r, at, &ev)&acceptFollow&p.mask != 0 {
		return runUnusual
	}
	return runAccepted
}

// set makes the fields in mask, all of which follow, what they then are.
func (k usualRun) set(r *run, mask uint64, at instant, event Event) {
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
func acceptDiffers(r *run, at instant, ev *Started) uint64 {
	var m uint64
	for _, f := range [...]struct {
		differs bool
		bit     uint64
	}{
		{r.state != RunRunning, runStateBit},
		{!r.begun, runBegunBit},
		{r.id != ev.RunID, runIDBit},
		{r.name != ev.Name, runNameBit},
		{r.key != ev.Key, runKeyBit},
		{!sameHeld(r.vars, held{v: ev.Vars}), runVarsBit},
		{r.trigger != ev.Trigger, runTriggerBit},
		{r.startedBy != ev.StartedBy, runStartedByBit},
		{r.started != at, runStartedBit},
	} {
		if f.differs {
			m |= f.bit
		}
	}
	return m
}

// setAccepted makes the fields in mask what acceptDiffers compares them with.
func setAccepted(r *run, mask uint64, at instant, ev *Started) {
	if mask&runStateBit != 0 {
		r.state = RunRunning
	}
	if mask&runBegunBit != 0 {
		r.begun = true
	}
	if mask&runIDBit != 0 {
		r.id = ev.RunID
	}
	if mask&runNameBit != 0 {
		r.name = ev.Name
	}
	if mask&runKeyBit != 0 {
		r.key = ev.Key
	}
	if mask&runVarsBit != 0 {
		r.vars = held{v: ev.Vars}
	}
	if mask&runTriggerBit != 0 {
		r.trigger = ev.Trigger
	}
	if mask&runStartedByBit != 0 {
		r.startedBy = ev.StartedBy
	}
	if mask&runStartedBit != 0 {
		r.started = at
	}
}

// endedDiffers returns the fields in which a run is not as its success leaves it.
func endedDiffers(r *run, at instant) uint64 {
	var m uint64
	if r.state != RunSucceeded {
		m |= runStateBit
	}
	if r.live != 0 {
		m |= runLiveBit
	}
	if r.finished != at {
		m |= runFinishedBit
	}
	return m
}

// setEnded makes the fields in mask what endedDiffers compares them with.
func setEnded(r *run, mask uint64, at instant) {
	if mask&runStateBit != 0 {
		r.state = RunSucceeded
	}
	if mask&runLiveBit != 0 {
		r.live = 0
	}
	if mask&runFinishedBit != 0 {
		r.finished = at
	}
}
