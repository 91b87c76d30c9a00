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
	acceptFollow = 1<<0 | 1<<3 | 1<<6 | 1<<7 | 1<<8 | runVarsBit | 1<<10 | 1<<11 | 1<<15
	endedFollow  = 1<<0 | 1<<2 | 1<<4
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
		mask := uint64(acceptFollow | 1<<2 | 1<<12 | 1<<13)
		ev, _ := event.(Started)
		if ev.Key == "" {
			mask &^= 1 << 8
		}
		if ev.Vars.IsNull() {
			mask &^= runVarsBit
		}
		if ev.Trigger == "" {
			mask &^= 1 << 10
		}
		if ev.StartedBy == "" {
			mask &^= 1 << 11
		}
		return mask
	case runEnded:
		return endedFollow | 1<<1
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

// acceptDiffers returns the fields in which a run is not as its acceptance leaves
// it. Bits that do not follow mean nothing.
func acceptDiffers(r *run, at instant, ev *Started) uint64 {
	var m uint64
	for i, differs := range [...]bool{
		0: r.state != RunRunning, 3: !r.begun, 6: r.id != ev.RunID, 7: r.name != ev.Name, 8: r.key != ev.Key,
		9: !sameHeld(r.vars, held{v: ev.Vars}), 10: r.trigger != ev.Trigger, 11: r.startedBy != ev.StartedBy, 15: r.started != at,
	} {
		if differs {
			m |= 1 << i
		}
	}
	return m
}

// setAccepted makes the fields in mask what acceptDiffers compares them with.
func setAccepted(r *run, mask uint64, at instant, ev *Started) {
	if mask&(1<<0) != 0 {
		r.state = RunRunning
	}
	if mask&(1<<3) != 0 {
		r.begun = true
	}
	if mask&(1<<6) != 0 {
		r.id = ev.RunID
	}
	if mask&(1<<7) != 0 {
		r.name = ev.Name
	}
	if mask&(1<<8) != 0 {
		r.key = ev.Key
	}
	if mask&runVarsBit != 0 {
		r.vars = held{v: ev.Vars}
	}
	if mask&(1<<10) != 0 {
		r.trigger = ev.Trigger
	}
	if mask&(1<<11) != 0 {
		r.startedBy = ev.StartedBy
	}
	if mask&(1<<15) != 0 {
		r.started = at
	}
}

// endedDiffers returns the fields in which a run is not as its success leaves it.
func endedDiffers(r *run, at instant) uint64 {
	var m uint64
	if r.state != RunSucceeded {
		m |= 1 << 0
	}
	if r.live != 0 {
		m |= 1 << 2
	}
	if r.finished != at {
		m |= 1 << 4
	}
	return m
}

// setEnded makes the fields in mask what endedDiffers compares them with.
func setEnded(r *run, mask uint64, at instant) {
	if mask&(1<<0) != 0 {
		r.state = RunSucceeded
	}
	if mask&(1<<2) != 0 {
		r.live = 0
	}
	if mask&(1<<4) != 0 {
		r.finished = at
	}
}
